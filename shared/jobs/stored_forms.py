"""The stored forms of the version before, translated into those of today.

Each function takes and returns a JSON object. A value that is already of today passes unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from shared.fleet.planning.holds import HoldKind
from shared.jobs.job import WaitKind, WriteKind

_Json = dict[str, Any]

_ERRORS = {"NotShown": "NotYetVisible"}
_STEPS = {"forget": "finalize"}
_CONDITIONS = {"Forgotten": "Finalized"}


def upgrade_cluster(stored: Mapping[str, Any]) -> _Json:
    """Return the record of a cluster."""
    if not isinstance(stored["job"]["step"], str):
        return dict(stored)
    renamed = {"begun": "creation_requested", "owned": "was_tagged", "dropped": "removed_keys"}
    conditions = [_condition(condition) for condition in stored.get("conditions", ())]
    return {**_renamed(stored, renamed), "job": _job(stored["job"]), "conditions": conditions}


def _renamed(stored: Mapping[str, Any], names: Mapping[str, str]) -> _Json:
    return {names.get(key, key): value for key, value in stored.items()}


def _condition(stored: _Json) -> _Json:
    """A resource that a deletion leaves in Azure was recognised by the message of its condition."""
    deletion = stored["type"] in ("ClusterDeleted", "ResourceGroupDeleted")
    retained = deletion and stored["reason"] == "Done" and stored["message"].startswith("left ")
    reason = "Retained" if retained else _ERRORS.get(stored["reason"], stored["reason"])
    return {**stored, "type": _CONDITIONS.get(stored["type"], stored["type"]), "reason": reason}


_NO_JOB: _Json = {
    **dict.fromkeys(("reason", "wrote", "request_id", "part", "person"), ""),
    **dict.fromkeys(("moved", "part_since", "failure", "claim")),
    **{"active": True, "attempts": 0, "tries": {}, "lost": 0, "looked": False, "restarts": 0, "reserved": {}},
}
"""The defaults of fields that were added over time: a record that nothing has changed since lacks them."""


def _job(found: _Json) -> _Json:
    stored = _NO_JOB | found
    return {
        "recipe": stored["recipe"],
        "sequence": stored["sequence"],
        "started": stored["started"],
        "step": {
            "name": _STEPS.get(stored["step"], stored["step"]),
            "since": stored["step_since"],
            "last_progress": stored["moved"] or stored["step_since"],
            "attempts": {_ERRORS.get(kind, kind): count for kind, count in stored["tries"].items()},
            "failure": _failure(stored["failure"], stored["attempts"]),
            "last_write": _accepted_write(stored["wrote"], stored["request_id"]),
            "waiting_on": _waiting_on(stored["part"], stored["part_since"]),
            "rechecking": stored["looked"],
            "abandoned_leases": stored["lost"],
        },
        "next_run": {
            "at": stored["next_at"],
            "reason": stored["reason"],
            "action_required": stored["person"],
            "reservations": stored["reserved"],
        },
        "active": stored["active"],
        "restarts": stored["restarts"],
        "lease": stored["claim"],
    }


def _failure(stored: _Json | None, attempts: int) -> _Json | None:
    if stored is None:
        return None
    return {**stored, "kind": _ERRORS.get(stored["kind"], stored["kind"]), "attempts": attempts}


_WRITES = (
    (re.compile(r"a group of others"), WriteKind.TAG_FOREIGN_GROUP),
    (re.compile(r"drain (?P<target>[^:]*):(?P<digest>.*)"), WriteKind.EVICT_PODS),
    (re.compile(r"rest (?P<target>[^:]*):(?P<digest>.*)"), WriteKind.DISABLE_AUTOSCALER),
    (re.compile(r"(?P<target>[^:]*):image:(?P<digest>.*)"), WriteKind.UPGRADE_NODE_IMAGE),
    (re.compile(r"((?P<target>[^:]*):)?deleted(?P<again>:again)?"), WriteKind.DELETE),
    (re.compile(r"(?P<digest>[^:]*)(?P<again>:again)?"), WriteKind.PUT),
    (re.compile(r"(?P<target>[^:]*):(?P<digest>[^:]*)(?P<again>:again)?"), WriteKind.PUT),
)
"""The texts that described the last accepted write; the first that matches counts."""


def _accepted_write(text: str, request_id: str) -> _Json | None:
    if not text:
        return None
    for pattern, kind in _WRITES:
        found = pattern.fullmatch(text)
        if found:
            parts = found.groupdict()
            write = {name: parts.get(name) or "" for name in ("target", "digest")}
            return {
                "kind": kind,
                **write,
                "attempt": 2 if parts.get("again") else 1,
                "request_id": request_id,
            }
    return None


def _waiting_on(text: str, since: str | None) -> _Json | None:
    found = re.fullmatch(r"drain (?P<pool>[^:]*)(:.*)?", text)
    return {"kind": WaitKind.DRAIN, "key": found["pool"], "since": since} if found and since else None


_APPROVE = "roadstead approve releases the delete"
_HOLDS = (
    (
        r"it is still being deleted; it will be created again once that has finished",
        HoldKind.AWAITS_DELETION,
    ),
    (r"it is being deleted", HoldKind.BEING_DELETED),
    (r"nothing is deleted while fleet\.yaml cannot be used", HoldKind.INVALID_FLEET_FILE),
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
"""The reasons that items gave; the first that matches counts."""


def upgrade_plan(stored: Mapping[str, Any]) -> _Json:
    """Return the record of a plan."""
    plan = stored["plan"]
    return {**stored, "plan": {**plan, "items": [_item(item) for item in plan.get("items", ())]}}


_EFFECTS = {
    "node pool rotation": "node pool replacement",
    "node pool rotation, unless it is so in Azure": "node pool replacement, unless Azure has this value",
    "left as it is": "no longer managed",
    "fixed: must be as it is in Azure": "fixed: must equal the value in Azure",
}


def _item(stored: _Json) -> _Json:
    stored = {**stored, "changes": [_change(change) for change in stored.get("changes", ())]}
    if "reason" not in stored:
        return stored
    rest = {key: value for key, value in stored.items() if key not in ("reason", "held_delete")}
    return {**rest, "hold": _hold(stored["reason"])}


def _change(stored: _Json) -> _Json:
    effect = stored.get("effect", "")
    return {**stored, "effect": _EFFECTS.get(effect, effect)}


def _hold(reason: str) -> _Json | None:
    if not reason:
        return None
    for pattern, kind in _HOLDS:
        found = re.fullmatch(pattern, reason, re.DOTALL)
        if found:
            return {"kind": kind, "details": found.groupdict()}
    return None


_PROBLEM = re.compile(
    r"(the repository could not be read: (?P<kind>\w+)|a plan request could not be handled): (?P<message>.*?)"
    r"(; approve (?P<commit>[0-9a-f]+) again)?",
    re.DOTALL,
)


def upgrade_fleet(stored: Mapping[str, Any]) -> _Json:
    """Return the record of a fleet."""
    found = _renamed(stored, {"looked": "head_read_at", "awaiting": "awaiting_deletion"})
    if isinstance(found.get("problem"), str):
        found["problem"] = _problem(found["problem"])
    return found


def _problem(text: str) -> _Json | None:
    found = _PROBLEM.fullmatch(text)
    if found is None:
        return {"message": text} if text else None
    kind = found["kind"] or ""
    return {
        "message": found["message"],
        "kind": _ERRORS.get(kind, kind),
        "approve_again": found["commit"] or "",
    }


def upgrade_plan_request(read: Mapping[str, Any]) -> _Json:
    """Return a plan request."""
    if "doubt" not in read:
        return dict(read)
    found = _renamed(read, {"doubt": "confirmation"})
    if found["confirmation"] is not None:
        found["confirmation"] = _renamed(found["confirmation"], {"looks": "reads"})
    return found
