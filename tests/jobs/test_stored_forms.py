"""Records and messages of the version before are still read: examples that it has written."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from shared.fleet.planning.holds import Hold, HoldKind
from shared.fleet.planning.plan import Action
from shared.jobs import stored_forms
from shared.jobs.failures.errors import InvalidManifest, Unavailable
from shared.jobs.failures.fleet_problem import FleetProblem
from shared.jobs.job import AcceptedWrite, Failure, WaitKind, WriteKind
from shared.jobs.messages import CheckMessage, JobMessage, PlanRequest, message_of_worker
from shared.jobs.outcomes import Done, Fail, Outcome, Retry, Wait
from shared.jobs.recipes import Step
from shared.jobs.record import ClusterRecord, ConditionReason, Phase
from shared.jobs.stored_record import from_json, to_json
from shared.jobs.transitions.apply_outcome import apply_outcome, postpone
from shared.ports import DeadLetter, FleetRecord, PlanRecord
from simulation.plans_before import fleet_as_before, plan_as_before, request_as_before
from simulation.version_before import as_before
from tests.support.cluster_records import NOW, later, record

RECORDED = Path(__file__).parent / "recorded"


def recorded(kind: str) -> dict[str, dict[str, Any]]:
    """Return what the version before stored, by a description of its state."""
    examples: dict[str, dict[str, Any]] = json.loads((RECORDED / f"{kind}.json").read_text())
    return examples


CLUSTERS, PLANS, FLEETS, MESSAGES = (recorded(kind) for kind in ("clusters", "plans", "fleets", "messages"))


def cluster(name: str) -> ClusterRecord:
    return from_json(json.dumps(CLUSTERS[name]), "v1")


def plan(name: str) -> PlanRecord:
    return TypeAdapter(PlanRecord).validate_python(stored_forms.upgrade_plan(PLANS[name]))


def fleet(name: str) -> FleetRecord:
    return TypeAdapter(FleetRecord).validate_python(stored_forms.upgrade_fleet(FLEETS[name]))


@pytest.mark.parametrize("name", CLUSTERS)
def test_a_record_of_the_version_before_loses_nothing(name: str) -> None:
    upgraded, stored = cluster(name), CLUSTERS[name]
    job = stored["job"]
    moved = job["moved"] if job["moved"] != job["step_since"] else None  # both mean the start of the step
    assert as_before(upgraded) == {**stored, "job": {**job, "moved": moved}}
    assert from_json(to_json(upgraded), "v1") == upgraded


PUT, DELETE = WriteKind.PUT, WriteKind.DELETE


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("provisioning, group of others", AcceptedWrite(WriteKind.TAG_FOREIGN_GROUP)),
        ("provisioning, cluster PUT accepted", AcceptedWrite(PUT, digest="700a7bf8243d7089")),
        ("provisioning, cluster PUT accepted again", AcceptedWrite(PUT, "", "7bb42ab6bd642d43", 2)),
        ("updating, node pool PUT accepted", AcceptedWrite(PUT, "apps", "0940db256086a67b")),
        ("updating, node pool deletion accepted again", AcceptedWrite(DELETE, "apps", attempt=2)),
        (
            "updating, node image",
            AcceptedWrite(WriteKind.UPGRADE_NODE_IMAGE, "system", "AKSUbuntu-2204gen2containerd-202511.01.0"),
        ),
        (
            "updating, autoscaler off, drain blocked",
            AcceptedWrite(WriteKind.DISABLE_AUTOSCALER, "apps", "c55c7019b4a5a185"),
        ),
        ("updating, drain in progress", AcceptedWrite(WriteKind.EVICT_PODS, "apps", "e4326d6ad3089e84")),
        ("deleting, cluster deletion accepted", AcceptedWrite(DELETE)),
        ("deleting, cluster deletion accepted again", AcceptedWrite(DELETE, attempt=2)),
        ("ready", None),
    ],
)
def test_the_last_accepted_write_becomes_a_record(name: str, write: AcceptedWrite | None) -> None:
    last = cluster(name).job.step.last_write
    assert last == write
    assert last is None or last.request_id == CLUSTERS[name]["job"]["request_id"]


@pytest.mark.parametrize(
    "name",
    [
        "updating, autoscaler off, drain blocked",
        "updating, drain in progress",
        "updating, drain blocked from the start",
    ],
)
def test_a_drain_keeps_its_time_limit(name: str) -> None:
    waiting = cluster(name).job.step.waiting_on
    assert waiting is not None
    assert (waiting.kind, waiting.key) == (WaitKind.DRAIN, "apps")
    assert waiting.since.isoformat().replace("+00:00", "Z") == CLUSTERS[name]["job"]["part_since"]


def test_an_even_older_record_has_the_defaults_of_missing_fields() -> None:
    required = ("recipe", "step", "sequence", "started", "step_since", "next_at")
    stored = CLUSTERS["ready"]
    job = {key: stored["job"][key] for key in required}
    older = {**stored, "job": {**job, "active": False}}
    for key in ("conditions", *stored_forms.CLUSTER_FIELDS):
        del older[key]
    upgraded = from_json(json.dumps(older), "v1")
    assert (upgraded.job.step, upgraded.job.active) == (cluster("ready").job.step, False)
    assert (upgraded.conditions, upgraded.creation_requested, upgraded.removed_keys) == ((), False, {})


@pytest.mark.parametrize(
    "outcome",
    [Wait(60, "Azure creates the cluster"), Retry(Unavailable("away")), Done(), Fail(InvalidManifest("no"))],
)
def test_what_delays_a_step_is_known_of_records_that_did_not_store_it(outcome: Outcome) -> None:
    after = apply_outcome(record(), outcome, now=NOW, jitter=0)
    stored = json.loads(to_json(after))
    assert stored["job"]["next_run"].pop("delay") == after.job.next_run.delay
    assert from_json(json.dumps(stored), "v1") == after


def test_a_reservation_delays_a_step_also_of_records_that_did_not_store_it() -> None:
    refused = apply_outcome(record(), Retry(Unavailable("away")), now=NOW, jitter=0)
    until = later(60)
    limited = postpone(refused, until=until, reason="full", reservations={"s|arm-read": (until,)}, now=NOW)
    stored = json.loads(to_json(limited))
    del stored["job"]["next_run"]["delay"]
    assert from_json(json.dumps(stored), "v1") == limited


def test_a_recheck_continues_under_the_new_name_of_its_error() -> None:
    step = cluster("deleting, not shown").job.step
    assert step.rechecking
    assert step.failure is not None
    assert (step.failure.kind, step.attempts["NotYetVisible"]) == ("NotYetVisible", step.failure.attempts)


def test_the_last_step_of_a_delete_knows_the_retained_resources() -> None:
    last = cluster("deleting, group left, last step")
    assert last.job.step.name is Step.FINALIZE
    left = [upgraded for upgraded in last.conditions if upgraded.reason == ConditionReason.RETAINED]
    assert [upgraded.type for upgraded in left] == ["ClusterDeleted", "ResourceGroupDeleted"]


def test_a_failed_job_has_its_failure_and_its_attempts() -> None:
    failed = cluster("failed")
    assert (failed.phase, failed.failed) == (Phase.FAILED, True)
    assert isinstance(failed.job.step.failure, Failure)
    assert failed.job.attempts == CLUSTERS["failed"]["job"]["attempts"]


@pytest.mark.parametrize(
    ("name", "hold"),
    [
        ("held by deletion protection", Hold(HoldKind.DELETION_PROTECTION)),
        ("held by the delete budget", Hold(HoldKind.DELETE_BUDGET, {"removed": "2", "budget": "1"})),
        ("held while fleet.yaml is invalid", Hold(HoldKind.INVALID_FLEET_FILE)),
        ("being deleted", Hold(HoldKind.BEING_DELETED)),
        ("invalid, new", Hold(HoldKind.INVALID_NEW_MANIFEST, {"problem": "f:1:1: wrong"})),
        ("moved", Hold(HoldKind.MOVE, {"field": "spec.location", "old": "eastus", "new": "westus2"})),
        (
            "refused",
            Hold(HoldKind.IMMUTABLE_FIELD, {"field": "spec.dnsPrefix", "old": "first", "new": "second"}),
        ),
    ],
)
def test_the_reason_of_an_item_becomes_a_hold(name: str, hold: Hold) -> None:
    assert {str(item.hold) for item in plan(name).plan.items if item.hold} == {str(hold)}
    assert hold in [item.hold for item in plan(name).plan.items]


def test_a_cluster_still_awaits_its_deletion_and_a_suspension_still_blocks_a_delete() -> None:
    items = {item.cluster: item for item in plan("held by a suspension, and awaiting a deletion").plan.items}
    assert items["a"].awaits_deletion
    assert items["b"].hold == Hold(
        HoldKind.SUSPENSION, {"owner": "team-a", "until": "2026-01-02T00:00:00+00:00"}
    )
    assert items["c"].hold is None


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_blocks_the_same_deletes_and_has_the_same_changes(name: str) -> None:
    stored, read = PLANS[name]["plan"]["items"], plan(name).plan.items
    assert [item.needs_approval for item in read] == [item["held_delete"] for item in stored]
    assert [bool(item.hold) for item in read] == [bool(item["reason"]) for item in stored]
    assert [vars(change) for item in read for change in item.changes] == [
        {**change, "effect": re.sub(r"node pool rotat\w+", "node pool replacement", change["effect"])}
        for item in stored
        for change in item["changes"]
    ]
    again = TypeAdapter(PlanRecord).dump_json(plan(name))
    assert TypeAdapter(PlanRecord).validate_python(stored_forms.upgrade_plan(json.loads(again))) == plan(name)


def test_the_problem_of_the_fleet_file_is_found_in_a_plan_that_was_stored_without_it() -> None:
    problems = [
        "clusters/a/cluster.yaml:1:1: wrong",
        "fleet.yaml:2:1: guards: wrong",
        "fleet.yaml:3:1: wrong",
    ]
    stored = {"plan": {"commit": "c", "items": [], "problems": problems}}
    assert stored_forms.upgrade_plan(stored)["plan"]["fleet_file_problem"] == problems[1]


def test_the_former_name_of_an_action_on_hold_is_read() -> None:
    (stored,) = recorded("plans_with_holds").values()
    found = TypeAdapter(PlanRecord).validate_python(stored_forms.upgrade_plan(stored)).plan
    assert {item.action for item in found.items} == {Action.ON_HOLD}
    assert found.deletes_needing_approval == {"one"}
    assert found.summary == "1 needs approval, 1 on hold"


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        (
            "unreadable, approval lost",
            FleetProblem("the token has expired", "Unauthenticated", "0c5e7fbe"),
        ),
        (
            "unreadable while planning",
            FleetProblem("the tree of ef7d44ca91355c6502ecceb8ca62f4e61fe8c018 is truncated", "Unavailable"),
        ),
        ("dead letter", FleetProblem("MaxDeliveryCountExceeded: after 10 attempts")),
        (
            "dead letter, approval lost",
            FleetProblem("MaxDeliveryCountExceeded: after 10 attempts", approve_again="cccccccc"),
        ),
        ("waiting", None),
    ],
)
def test_the_problem_of_a_fleet_becomes_a_record(name: str, problem: FleetProblem | None) -> None:
    upgraded = fleet(name)
    assert upgraded.problem == problem
    assert (upgraded.commit, upgraded.planning, upgraded.waiting) == tuple(
        FLEETS[name][key] for key in ("commit", "planning", "waiting")
    )


def test_a_fleet_still_knows_which_clusters_await_their_deletion_and_when_its_head_was_read() -> None:
    assert (fleet("awaiting a deletion").awaiting_deletion, fleet("awaiting a deletion").head_read_at) == (
        ("a",),
        NOW,
    )


@pytest.mark.parametrize("name", MESSAGES)
def test_a_queued_message_of_the_version_before_is_read(name: str) -> None:
    text = json.dumps(MESSAGES[name])
    if name.startswith("job"):
        assert json.loads(JobMessage.model_validate_json(text).model_dump_json()) == MESSAGES[name]
        return
    stored, read = MESSAGES[name], PlanRequest.model_validate_json(text)
    assert (read.kind, read.commit, read.pull, read.again) == tuple(
        stored[key] for key in ("kind", "commit", "pull", "again")
    )
    assert bool(read.approval) == bool(stored["approval"])
    field, reads = stored_forms.REQUEST_FIELDS
    assert (read.confirmation.reads if read.confirmation else None) == (stored[field] or {}).get(reads)


@pytest.mark.parametrize("again", [True, False])
def test_a_check_that_the_version_before_asked_for_is_read(again: bool) -> None:
    sent = {"schema_version": 1, "check": "1", "clusters": ["one"], "again": again, "attempt": 2}
    read = message_of_worker(json.dumps(sent).encode())
    assert read == CheckMessage(check="1", clusters=("one",), attempt=2)


def test_a_dead_letter_of_the_version_before_is_read() -> None:
    for stored in recorded("dead_letters").values():
        letter = TypeAdapter(DeadLetter).validate_python(stored)
        assert json.loads(TypeAdapter(DeadLetter).dump_json(letter)) == stored


@pytest.mark.parametrize("name", PLANS)
def test_the_way_back_of_a_plan_is_read_as_that_plan(name: str) -> None:
    stored = plan_as_before(plan(name))
    assert stored.keys() == PLANS[name].keys()
    assert TypeAdapter(PlanRecord).validate_python(stored_forms.upgrade_plan(stored)) == plan(name)


@pytest.mark.parametrize("name", FLEETS)
def test_the_way_back_of_a_fleet_is_what_the_version_before_stored(name: str) -> None:
    stored = fleet_as_before(fleet(name))
    assert stored == FLEETS[name]


@pytest.mark.parametrize("name", [name for name in MESSAGES if "kind" in MESSAGES[name]])
def test_the_way_back_of_a_plan_request_is_read_as_that_request(name: str) -> None:
    sent = request_as_before(PlanRequest.model_validate(MESSAGES[name]))
    assert PlanRequest.model_validate(sent) == PlanRequest.model_validate(MESSAGES[name])
    assert "confirmation" not in json.dumps(sent)
