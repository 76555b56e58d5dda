"""The stored forms of the version before, translated into those of today.

Each function takes and returns a JSON object. A value that is already of today passes unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from shared.fleet.planning.holds import HoldKind
from shared.jobs.job import Delay, WaitKind, WriteKind

_JsonObject = dict[str, Any]


def _names(**names: str) -> Mapping[str, str]:
    """Return the present name of each former one."""
    return names


ERRORS = _names(NotShown="NotYetVisible")
STEPS = _names(forget="finalize")
ACTIONS = _names(held="on-hold")
CONDITIONS = _names(Forgotten="Finalized")
CLUSTER_FIELDS = _names(begun="creation_requested", owned="was_tagged", dropped="removed_keys")
JOB_FIELDS = _names(claim="lease", looked="rechecking", lost="abandoned_leases")
FLEET_FIELDS = _names(looked="head_read_at", awaiting="awaiting_deletion")
REQUEST_FIELDS = _names(doubt="confirmation", looks="reads")


def upgrade_cluster(stored: Mapping[str, Any]) -> _JsonObject:
    """Return the record of a cluster."""
    if not isinstance(stored["job"]["step"], str):
        return {**stored, "job": _with_delay(stored["job"])}
    conditions = [_condition(condition) for condition in stored.get("conditions", ())]
    return {
        **_renamed(stored, CLUSTER_FIELDS),
        "job": _with_delay(_job(stored["job"])),
        "conditions": conditions,
    }


def _renamed(stored: Mapping[str, Any], names: Mapping[str, str]) -> _JsonObject:
    return {names.get(key, key): value for key, value in stored.items()}


def _condition(stored: _JsonObject) -> _JsonObject:
    """Return a condition; its message showed that a deletion had left the resource in Azure."""
    deletion = stored["type"] in ("ClusterDeleted", "ResourceGroupDeleted")
    retained = deletion and stored["reason"] == "Done" and stored["message"].startswith("left ")
    reason = "Retained" if retained else ERRORS.get(stored["reason"], stored["reason"])
    return {**stored, "type": CONDITIONS.get(stored["type"], stored["type"]), "reason": reason}


_NO_JOB: _JsonObject = {
    **dict.fromkeys(("reason", "wrote", "request_id", "part", "person"), ""),
    **dict.fromkeys(("moved", "part_since", "failure", "lease")),
    **{"active": True, "attempts": 0, "tries": {}, "restarts": 0, "reserved": {}},
    **{"abandoned_leases": 0, "rechecking": False},
}
"""The defaults of fields that were added over time: a record that was not saved since lacks them."""


def _job(job: _JsonObject) -> _JsonObject:
    stored = _NO_JOB | _renamed(job, JOB_FIELDS)
    return {
        "recipe": stored["recipe"],
        "sequence": stored["sequence"],
        "started": stored["started"],
        "step": {
            "name": STEPS.get(stored["step"], stored["step"]),
            "since": stored["step_since"],
            "last_progress": stored["moved"] or stored["step_since"],
            "attempts": {ERRORS.get(kind, kind): count for kind, count in stored["tries"].items()},
            "failure": _failure(stored["failure"], stored["attempts"]),
            "last_write": _accepted_write(stored["wrote"], stored["request_id"]),
            "waiting_on": _waiting_on(stored["part"], stored["part_since"]),
            "rechecking": stored["rechecking"],
            "abandoned_leases": stored["abandoned_leases"],
        },
        "next_run": {
            "at": stored["next_at"],
            "reason": stored["reason"],
            "action_required": stored["person"],
            "reservations": stored["reserved"],
        },
        "active": stored["active"],
        "restarts": stored["restarts"],
        "lease": stored["lease"],
    }


def _with_delay(job: _JsonObject) -> _JsonObject:
    """Return a job with what delays its next run; its sentences and its last failure implied that."""
    run = job["next_run"]
    if "delay" in run:
        return job
    if not job["active"]:
        delay = Delay.NONE
    elif run["reservations"]:
        delay = Delay.RATE_LIMIT
    elif job["step"]["failure"]:
        delay = Delay.RETRY
    else:
        delay = Delay.WAIT if run["reason"] else Delay.NONE
    return {**job, "next_run": {**run, "delay": delay}}


def _failure(stored: _JsonObject | None, attempts: int) -> _JsonObject | None:
    if stored is None:
        return None
    return {**stored, "kind": ERRORS.get(stored["kind"], stored["kind"]), "attempts": attempts}


_WRITES = (
    (re.compile(r"a group of others"), WriteKind.TAG_FOREIGN_GROUP),
    (re.compile(r"drain (?P<target>[^:]*):(?P<digest>.*)"), WriteKind.EVICT_PODS),
    (re.compile(r"rest (?P<target>[^:]*):(?P<digest>.*)"), WriteKind.DISABLE_AUTOSCALER),
    (re.compile(r"(?P<target>[^:]*):image:(?P<digest>.*)"), WriteKind.UPGRADE_NODE_IMAGE),
    (re.compile(r"((?P<target>[^:]*):)?deleted(?P<again>:again)?"), WriteKind.DELETE),
    (re.compile(r"(?P<digest>[^:]*)(?P<again>:again)?"), WriteKind.PUT),
    (re.compile(r"(?P<target>[^:]*):(?P<digest>[^:]*)(?P<again>:again)?"), WriteKind.PUT),
)
"""The texts of the last accepted write; the first expression that matches counts."""


def _accepted_write(text: str, request_id: str) -> _JsonObject | None:
    if not text:
        return None
    for pattern, kind in _WRITES:
        match = pattern.fullmatch(text)
        if match:
            parts = match.groupdict()
            write = {name: parts.get(name) or "" for name in ("target", "digest")}
            return {
                "kind": kind,
                **write,
                "attempt": 2 if parts.get("again") else 1,
                "request_id": request_id,
            }
    return None


def _waiting_on(text: str, since: str | None) -> _JsonObject | None:
    match = re.fullmatch(r"drain (?P<pool>[^:]*)(:.*)?", text)
    return {"kind": WaitKind.DRAIN, "key": match["pool"], "since": since} if match and since else None


_APPROVE = "roadstead approve releases the delete"
_HOLDS = (
    (
        r"it is still being deleted; it will be created again once that has finished",
        HoldKind.AWAITS_DELETION,
    ),
    (r"it is being deleted", HoldKind.BEING_DELETED),
    (r"nothing is deleted while fleet\.yaml .*", HoldKind.INVALID_FLEET_FILE),
    (rf"deletionProtection is on; {_APPROVE}.*", HoldKind.DELETION_PROTECTION),
    (
        rf"the cluster is suspended by (?P<owner>.*) until (?P<until>\S+); {_APPROVE}.*",
        HoldKind.SUSPENSION,
    ),
    (
        rf"the commit removes (?P<removed>\d+) clusters, .* allows (?P<budget>\d+); {_APPROVE}.*",
        HoldKind.DELETE_BUDGET,
    ),
    (
        r"(?P<field>spec\.\w+) cannot change from (?P<old>.*) to (?P<new>.*): a cluster does not move; .*",
        HoldKind.MOVE,
    ),
    (
        r"(?P<field>\S+) cannot change from (?P<old>.*) to (?P<new>.*): it is fixed once a cluster exists;.*",
        HoldKind.IMMUTABLE_FIELD,
    ),
    (r"(?P<problem>.*) \(the cluster stays at its last good spec\)", HoldKind.INVALID_MANIFEST),
    (r"(?P<problem>.*)", HoldKind.INVALID_NEW_MANIFEST),
)
"""The reasons of items; the first expression that matches counts."""


def upgrade_plan(stored: Mapping[str, Any]) -> _JsonObject:
    """Return the record of a plan."""
    plan = {**stored["plan"]}
    plan["items"] = [_item(item) for item in plan.get("items", ())]
    if "fleet_file_problem" not in plan:
        problems = plan.get("problems", ())
        plan["fleet_file_problem"] = next((text for text in problems if text.startswith("fleet.yaml:")), "")
    return {**stored, "plan": plan}


_EFFECTS = (
    (r"node pool rotat\w+", "node pool replacement"),
    (r"node pool rotat\w+, unless it is so in Azure", "node pool replacement, unless Azure has this value"),
    (r"left as it is", "no longer managed"),
    (r"fixed: must be as it is in Azure", "fixed: must equal the value in Azure"),
)
"""The effects of changes, as expressions, and their present names."""


def _item(stored: _JsonObject) -> _JsonObject:
    action = stored["action"]
    stored = {
        **stored,
        "action": ACTIONS.get(action, action),
        "changes": [_change(change) for change in stored.get("changes", ())],
    }
    if "reason" not in stored:
        return stored
    rest = {key: value for key, value in stored.items() if key not in ("reason", "held_delete")}
    return {**rest, "hold": _hold(stored["reason"])}


def _change(stored: _JsonObject) -> _JsonObject:
    return {**stored, "effect": _effect(stored.get("effect", ""))}


@lru_cache(maxsize=100)
def _effect(stored: str) -> str:
    """Return the present name of an effect; a plan has thousands of changes, and few effects."""
    return next((new for old, new in _EFFECTS if re.fullmatch(old, stored)), stored)


def _hold(reason: str) -> _JsonObject | None:
    if not reason:
        return None
    for pattern, kind in _HOLDS:
        match = re.fullmatch(pattern, reason, re.DOTALL)
        if match:
            return {"kind": kind, "details": match.groupdict()}
    return None


_PROBLEM = re.compile(
    r"(the repository could not be read: (?P<kind>\w+)|a plan request could not be handled): (?P<message>.*?)"
    r"(; approve (?P<commit>[0-9a-f]+) again)?",
    re.DOTALL,
)


def upgrade_fleet(stored: Mapping[str, Any]) -> _JsonObject:
    """Return the record of a fleet."""
    fleet = _renamed(stored, FLEET_FIELDS)
    if isinstance(fleet.get("problem"), str):
        fleet["problem"] = _problem(fleet["problem"])
    head = (fleet.get("last_read") or {}).get("head") or {}
    if "repository" not in head:  # a read lasts for seconds, so the next one takes its place
        fleet["last_read"] = None
    return fleet


def _problem(text: str) -> _JsonObject | None:
    match = _PROBLEM.fullmatch(text)
    if match is None:
        return {"message": text} if text else None
    kind = match["kind"] or ""
    return {
        "message": match["message"],
        "kind": ERRORS.get(kind, kind),
        "approve_again": match["commit"] or "",
    }


def upgrade_check(sent: Mapping[str, Any]) -> _JsonObject:
    """Return a request for a check; it said whether it repeats, which the record decides now."""
    return {key: value for key, value in sent.items() if key != "again"}


def upgrade_plan_request(sent: Mapping[str, Any]) -> _JsonObject:
    """Return a plan request."""
    request = _renamed(sent, REQUEST_FIELDS)
    if isinstance(request.get("confirmation"), Mapping):
        request["confirmation"] = _renamed(request["confirmation"], REQUEST_FIELDS)
    return request
