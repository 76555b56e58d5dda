"""Corrections that replace, delete or reimage: they wait until somebody approves exactly these."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.cluster import approve_correction, replay
from shared.app.api.parts import FIRST_PAGE
from shared.app.api.views.clusters import fleet_view
from shared.app.api.views.drift import drift_view
from shared.app.api.views.plans import plans_view
from shared.app.http_result import HttpResult
from shared.azure.differences import Difference
from shared.azure.drift.policy import DriftDecision
from shared.cluster.divergence.drift import drift_from
from shared.cluster.failures.errors import Stale, Unavailable
from shared.cluster.queues.messages import SweepRequest
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.language.model.cluster.drift import DriftAction
from shared.ports.azure import UpgradeNodeImage
from tests.support.one_cluster import ONE, advice, cluster, files, pool, pools, ready, record, suspended
from tests.support.pipeline_runs import phases, push
from tests.support.replaced_ports import around, loses_a_message, on_azure
from tests.support.sweeps import LATER, handle, sweep, tag_by_hand

pytestmark = pytest.mark.lives

CORRECT = "  drift: {action: correct}\n"
TAGS = "  tags: {cost: a}\n"
OLD, OLDER = (f"AKSUbuntu-2204gen2containerd-{month}.01.0" for month in ("202002", "202001"))
IMAGE = "nodePools[system].minNodeImageVersion"


@pytest.fixture
def cloud() -> MemoryCloud:
    """A Ready cluster whose policy corrects, and whose pool has an image that is too old, as a sweep saw."""
    made = ready('  minNodeImageVersion: "202101.01"\n' + TAGS + CORRECT)
    made.azure.interventions.set_node_image(ONE, "system", OLD)
    sweep(made)
    return made


def image(cloud: MemoryCloud) -> str:
    return str(pools(cloud)["system"]["nodeImageVersion"])


def waiting(cloud: MemoryCloud) -> str:
    """Return what identifies the corrections that wait for an approval, as the API shows it."""
    found = [drifted["needsApproval"] for drifted in drift_view(cloud.ports, FIRST_PAGE)["clusters"]]
    return found[0] if found else ""


def approve(cloud: MemoryCloud, what: str, by: str = "ann") -> HttpResult:
    return approve_correction("one", what, by, cloud.ports, reason="a quiet hour")


def events(cloud: MemoryCloud) -> list[tuple[str, str]]:
    return [(event.reason, event.message) for event in cloud.state.events("one", 50)]


def test_it_is_held_and_shown_until_somebody_approves_it_and_then_carried_out(cloud: MemoryCloud) -> None:
    for _ in range(2):
        sweep(cloud)
        assert (image(cloud), phases(cloud)) == (OLD, {"one": Phase.READY})
    ((shown,),) = [drifted["fields"] for drifted in drift_view(cloud.ports, FIRST_PAGE)["clusters"]]
    assert (shown["path"], shown["action"], shown["effect"]) == (
        IMAGE,
        "approve",
        "in place, nodes are reimaged",
    )
    assert "roadstead approve --cluster one" in advice(cloud)
    waits = f"the correction of {IMAGE} (in place, nodes are reimaged) waits for an approval"
    view = fleet_view(cloud.ports)
    assert waits in view["clusters"][0]["reason"]
    assert (view["corrections"], view["correctionCount"]) == (["one"], 1)
    assert plans_view(cloud.ports)["corrections"] == ["one"]
    answer = approve(cloud, waiting(cloud))
    assert answer.status == 202
    cloud.run()
    assert image(cloud) > OLD
    assert (phases(cloud), record(cloud).divergence.drift) == ({"one": Phase.READY}, None)
    reasons = dict(events(cloud))
    assert reasons["Approved"] == f"the correction of {IMAGE} was approved by ann: a quiet hour"
    assert "and ann: a quiet hour approved it" in reasons["Correcting"]
    assert fleet_view(cloud.ports)["corrections"] == plans_view(cloud.ports)["corrections"] == []


def test_a_pool_of_ours_that_git_does_not_have_is_deleted_only_with_an_approval() -> None:
    cloud = ready(pool() + CORRECT)
    mine = {key: pools(cloud)["apps"][key] for key in ("vmSize", "mode", "type", "osType", "tags", "count")}
    tags = {**mine["tags"], "roadstead-pool": "other"}
    cloud.azure.put_pool(ONE, "other", {"properties": {**mine, "tags": tags}})
    sweep(cloud)
    sweep(cloud)
    assert "other" in pools(cloud)
    assert [field.effect for field in record(cloud).divergence.drift.fields] == ["the node pool is deleted"]  # type: ignore[union-attr]
    assert approve(cloud, waiting(cloud)).status == 202
    cloud.run()
    assert set(pools(cloud)) == {"system", "apps"}
    assert phases(cloud) == {"one": Phase.READY}


def test_what_needs_no_approval_is_corrected_meanwhile_and_the_approval_still_counts(
    cloud: MemoryCloud,
) -> None:
    shown = waiting(cloud)
    tag_by_hand(cloud, ONE, cost="b")
    sweep(cloud)
    assert (cluster(cloud)["tags"]["cost"], image(cloud), waiting(cloud)) == ("a", OLD, shown)
    assert approve(cloud, shown).status == 202
    cloud.run()
    assert image(cloud) > OLD


def test_an_approval_of_what_differs_no_longer_is_refused(cloud: MemoryCloud) -> None:
    shown = waiting(cloud)
    cloud.azure.interventions.set_node_image(ONE, "system", OLDER)
    sweep(cloud)
    assert waiting(cloud) not in ("", shown)
    answer = approve(cloud, shown)
    assert answer.status == 409
    assert "is not what was shown" in answer.body["error"]
    assert image(cloud) == OLDER


def test_an_approval_does_not_count_if_azure_changes_before_the_sweep_compares_again(
    cloud: MemoryCloud,
) -> None:
    assert approve(cloud, waiting(cloud)).status == 202
    cloud.azure.interventions.set_node_image(ONE, "system", OLDER)
    cloud.run()
    sweep(cloud)
    assert (image(cloud), phases(cloud)) == (OLDER, {"one": Phase.READY})
    drift = record(cloud).divergence.drift
    assert drift is not None
    assert drift.approval is None
    assert waiting(cloud)
    ended = "the approval of ann: a quiet hour no longer counts"
    assert [ended in message for reason, message in events(cloud) if reason == "Drifted"] == [True, False]


def test_an_approval_that_still_counts_is_not_said_to_have_ended_by_another_difference(
    cloud: MemoryCloud,
) -> None:
    assert approve(cloud, waiting(cloud)).status == 202
    tag_by_hand(cloud, ONE, cost="b")
    cloud.run()
    assert (cluster(cloud)["tags"]["cost"], image(cloud) > OLD) == ("a", True)
    assert "and ann: a quiet hour approved it" in dict(events(cloud))["Correcting"]
    drifted = [message for reason, message in events(cloud) if reason == "Drifted"]
    assert "tags.cost" in drifted[0]
    assert not [message for message in drifted if "no longer counts" in message]


def test_an_approval_does_not_count_for_another_generation(cloud: MemoryCloud) -> None:
    shown = waiting(cloud)
    push(cloud, files('  minNodeImageVersion: "202101.01"\n  tags: {cost: c}\n  drift: {action: correct}\n'))
    cloud.run()
    assert image(cloud) > OLD, "the job of a commit brings the image up to date"
    cloud.azure.interventions.set_node_image(ONE, "system", OLD)
    sweep(cloud)
    assert approve(cloud, shown).status == 409
    assert image(cloud) == OLD


def test_an_approval_ends_with_the_drift(cloud: MemoryCloud) -> None:
    approved = record(cloud)
    assert approve(cloud, waiting(cloud)).status == 202
    cloud.azure.interventions.set_node_image(ONE, "system", "AKSUbuntu-2204gen2containerd-202601.01.0")
    cloud.run()
    assert record(cloud).divergence.drift is None
    cloud.azure.interventions.set_node_image(ONE, "system", OLD)
    sweep(cloud)
    sweep(cloud)
    assert image(cloud) == OLD, "the approval of before is of no use to a later drift"
    assert record(cloud).generation == approved.generation


def test_two_approvals_of_the_same_are_one(cloud: MemoryCloud) -> None:
    shown = waiting(cloud)
    assert [approve(cloud, shown, by).status for by in ("ann", "bob")] == [202, 202]
    cloud.run()
    assert [reason for reason, _ in events(cloud)].count("Approved") == 1
    assert [reason for reason, _ in events(cloud)].count("Correcting") == 1
    assert approve(cloud, shown).status == 409


@pytest.mark.parametrize("queues", [("plans",), ("jobs", "changes")])
def test_a_crash_before_a_message_is_sent_loses_no_approval(
    cloud: MemoryCloud, queues: tuple[str, ...]
) -> None:
    shown = waiting(cloud)
    died = loses_a_message(cloud, *queues)
    assert approve(cloud, shown).status == 202
    sweep(cloud)
    cloud.run(seconds=3600, until=lambda: not record(cloud).job.active)
    assert died
    assert (image(cloud) > OLD, phases(cloud)) == (True, {"one": Phase.READY})
    assert record(cloud).divergence.corrections[0].times == 1


def test_a_record_that_a_sweep_writes_at_that_moment_is_approved_as_it_is_then(cloud: MemoryCloud) -> None:
    shown, written = waiting(cloud), list[bool]()
    save = cloud.ports.state.save

    def raced(after: ClusterRecord) -> ClusterRecord:
        if not written:
            written.append(True)
            save(replace(record(cloud), updated=cloud.clock()))
            raise Stale("written by a sweep")
        return save(after)

    around(cloud, "state", save=raced)
    assert approve(cloud, shown).status == 202
    cloud.run()
    assert written
    assert image(cloud) > OLD


def test_nothing_is_approved_in_a_suspension_or_while_a_job_runs(cloud: MemoryCloud) -> None:
    shown = waiting(cloud)
    body = '  minNodeImageVersion: "202101.01"\n' + TAGS + CORRECT + suspended(cloud, 5)
    push(cloud, files(body))
    cloud.run(seconds=600)
    answer = approve(cloud, shown)
    assert answer.status == 409
    assert "while its job has not ended" in answer.body["error"]
    handle(cloud, SweepRequest())
    cloud.run(seconds=3600)
    assert (image(cloud), phases(cloud)) == (OLD, {"one": Phase.SUSPENDED})


def test_a_replay_leaves_what_waits_for_an_approval(cloud: MemoryCloud) -> None:
    shown = waiting(cloud)
    assert replay("one", "bob", cloud.ports).status == 202
    cloud.run()
    sweep(cloud)
    assert (image(cloud), waiting(cloud), phases(cloud)) == (OLD, shown, {"one": Phase.READY})


def test_a_replay_is_refused_while_the_version_waits_for_an_approval() -> None:
    cloud = ready(pool() + CORRECT)
    before = pools(cloud)["apps"]
    kept = {key: before[key] for key in ("vmSize", "mode", "type", "osType", "tags", "count")}
    cloud.azure.delete_pool(ONE, "apps")
    cloud.clock.advance(LATER)
    cloud.azure.complete_due()
    cloud.azure.put_pool(ONE, "apps", {"properties": {**kept, "orchestratorVersion": "1.35"}})
    sweep(cloud)
    answer = replay("one", "bob", cloud.ports)
    assert answer.status == 409
    assert "nodePools[apps].orchestratorVersion needs an approval" in answer.body["error"]
    assert approve(cloud, waiting(cloud)).status == 202
    cloud.run()
    assert pools(cloud)["apps"]["orchestratorVersion"].startswith("1.36")
    assert phases(cloud) == {"one": Phase.READY}


def test_more_corrections_than_are_shown_are_left_to_a_replay() -> None:
    fields = [
        DriftDecision(Difference(f"a{n}", "x", "y"), DriftAction.APPROVE, effect="e") for n in range(26)
    ]
    now = datetime(2027, 1, 1, tzinfo=UTC)
    few, many = (drift_from(fields[:number], None, now) for number in (25, 26))
    assert few is not None
    assert many is not None
    assert (bool(few.correction), len(few.to_approve)) == (True, 25)
    assert (many.correction, many.to_approve) == ("", ())
    assert many.waits.startswith("more than 25 corrections need an approval")


def test_an_unknown_cluster_and_one_in_sync_have_nothing_to_approve() -> None:
    cloud = ready(CORRECT)
    assert approve_correction("other", "x", "ann", cloud.ports).status == 404
    answer = approve(cloud, "x")
    assert (answer.status, "needs an approval" in answer.body["error"]) == (409, True)


def test_a_correction_that_azure_refuses_fails_and_is_not_started_again_by_itself(cloud: MemoryCloud) -> None:
    writes = list[UpgradeNodeImage]()

    def refused(write: UpgradeNodeImage) -> None:
        writes.append(write)
        raise Unavailable("Azure did not answer")

    on_azure(cloud, UpgradeNodeImage, refused)
    approve(cloud, waiting(cloud))
    cloud.run(seconds=LATER)
    assert writes
    assert phases(cloud)["one"] is not Phase.READY
    assert approve(cloud, "x").status == 409
