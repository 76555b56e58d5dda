"""Drift that a policy corrects or ignores: a job writes what the policy names, and nothing else."""

from __future__ import annotations

from datetime import timedelta

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.parts import FIRST_PAGE
from shared.app.api.views.drift import drift_view
from shared.app.sweep import conclusions
from shared.app.sweep.activity import ActivityLog
from shared.app.sweep.conclusions import Sources
from shared.cluster.failures.errors import Unavailable
from shared.cluster.queues.messages import SweepRequest
from shared.cluster.record_parts import Phase
from shared.language.model.cluster.drift import DriftAction
from shared.ports.azure import PutCluster, WriteResponse
from tests.support.checks import check
from tests.support.one_cluster import ONE, branch_files, cluster, files, pool, pools, ready, record, suspended
from tests.support.pipeline_runs import accepted, phases, push
from tests.support.replaced_ports import loses_a_message, on_azure
from tests.support.sweeps import LATER, change_pool_by_hand, handle, in_sync, sweep, tag_by_hand

pytestmark = pytest.mark.lives

CORRECT = "  drift: {action: correct}\n"
TAGS = "  tags: {cost: a}\n"


def corrects(*fields: str) -> str:
    """Return YAML of a policy that corrects some fields and reports the others."""
    named = ", ".join(f'"{field}"' for field in fields)
    return f"  drift: {{rules: [{{name: these, fields: [{named}], action: correct}}]}}\n"


def exempts(cloud: MemoryCloud, *fields: str, days: int) -> str:
    """Return YAML of a policy that corrects everything but some fields, for some days."""
    named, end = ", ".join(f'"{field}"' for field in fields), cloud.clock() + timedelta(days=days)
    exemption = f"action: ignore, owner: team-a, reason: a test, expires: {end:%Y-%m-%d}"
    return f"  drift: {{action: correct, rules: [{{name: these, fields: [{named}], {exemption}}}]}}\n"


def shown(cloud: MemoryCloud) -> dict[str, tuple[str, str]]:
    """Return the action and the note of each field that differs."""
    found = drift_view(cloud.ports, FIRST_PAGE)["clusters"]
    return {
        field["path"]: (field["action"], field["note"]) for drifted in found for field in drifted["fields"]
    }


def events(cloud: MemoryCloud, number: int) -> list[str]:
    return [event.reason for event in cloud.state.events("one", number)]


def test_a_pool_that_somebody_scales_is_scaled_back_by_a_job() -> None:
    cloud = ready(pool(count=2) + CORRECT)
    cloud.azure.interventions.scale(ONE, "apps", 5)
    sweep(cloud)
    assert pools(cloud)["apps"]["count"] == 2
    assert phases(cloud) == {"one": Phase.READY}
    assert shown(cloud) == {}
    condition = record(cloud).condition("InSync")
    assert condition is not None
    assert condition.status
    assert {"Drifted", "Correcting", "Ready"} <= set(events(cloud, 20))


def test_a_change_of_a_pool_that_replaced_another_one_has_the_effect_that_it_has_in_azure() -> None:
    extra = "  drift: {action: correct}\n"
    cloud = ready(pool(enableFIPS="false") + extra)
    push(cloud, files(pool("Standard_D8s_v5", enableFIPS="false") + extra))
    cloud.run()
    (name,) = pools(cloud).keys() - {"system"}
    assert name != "apps"
    change_pool_by_hand(cloud, ONE, name, enableFIPS=True)
    sweep(cloud)
    drift = record(cloud).divergence.drift
    assert drift is not None
    assert drift.waits == (
        "the correction of nodePools[apps].enableFIPS (in place, nodes are reimaged) waits for an approval"
    )


def test_a_pool_that_somebody_deletes_is_created_again() -> None:
    cloud = ready(pool() + CORRECT)
    cloud.azure.delete_pool(ONE, "apps")
    sweep(cloud)
    assert pools(cloud)["apps"]["count"] == 2
    assert shown(cloud) == {}


def test_only_the_fields_that_the_policy_names_are_written() -> None:
    cloud = ready(pool(count=2, nodeLabels="{tier: front, team: shop}") + TAGS)
    push(
        cloud,
        files(
            pool(count=2, nodeLabels="{tier: front, team: shop}")
            + TAGS
            + corrects("tags.*", "nodePools[*].nodeLabels.tier")
        ),
    )
    cloud.run()
    labels = {"tier": "back", "team": "other"}
    change_pool_by_hand(cloud, ONE, "apps", count=5, nodeLabels=labels)
    tag_by_hand(cloud, ONE, cost="b")
    sweep(cloud)
    assert cluster(cloud)["tags"]["cost"] == "a"
    live = pools(cloud)["apps"]
    assert (live["count"], live["nodeLabels"]) == (5, {"tier": "front", "team": "other"})
    assert shown(cloud) == {
        "nodePools[apps].count": ("report", ""),
        "nodePools[apps].nodeLabels.team": ("report", ""),
    }
    before = record(cloud).divergence.drift
    sweep(cloud)
    assert record(cloud).divergence.drift == before
    assert phases(cloud) == {"one": Phase.READY}


def test_a_correction_accepts_nothing_that_somebody_added_meanwhile() -> None:
    cloud = ready(TAGS + CORRECT)
    tag_by_hand(cloud, ONE, cost="b", own="x")
    sweep(cloud)
    assert cluster(cloud)["tags"]["cost"] == "a"
    for _ in range(2):
        assert shown(cloud) == {"tags.own": ("report", "not corrected: no job changes it")}
        sweep(cloud)


def test_a_deleted_pool_that_is_only_reported_is_not_created_by_the_correction_of_a_tag() -> None:
    cloud = ready(pool() + TAGS + corrects("tags.*"))
    cloud.azure.delete_pool(ONE, "apps")
    cloud.clock.advance(LATER)
    cloud.azure.complete_due()
    tag_by_hand(cloud, ONE, cost="b")
    sweep(cloud)
    assert cluster(cloud)["tags"]["cost"] == "a"
    assert "apps" not in pools(cloud)
    assert [*shown(cloud)] == ["nodePools[apps]"]


def test_an_old_image_that_waits_for_an_approval_is_not_replaced_by_the_correction_of_a_tag() -> None:
    image = "AKSUbuntu-2204gen2containerd-202001.01.0"
    cloud = ready('  minNodeImageVersion: "202101.01"\n' + TAGS + CORRECT)
    cloud.azure.interventions.set_node_image(ONE, "system", image)
    tag_by_hand(cloud, ONE, cost="b")
    sweep(cloud)
    assert cluster(cloud)["tags"]["cost"] == "a"
    assert pools(cloud)["system"]["nodeImageVersion"] == image
    assert shown(cloud) == {"nodePools[system].minNodeImageVersion": ("approve", "")}


def test_an_exempt_field_is_neither_reported_nor_corrected_until_the_exemption_ends() -> None:
    cloud = ready(pool(count=2) + TAGS)
    push(cloud, files(pool(count=2) + TAGS + exempts(cloud, "nodePools[*].count", days=2)))
    cloud.run()
    cloud.azure.interventions.scale(ONE, "apps", 5)
    tag_by_hand(cloud, ONE, cost="b")
    sweep(cloud)
    assert (cluster(cloud)["tags"]["cost"], pools(cloud)["apps"]["count"]) == ("a", 5)
    assert (shown(cloud), record(cloud).divergence.drift) == ({}, None)
    cloud.clock.advance(3 * 86400)
    sweep(cloud)
    assert pools(cloud)["apps"]["count"] == 2


def test_a_correction_that_ends_while_an_exempt_field_differs_leaves_the_cluster_in_sync() -> None:
    cloud = ready(pool(count=2) + TAGS)
    push(cloud, files(pool(count=2) + TAGS + exempts(cloud, "nodePools[*].count", days=2)))
    cloud.run()
    cloud.azure.interventions.scale(ONE, "apps", 5)
    tag_by_hand(cloud, ONE, cost="b")
    sweep(cloud)
    assert events(cloud, 100).count("Correcting") == 1
    assert in_sync(record(cloud)) == (True, "Done")


def test_an_exemption_that_has_ended_is_named_in_the_report() -> None:
    cloud = ready(pool(count=2))
    policy = exempts(cloud, "nodePools[*].count", days=1).replace("action: correct, ", "", 1)
    push(cloud, files(pool(count=2) + policy))
    cloud.run()
    cloud.azure.interventions.scale(ONE, "apps", 5)
    sweep(cloud)
    assert shown(cloud) == {}
    cloud.clock.advance(3 * 86400)
    sweep(cloud)
    (found,) = shown(cloud).values()
    assert found[0] == "report"
    assert found[1].startswith("the exemption these of team-a ended on")


def test_drift_that_comes_back_is_corrected_three_times_and_then_reported() -> None:
    cloud = ready(pool(count=2) + CORRECT)
    for _ in range(5):
        cloud.azure.interventions.scale(ONE, "apps", 5)
        sweep(cloud)
    assert pools(cloud)["apps"]["count"] == 5
    assert shown(cloud) == {
        "nodePools[apps].count": ("report", "something changes it back: it was corrected 3 times")
    }
    assert events(cloud, 100).count("Correcting") == 3
    push(cloud, files(pool(count=3) + CORRECT))
    cloud.run()
    cloud.azure.interventions.scale(ONE, "apps", 5)
    sweep(cloud)
    assert pools(cloud)["apps"]["count"] == 3, "a commit begins without corrections"


def test_corrections_of_long_ago_do_not_count() -> None:
    cloud = ready(pool(count=2) + CORRECT)
    for _ in range(5):
        cloud.azure.interventions.scale(ONE, "apps", 5)
        sweep(cloud)
        cloud.clock.advance(4 * 86400)
    assert pools(cloud)["apps"]["count"] == 2


def test_two_sweeps_at_once_start_one_correction() -> None:
    cloud = ready(pool(count=2) + CORRECT)
    cloud.azure.interventions.scale(ONE, "apps", 5)
    cloud.clock.advance(LATER)
    before = record(cloud)
    for _ in range(2):
        handle(cloud, SweepRequest())
    conclusions.conclude(
        before,
        cluster(cloud),
        Sources(before.commit, cloud.ports),
        ActivityLog(cloud.ports, {}),
        cloud.ports,
    )  # a sweep that read the record before
    assert events(cloud, 100).count("Correcting") == 1
    assert record(cloud).job.sequence == before.job.sequence + 2
    cloud.run()
    assert record(cloud).divergence.corrections[0].times == 1


def test_a_crash_between_the_record_of_a_correction_and_its_message_loses_nothing() -> None:
    cloud = ready(pool(count=2) + CORRECT)
    cloud.azure.interventions.scale(ONE, "apps", 5)
    died = loses_a_message(cloud, "jobs", "changes")
    sweep(cloud)
    cloud.run(seconds=3600, until=lambda: not record(cloud).job.active)
    assert died
    assert pools(cloud)["apps"]["count"] == 2
    assert (phases(cloud), record(cloud).divergence.corrections[0].times) == ({"one": Phase.READY}, 1)


def test_drift_of_a_cluster_that_a_check_found_unhealthy_says_why_it_is_not_corrected() -> None:
    policy = "  tags: {cost: a}\n" + CORRECT
    cloud = ready(policy, fleet=branch_files)
    check(cloud)
    push(cloud, branch_files(policy) | {"platform/broken.yaml": b"kind: [unfinished"})
    cloud.run()
    check(cloud)
    cloud.run(cloud.ports.config.timing.unhealthy_seconds + 60)
    assert record(cloud).finding == "FluxUnhealthy"
    tag_by_hand(cloud, ONE, cost="b")
    sweep(cloud)
    found = record(cloud)
    assert found.divergence.drift is not None
    (field,) = found.divergence.drift.fields
    assert (field.action, field.note) == (DriftAction.REPORT, "not corrected while FluxUnhealthy")
    assert not found.job.active


def test_a_suspended_cluster_is_not_corrected() -> None:
    cloud = ready(pool(count=2) + CORRECT)
    push(cloud, files(pool(count=2) + CORRECT + suspended(cloud, 5)))
    cloud.run(seconds=600)
    cloud.azure.interventions.scale(ONE, "apps", 5)
    before = accepted(cloud)
    cloud.run(seconds=3600)
    handle(cloud, SweepRequest())
    cloud.run(seconds=3600)
    assert (accepted(cloud), pools(cloud)["apps"]["count"]) == (before, 5)


def test_a_correction_that_failed_and_is_tried_again_leaves_the_same_fields_alone() -> None:
    cloud = ready(pool(count=2) + TAGS + corrects("tags.*"))
    cloud.azure.interventions.scale(ONE, "apps", 5)
    tag_by_hand(cloud, ONE, cost="b")
    azure, down = cloud.ports.azure, [True]

    def sometimes(write: PutCluster) -> WriteResponse:
        if down:
            raise Unavailable("Azure did not answer")
        return azure.call(write)

    on_azure(cloud, PutCluster, sometimes)
    sweep(cloud)
    cloud.run(seconds=86400, until=lambda: not record(cloud).job.active)
    assert record(cloud).retryable_failure
    down.clear()
    push(cloud, files(pool(count=2) + TAGS + corrects("tags.*")) | {"README.md": b"a commit\n"})
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert (cluster(cloud)["tags"]["cost"], pools(cloud)["apps"]["count"]) == ("a", 5)
