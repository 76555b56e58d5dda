"""What the planner of the version before stored and sent, from records and requests of today."""

from __future__ import annotations

import json
from typing import Any

from pydantic import TypeAdapter

from shared.fleet.planning.holds import HoldKind
from shared.fleet.planning.plan import Item
from shared.jobs import stored_forms
from shared.jobs.messages import PlanRequest
from shared.ports import FleetRecord, PlanRecord
from simulation.version_before import ERRORS, former

_FLEET, _PLAN = TypeAdapter(FleetRecord), TypeAdapter(PlanRecord)
_FLEET_FIELDS = ("commit", "at", "problem", "waiting", "planning", "looked", "awaiting")
_PLAN_FIELDS = ("plan", "at", "open", "settled", "reported", "not_before", "approval")
_APPROVE = "roadstead approve releases the delete"
_REASONS = {
    HoldKind.INVALID_NEW_MANIFEST: "{problem}",
    HoldKind.INVALID_MANIFEST: "{problem} (the cluster stays at its last good spec)",
    HoldKind.INVALID_FLEET_FILE: "nothing is deleted while fleet.yaml is invalid",
    HoldKind.IMMUTABLE_FIELD: "{field} cannot change from {old} to {new}: "
    "it is fixed once a cluster exists; put it back",
    HoldKind.MOVE: "{field} cannot change from {old} to {new}: a cluster does not move; put it back",
    HoldKind.AWAITS_DELETION: "it is still being deleted; it will be created again once that has finished",
    HoldKind.BEING_DELETED: "it is being deleted",
    HoldKind.SUSPENSION: f"the cluster is suspended by {{owner}} until {{until}}; {_APPROVE}, "
    "or a commit after that time",
    HoldKind.DELETION_PROTECTION: f"deletionProtection is on; {_APPROVE}, or a commit that switches it off",
    HoldKind.DELETE_BUDGET: "the commit removes {removed} clusters, guards.deleteBudget in fleet.yaml allows "
    "{budget}; roadstead approve releases the deletes, or a commit that raises the budget",
}


def fleet_as_before(record: FleetRecord) -> dict[str, Any]:
    """Return the record of a fleet as the version before would have stored it."""
    stored = json.loads(_FLEET.dump_json(record))
    for old, new in stored_forms.FLEET_FIELDS.items():
        stored[old] = stored.pop(new)
    stored["problem"] = _problem(record)
    return {key: stored[key] for key in _FLEET_FIELDS}


def fleet_with_added_fields(record: FleetRecord) -> dict[str, Any]:
    """Return the record of a fleet in that form, with what it lacks of the present one."""
    present, renamed = json.loads(_FLEET.dump_json(record)), stored_forms.FLEET_FIELDS.values()
    added = {key: value for key, value in present.items() if key not in {*_FLEET_FIELDS, *renamed}}
    return {**added, **fleet_as_before(record)}


def _problem(record: FleetRecord) -> str:
    problem = record.problem
    if problem is None:
        return ""
    what = (
        "the repository could not be read: " + ERRORS.get(problem.kind, problem.kind)
        if problem.kind
        else _UNHANDLED
    )
    again = f"; approve {problem.approve_again} again" if problem.approve_again else ""
    return f"{what}: {problem.message}{again}"


_UNHANDLED = "a plan request could not be handled"


def plan_as_before(record: PlanRecord) -> dict[str, Any]:
    """Return the record of a plan as the version before would have stored it."""
    stored = json.loads(_PLAN.dump_json(record))
    del stored["plan"]["fleet_file_problem"]
    items = zip(record.plan.items, stored["plan"]["items"], strict=True)
    stored["plan"]["items"] = [_item(item, form) for item, form in items]
    return {key: stored[key] for key in _PLAN_FIELDS}


def plan_with_added_fields(record: PlanRecord) -> dict[str, Any]:
    """Return the record of a plan in that form, with what it lacks of the present one."""
    present = json.loads(_PLAN.dump_json(record))
    return {**present, **plan_as_before(record)}


def _item(item: Item, stored: dict[str, Any]) -> dict[str, Any]:
    if item.hold is not None and item.hold.kind not in _REASONS:
        return stored  # a hold that the version before did not have
    hold = stored.pop("hold")
    reason = _REASONS[item.hold.kind].format(**hold["details"]) if item.hold else ""
    action = former(stored_forms.ACTIONS).get(stored["action"], stored["action"])
    return {**stored, "action": action, "reason": reason, "held_delete": item.needs_approval}


def request_as_before(request: PlanRequest) -> dict[str, Any]:
    """Return a plan request as the version before would have sent it."""
    sent: dict[str, Any] = json.loads(request.model_dump_json())
    for old, new in former(stored_forms.REQUEST_FIELDS).items():
        if old in sent:
            sent[new] = sent.pop(old)
        if sent.get("doubt") and old in sent["doubt"]:
            sent["doubt"][new] = sent["doubt"].pop(old)
    return sent
