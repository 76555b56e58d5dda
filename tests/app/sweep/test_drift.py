"""What somebody changes in a cluster by hand: a sweep names the fields, and takes that back afterwards."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shared.app.api.acts.cluster import refresh, replay
from shared.app.outbox import request_whole_sweep
from shared.cluster.failures.errors import FluxUnhealthy
from shared.cluster.outcomes import Fail
from shared.cluster.queues.messages import CLOCKS_DIFFER, SweepRequest
from shared.cluster.recipes import Step
from shared.cluster.record_parts import Phase
from shared.cluster.transitions.apply_outcome import apply_outcome
from shared.ports import History
from tests.support.one_cluster import (
    ONE,
    advice,
    branch_files,
    cluster,
    files,
    pool,
    pools,
    ready,
    record,
    suspended,
)
from tests.support.pipeline_runs import accepted, phases, push, status
from tests.support.replaced_ports import calls_of
from tests.support.sweeps import LATER, change_pool_by_hand, drifted, handle, in_sync, sweep, tag_by_hand

pytestmark = pytest.mark.lives


def test_a_cluster_as_it_was_verified_is_in_sync_and_its_record_is_not_read() -> None:
    cloud = ready(pool() + "  tags: {cost: a}\n")
    assert in_sync(record(cloud)) == (True, "Done")
    before, read = record(cloud), calls_of(cloud, "state", "cluster")
    sweep(cloud)
    assert read == []
    assert record(cloud).etag == before.etag


def test_a_pool_that_somebody_scales_differs_in_its_count_until_it_is_scaled_back() -> None:
    cloud = ready(pool(count=2))
    written = dict(accepted(cloud))
    cloud.azure.interventions.scale(ONE, "apps", 5)
    sweep(cloud)
    assert drifted(record(cloud)) == {"nodePools[apps].count": ("2", "5")}
    assert in_sync(record(cloud)) == (False, "Drifted")
    assert phases(cloud) == {"one": Phase.READY}, "it works, so it is Ready"
    assert status(cloud, cloud.repository.head("main"))[0] == "failure", "the difference has lasted"
    assert dict(accepted(cloud)) == written, "drift that is reported is not written"
    cloud.azure.interventions.scale(ONE, "apps", 2)
    sweep(cloud)
    assert (drifted(record(cloud)), in_sync(record(cloud))) == ({}, (True, "Done"))
    reasons = [event.reason for event in cloud.state.events("one", 2)]
    assert reasons == ["InSync", "Drifted"]


def test_a_cluster_that_differs_again_and_again_keeps_about_the_configured_number_of_events() -> None:
    cloud = ready(pool(count=2))
    cloud.ports = replace(cloud.ports, config=replace(cloud.ports.config, history=History(5)))
    for _ in range(60):
        for count in (5, 2):
            cloud.azure.interventions.scale(ONE, "apps", count)
            sweep(cloud)
    events = cloud.state.events("one", 1000)
    assert 5 <= len(events) < 60
    assert {event.reason for event in events} == {"Drifted", "InSync"}


def test_a_refresh_right_after_a_job_or_another_refresh_finds_what_was_changed_meanwhile() -> None:
    cloud = ready(pool())
    for count in (3, 4):
        cloud.azure.interventions.scale(ONE, "apps", count)
        cloud.azure.complete_due()
        request_whole_sweep(cloud.ports)
        cloud.run(seconds=30)
        assert drifted(record(cloud)) == {"nodePools[apps].count": ("2", str(count))}


def test_a_refresh_of_a_cluster_that_azure_is_changing_is_repeated_until_that_has_ended() -> None:
    cloud = ready(pool())
    cloud.clock.advance(LATER)
    live = cloud.azure.peek(ONE)
    assert live is not None
    cloud.azure.patch_cluster(ONE, {"tags": {**live["tags"], "own": "x"}})
    assert refresh(["one"], "ann", cloud.ports).status == 202
    cloud.run(120)
    assert drifted(record(cloud)) == {"tags.own": ("", '"x"')}


def test_a_refresh_asked_of_an_instance_whose_clock_is_behind_is_not_one_with_a_refresh_that_has_begun() -> (
    None
):
    cloud = ready(pool())
    request_whole_sweep(cloud.ports)
    cloud.run(until=lambda: cloud.state.sweep().finished is not None)
    cloud.azure.interventions.scale(ONE, "apps", 3)
    cloud.azure.complete_due()
    request_whole_sweep(replace(cloud.ports, clock=lambda: cloud.clock() - CLOCKS_DIFFER))
    cloud.run()
    assert drifted(record(cloud)) == {"nodePools[apps].count": ("2", "3")}


def test_the_count_under_an_autoscaler_is_no_drift_and_its_record_is_not_read() -> None:
    cloud = ready("    - {name: apps, vmSize: Standard_D4s_v5, minCount: 1, maxCount: 9}\n")
    cloud.azure.interventions.scale(ONE, "apps", 7)
    read = calls_of(cloud, "state", "cluster")
    sweep(cloud)
    assert (drifted(record(cloud)), read) == ({}, [])


def test_a_pool_that_somebody_stops_differs_in_its_power_state_which_no_job_changes() -> None:
    cloud = ready(pool())
    change_pool_by_hand(cloud, ONE, "apps", powerState={"code": "Stopped"})
    sweep(cloud)
    assert drifted(record(cloud)) == {"nodePools[apps].powerState": ('"Running"', '"Stopped"')}
    (field,) = record(cloud).divergence.drift.fields  # type: ignore[union-attr]
    assert field.left_alone
    change_pool_by_hand(cloud, ONE, "apps", powerState={"code": "Running"})
    sweep(cloud)
    assert in_sync(record(cloud)) == (True, "Done")


def test_a_pool_that_somebody_stopped_just_before_a_commit_differs_after_its_job() -> None:
    """No comparison saw it before; tags that were added so are what the cluster has."""
    cloud = ready(pool())
    change_pool_by_hand(cloud, ONE, "apps", powerState={"code": "Stopped"})
    push(cloud, files(pool() + "  tags: {cost: a}\n"))
    cloud.run()
    assert drifted(record(cloud)) == {"nodePools[apps].powerState": ('"Running"', '"Stopped"')}
    push(cloud, files(pool() + "  tags: {cost: b}\n"))
    cloud.run()
    assert in_sync(record(cloud))[0] is False


def test_a_pool_that_somebody_deletes_is_missing() -> None:
    cloud = ready(pool())
    cloud.azure.delete_pool(ONE, "apps")
    sweep(cloud)
    git = '{"count": 2, "mode": "User", "vmSize": "Standard_D4s_v5"}'
    assert drifted(record(cloud)) == {"nodePools[apps]": (git, "")}


def test_a_pool_that_somebody_adds_is_reported_and_no_replay_removes_it() -> None:
    cloud = ready()
    extra = {"properties": {"vmSize": "Standard_D2s_v5", "count": 1, "mode": "User"}}
    cloud.azure.put_pool(ONE, "extra", extra)
    sweep(cloud)
    assert [*drifted(record(cloud))] == ["nodePools[extra]"]
    assert "No job changes this" in advice(cloud)
    assert replay("one", "someone", cloud.ports).status == 202
    cloud.run()
    assert "extra" in pools(cloud)
    assert [*drifted(record(cloud))] == ["nodePools[extra]"]
    sweep(cloud)
    assert [*drifted(record(cloud))] == ["nodePools[extra]"], "a replay accepts nothing"
    push(cloud, files("  tags: {cost: a}\n"))
    cloud.run()
    assert [*drifted(record(cloud))] == ["nodePools[extra]"], "nor does a commit"


def test_a_tag_that_git_names_and_one_that_it_does_not_name_are_both_reported() -> None:
    cloud = ready("  tags: {cost: a}\n")
    tag_by_hand(cloud, ONE, cost="b", owner="somebody")
    sweep(cloud)
    assert drifted(record(cloud)) == {"tags.cost": ('"a"', '"b"'), "tags.owner": ("", '"somebody"')}


def test_a_tag_that_was_there_when_the_cluster_became_ready_is_no_drift() -> None:
    cloud = ready()
    tag_by_hand(cloud, ONE, policy="set")
    push(cloud, files("  tags: {cost: a}\n"))
    cloud.run()
    tag_by_hand(cloud, ONE, policy="changed")
    sweep(cloud)
    assert drifted(record(cloud)) == {}


def test_a_change_that_no_manifest_owns_is_compared_once() -> None:
    cloud = ready()
    tag_by_hand(cloud, ONE, policy="set")
    push(cloud, files("  tags: {cost: a}\n"))
    cloud.run()
    tag_by_hand(cloud, ONE, policy="changed")
    read = calls_of(cloud, "state", "cluster")
    sweep(cloud)
    assert read == ["one"]
    sweep(cloud)
    assert read == ["one"]


def test_labels_taints_and_mode_of_a_pool_are_compared() -> None:
    cloud = ready(pool(nodeLabels="{tier: front}"))
    change_pool_by_hand(
        cloud,
        ONE,
        "apps",
        nodeLabels={"tier": "back", "own": "x"},
        nodeTaints=["k=v:PreferNoSchedule"],
        mode="System",
    )
    sweep(cloud)
    assert drifted(record(cloud)) == {
        "nodePools[apps].mode": ('"User"', '"System"'),
        "nodePools[apps].nodeLabels.tier": ('"front"', '"back"'),
        "nodePools[apps].nodeLabels.own": ("", '"x"'),
        "nodePools[apps].nodeTaints": ("[]", '["k=v:PreferNoSchedule"]'),
    }


def test_a_job_that_ends_while_the_cluster_differs_does_not_say_that_it_is_in_sync() -> None:
    cloud = ready("  tags: {cost: a}\n", fleet=branch_files)
    wanted = branch_files("  tags: {cost: b}\n")
    push(cloud, wanted | {"platform/broken.yaml": b"kind: [unfinished"})
    cloud.run(seconds=300, until=lambda: False)
    assert record(cloud).job.step.name is Step.VERIFY
    tag_by_hand(cloud, ONE, cost="x")
    push(cloud, wanted)
    cloud.run(seconds=900)
    assert phases(cloud) == {"one": Phase.READY}
    assert in_sync(record(cloud)) == (None, "NotCompared")
    sweep(cloud)
    assert in_sync(record(cloud)) == (False, "Drifted")
    tag_by_hand(cloud, ONE, cost="b")
    sweep(cloud)
    assert in_sync(record(cloud)) == (True, "Done")


def test_an_operation_that_runs_is_left_to_the_next_sweep() -> None:
    cloud = ready("  tags: {cost: a}\n")
    cloud.azure.interventions.stick_next("one")
    cloud.azure.patch_cluster(ONE, {"tags": {**cluster(cloud)["tags"], "cost": "b"}})
    sweep(cloud)
    handle(cloud, SweepRequest(clusters=("one",)))
    assert drifted(record(cloud)) == {}
    cloud.azure.interventions.abort(ONE)
    sweep(cloud)
    assert record(cloud).finding == "ClusterFailed"


def test_a_record_that_was_written_a_moment_ago_is_left_to_the_next_sweep() -> None:
    cloud = ready("  tags: {cost: a}\n")
    tag_by_hand(cloud, ONE, cost="b")
    cloud.state.save(replace(record(cloud), updated=cloud.clock()))
    handle(cloud, SweepRequest())
    assert drifted(record(cloud)) == {}
    sweep(cloud)
    assert [*drifted(record(cloud))] == ["tags.cost"]


def test_drift_that_stays_keeps_its_time_and_writes_no_record() -> None:
    cloud = ready("  tags: {cost: a}\n")
    tag_by_hand(cloud, ONE, cost="b")
    sweep(cloud)
    before, read = record(cloud), calls_of(cloud, "state", "cluster")
    sweep(cloud)
    assert (record(cloud).etag, read) == (before.etag, ["one"]), "it is compared again with each sweep"
    tag_by_hand(cloud, ONE, cost="c")
    sweep(cloud)
    after = record(cloud)
    assert after.divergence.drift is not None
    assert before.divergence.drift is not None
    assert (after.divergence.drift.fields[0].live, after.divergence.drift.fields[0].since) == (
        '"c"',
        before.divergence.drift.fields[0].since,
    )


def test_a_replay_writes_the_values_of_git() -> None:
    cloud = ready(pool(count=2))
    cloud.azure.interventions.scale(ONE, "apps", 5)
    sweep(cloud)
    assert "`roadstead replay one`" in advice(cloud)
    assert replay("one", "someone", cloud.ports).status == 202
    cloud.run()
    assert pools(cloud)["apps"]["count"] == 2
    assert (drifted(record(cloud)), in_sync(record(cloud))) == ({}, (True, "Done"))
    refused = replay("one", "someone", cloud.ports)
    assert refused.status == 409


def test_a_commit_that_takes_the_live_value_over_ends_the_drift() -> None:
    cloud = ready(pool(count=2))
    cloud.azure.interventions.scale(ONE, "apps", 5)
    sweep(cloud)
    push(cloud, files(pool(count=5)))
    cloud.run()
    assert (drifted(record(cloud)), in_sync(record(cloud))) == ({}, (True, "Done"))


def test_what_was_there_before_the_first_comparison_is_no_drift() -> None:
    cloud = ready("  tags: {cost: a}\n")
    old = replace(
        record(cloud),
        observation=replace(record(cloud).observation, verified=None),
        conditions=record(cloud).conditions[:-1],
    )
    cloud.state.save(old)
    tag_by_hand(cloud, ONE, own="x")
    sweep(cloud)
    assert drifted(record(cloud)) == {}, "nobody knows what was there when it became Ready"
    read = calls_of(cloud, "state", "cluster")
    sweep(cloud)
    assert read == []
    tag_by_hand(cloud, ONE, other="y")
    sweep(cloud)
    assert [*drifted(record(cloud))] == ["tags.other"]


def test_a_stopped_cluster_keeps_its_drift_and_is_compared_when_it_runs_again() -> None:
    cloud = ready("  tags: {cost: a}\n")
    tag_by_hand(cloud, ONE, cost="b")
    sweep(cloud)
    cloud.azure.interventions.stop(ONE)
    sweep(cloud)
    assert (record(cloud).finding, [*drifted(record(cloud))]) == ("ClusterStopped", ["tags.cost"])
    cloud.azure.interventions.start(ONE)
    sweep(cloud)
    assert (record(cloud).finding, [*drifted(record(cloud))]) == ("", ["tags.cost"])


def test_a_cluster_that_is_unhealthy_inside_is_compared_and_not_corrected() -> None:
    cloud = ready("  tags: {cost: a}\n  drift: {action: correct}\n")
    fail = Fail(FluxUnhealthy("a Kustomization is not Ready"))
    cloud.state.save(apply_outcome(record(cloud), fail, now=cloud.clock(), jitter=0))
    tag_by_hand(cloud, ONE, cost="b")
    sweep(cloud)
    assert (cluster(cloud)["tags"]["cost"], [*drifted(record(cloud))]) == ("b", ["tags.cost"])
    assert record(cloud).finding == "FluxUnhealthy"


def test_a_suspended_cluster_reports_what_differs_itself() -> None:
    cloud = ready()
    push(cloud, files(suspended(cloud, 3)))
    cloud.run(seconds=600)
    tag_by_hand(cloud, ONE, own="x")
    cloud.run(seconds=1800)
    assert "it differs in tags.own" in record(cloud).job.reason


@pytest.mark.parametrize("number", [30])
def test_what_is_stored_of_many_fields_is_bounded(number: int) -> None:
    cloud = ready()
    tag_by_hand(cloud, ONE, **{f"t{index:02}": "x" * 200 for index in range(number)})
    sweep(cloud)
    drift = record(cloud).divergence.drift
    assert drift is not None
    assert (len(drift.fields), drift.count) == (25, number)
    assert str(drift).endswith("and 27 more")
