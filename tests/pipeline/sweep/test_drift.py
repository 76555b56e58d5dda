"""What somebody changes in a cluster by hand: a sweep names the fields, and takes that back afterwards."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.jobs.messages import SweepPart
from shared.jobs.record import Phase
from shared.pipeline.api.clusters import cluster_detail
from shared.pipeline.api.drift import drift_of_cluster, drift_view
from shared.pipeline.api.parts import FIRST_PAGE, Page
from shared.pipeline.api.replay import replay
from shared.pipeline.api.why import why_view
from tests.support import fleet_files
from tests.support.one_cluster import ONE, advice, cluster, files, pool, pools, ready, record, suspended
from tests.support.pipeline_runs import accepted, phases, push, status
from tests.support.replaced_ports import around
from tests.support.sweeps import handle, sweep


def in_sync(cloud: MemoryCloud) -> tuple[bool, str]:
    condition = record(cloud).condition("InSync")
    assert condition is not None
    return condition.status, condition.reason


def drifted(cloud: MemoryCloud) -> dict[str, tuple[str, str]]:
    """Return the fields that differ, with both values as JSON."""
    drift = record(cloud).drift
    return {each.path: (each.git, each.live) for each in drift.fields} if drift else {}


def tag(cloud: MemoryCloud, **tags: str) -> None:
    """Set tags of the cluster as the portal does, and let that end."""
    cloud.azure.patch_cluster(ONE, {"tags": {**cluster(cloud)["tags"], **tags}})
    cloud.clock.advance(60)


def change_pool(cloud: MemoryCloud, name: str, **change: Any) -> None:
    """Change a node pool as the portal does, and let that end."""
    properties = {**pools(cloud)[name], **change}
    for key in ("name", "provisioningState", "eTag", "currentOrchestratorVersion", "nodeImageVersion", "id"):
        properties.pop(key, None)
    cloud.azure.put_pool(ONE, name, {"properties": properties})
    cloud.clock.advance(600)
    cloud.azure.complete_due()


def records_read(cloud: MemoryCloud) -> list[str]:
    """Return the list to which every read of a record is added from now on."""
    read, one = list[str](), cloud.ports.state.cluster

    def noted(name: str) -> Any:
        read.append(name)
        return one(name)

    around(cloud, "state", cluster=noted)
    return read


def test_a_cluster_as_it_was_verified_is_in_sync_and_its_record_is_not_read() -> None:
    cloud = ready(pool() + "  tags: {cost: a}\n")
    assert in_sync(cloud) == (True, "Done")
    before, read = record(cloud), records_read(cloud)
    sweep(cloud)
    assert read == []
    assert record(cloud).etag == before.etag


def test_a_pool_that_somebody_scales_differs_in_its_count_until_it_is_scaled_back() -> None:
    cloud = ready(pool(count=2))
    written = dict(accepted(cloud))
    cloud.azure.interventions.scale(ONE, "apps", 5)
    sweep(cloud)
    assert drifted(cloud) == {"nodePools[apps].count": ("2", "5")}
    assert in_sync(cloud) == (False, "Drifted")
    assert phases(cloud) == {"one": Phase.READY}, "it works, so it is Ready"
    assert status(cloud, cloud.repository.head("main"))[0] == "success"
    assert dict(accepted(cloud)) == written, "drift that is reported is not written"
    cloud.azure.interventions.scale(ONE, "apps", 2)
    sweep(cloud)
    assert (drifted(cloud), in_sync(cloud)) == ({}, (True, "Done"))
    reasons = [event.reason for event in cloud.state.events("one", 2)]
    assert reasons == ["InSync", "Drifted"]


def test_the_count_under_an_autoscaler_is_no_drift_and_its_record_is_not_read() -> None:
    cloud = ready("    - {name: apps, vmSize: Standard_D4s_v5, minCount: 1, maxCount: 9}\n")
    cloud.azure.interventions.scale(ONE, "apps", 7)
    read = records_read(cloud)
    sweep(cloud)
    assert (drifted(cloud), read) == ({}, [])


def test_a_pool_that_somebody_deletes_is_missing() -> None:
    cloud = ready(pool())
    cloud.azure.delete_pool(ONE, "apps")
    sweep(cloud)
    git = '{"count": 2, "mode": "User", "vmSize": "Standard_D4s_v5"}'
    assert drifted(cloud) == {"nodePools[apps]": (git, "")}


def test_a_pool_that_somebody_adds_is_reported_and_no_replay_removes_it() -> None:
    cloud = ready()
    extra = {"properties": {"vmSize": "Standard_D2s_v5", "count": 1, "mode": "User"}}
    cloud.azure.put_pool(ONE, "extra", extra)
    sweep(cloud)
    assert [*drifted(cloud)] == ["nodePools[extra]"]
    assert "No job changes this" in advice(cloud)
    assert replay("one", "someone", cloud.ports).status == 202
    cloud.run()
    assert "extra" in pools(cloud)
    assert [*drifted(cloud)] == ["nodePools[extra]"]
    sweep(cloud)
    assert [*drifted(cloud)] == ["nodePools[extra]"], "a replay accepts nothing"
    push(cloud, files("  tags: {cost: a}\n"))
    cloud.run()
    assert drifted(cloud) == {}, "a commit accepts what the cluster has"


def test_a_tag_that_git_names_and_one_that_it_does_not_name_are_both_reported() -> None:
    cloud = ready("  tags: {cost: a}\n")
    tag(cloud, cost="b", owner="somebody")
    sweep(cloud)
    assert drifted(cloud) == {"tags.cost": ('"a"', '"b"'), "tags.owner": ("", '"somebody"')}


def test_a_tag_that_was_there_when_the_cluster_became_ready_is_no_drift() -> None:
    cloud = ready()
    tag(cloud, policy="set")
    push(cloud, files("  tags: {cost: a}\n"))
    cloud.run()
    tag(cloud, policy="changed")
    sweep(cloud)
    assert drifted(cloud) == {}


def test_a_change_that_no_manifest_owns_is_compared_once() -> None:
    cloud = ready()
    tag(cloud, policy="set")
    push(cloud, files("  tags: {cost: a}\n"))
    cloud.run()
    tag(cloud, policy="changed")
    read = records_read(cloud)
    sweep(cloud)
    assert read == ["one"]
    sweep(cloud)
    assert read == ["one"]


def test_labels_taints_and_mode_of_a_pool_are_compared() -> None:
    cloud = ready(pool(nodeLabels="{tier: front}"))
    change_pool(
        cloud, "apps", nodeLabels={"tier": "back", "own": "x"}, nodeTaints=["k=v:NoSchedule"], mode="System"
    )
    sweep(cloud)
    assert drifted(cloud) == {
        "nodePools[apps].mode": ('"User"', '"System"'),
        "nodePools[apps].nodeLabels.tier": ('"front"', '"back"'),
        "nodePools[apps].nodeLabels.own": ("", '"x"'),
        "nodePools[apps].nodeTaints": ("[]", '["k=v:NoSchedule"]'),
    }


def test_an_operation_that_runs_is_left_to_the_next_sweep() -> None:
    cloud = ready("  tags: {cost: a}\n")
    cloud.azure.interventions.stick_next("one")
    cloud.azure.patch_cluster(ONE, {"tags": {**cluster(cloud)["tags"], "cost": "b"}})
    sweep(cloud)
    handle(cloud, SweepPart(clusters=("one",)))
    assert drifted(cloud) == {}
    cloud.azure.interventions.abort(ONE)
    sweep(cloud)
    assert record(cloud).finding == "ClusterFailed"


def test_a_record_that_was_written_a_moment_ago_is_left_to_the_next_sweep() -> None:
    cloud = ready("  tags: {cost: a}\n")
    tag(cloud, cost="b")
    cloud.state.save(replace(record(cloud), updated=cloud.clock()))
    handle(cloud, SweepPart())
    assert drifted(cloud) == {}
    sweep(cloud)
    assert [*drifted(cloud)] == ["tags.cost"]


def test_drift_that_stays_keeps_its_time_and_writes_no_record() -> None:
    cloud = ready("  tags: {cost: a}\n")
    tag(cloud, cost="b")
    sweep(cloud)
    before, read = record(cloud), records_read(cloud)
    sweep(cloud)
    assert (record(cloud).etag, read) == (before.etag, ["one"]), "it is compared again with each sweep"
    tag(cloud, cost="c")
    sweep(cloud)
    after = record(cloud)
    assert after.drift is not None
    assert before.drift is not None
    assert (after.drift.first.live, after.drift.first.since) == ('"c"', before.drift.first.since)


def test_a_replay_writes_the_values_of_git() -> None:
    cloud = ready(pool(count=2))
    cloud.azure.interventions.scale(ONE, "apps", 5)
    sweep(cloud)
    assert "`roadstead replay one`" in advice(cloud)
    assert replay("one", "someone", cloud.ports).status == 202
    cloud.run()
    assert pools(cloud)["apps"]["count"] == 2
    assert (drifted(cloud), in_sync(cloud)) == ({}, (True, "Done"))
    refused = replay("one", "someone", cloud.ports)
    assert refused.status == 409


def test_a_commit_that_takes_the_live_value_over_ends_the_drift() -> None:
    cloud = ready(pool(count=2))
    cloud.azure.interventions.scale(ONE, "apps", 5)
    sweep(cloud)
    push(cloud, files(pool(count=5)))
    cloud.run()
    assert (drifted(cloud), in_sync(cloud)) == ({}, (True, "Done"))


def test_a_record_of_the_version_before_is_compared_once() -> None:
    cloud = ready("  tags: {cost: a}\n")
    old = replace(record(cloud), verified=None, conditions=record(cloud).conditions[:-1])
    cloud.state.save(old)
    tag(cloud, own="x")
    sweep(cloud)
    assert drifted(cloud) == {}, "nobody knows what was there when it became Ready"
    read = records_read(cloud)
    sweep(cloud)
    assert read == []
    tag(cloud, other="y")
    sweep(cloud)
    assert [*drifted(cloud)] == ["tags.other"]


def test_a_stopped_cluster_keeps_its_drift_and_is_compared_when_it_runs_again() -> None:
    cloud = ready("  tags: {cost: a}\n")
    tag(cloud, cost="b")
    sweep(cloud)
    cloud.azure.interventions.stop(ONE)
    sweep(cloud)
    assert (record(cloud).finding, [*drifted(cloud)]) == ("ClusterStopped", ["tags.cost"])
    cloud.azure.interventions.start(ONE)
    sweep(cloud)
    assert (record(cloud).finding, [*drifted(cloud)]) == ("", ["tags.cost"])


def test_a_suspended_cluster_reports_what_differs_itself() -> None:
    cloud = ready()
    push(cloud, files(suspended(cloud, 3)))
    cloud.run(seconds=600)
    tag(cloud, own="x")
    cloud.run(seconds=1800)
    assert "it differs in tags.own" in record(cloud).job.reason


def test_the_views_name_the_fields_and_since_when() -> None:
    cloud = ready(pool(count=2))
    cloud.azure.interventions.scale(ONE, "apps", 5)
    sweep(cloud)
    detail, why = cluster_detail("one", cloud.ports), why_view("one", cloud.ports)
    assert detail is not None
    assert why is not None
    assert detail["reason"] == "differs from git in nodePools[apps].count"  # type: ignore[typeddict-item]
    assert why["doing"].endswith("it differs from git in nodePools[apps].count")
    assert detail["events"][0]["message"] == "differs from git in nodePools[apps].count (2 in git, 5 live)"
    (shown,) = drift_view(cloud.ports, FIRST_PAGE)["clusters"]
    (field,) = shown["fields"]
    assert (shown["name"], field["path"], field["git"], field["live"]) == (
        *("one", "nodePools[apps].count"),
        *("2", "5"),
    )
    assert drift_of_cluster("one", cloud.ports) == drift_view(cloud.ports, FIRST_PAGE)
    assert drift_of_cluster("two", cloud.ports) is None


def test_the_view_of_a_fleet_has_pages() -> None:
    cloud = MemoryCloud(throttle=False)
    push(cloud, fleet_files.fleet("a", "b", "c"))
    cloud.run()
    for each in (found for found in cloud.state.clusters() if found.name != "b"):
        cloud.azure.patch_cluster(each.desired.id, {"tags": {**_tags(cloud, each.name), "own": "x"}})
    sweep(cloud)
    first = drift_view(cloud.ports, Page(limit=1))
    second = drift_view(cloud.ports, Page(after=first["next"] or "", limit=1))
    names = [each["name"] for page in (first, second) for each in page["clusters"]]
    assert (names, first["count"]) == (["a", "c"], 2)


def _tags(cloud: MemoryCloud, name: str) -> dict[str, str]:
    found = cloud.state.cluster(name)
    assert found is not None
    live = cloud.azure.peek(found.desired.id)
    assert live is not None
    return dict(live["tags"])


@pytest.mark.parametrize("number", [30])
def test_what_is_stored_of_many_fields_is_bounded(number: int) -> None:
    cloud = ready()
    tag(cloud, **{f"t{index:02}": "x" * 200 for index in range(number)})
    sweep(cloud)
    drift = record(cloud).drift
    assert drift is not None
    assert (len(drift.fields), drift.count) == (25, number)
    assert str(drift).endswith("and 27 more")
