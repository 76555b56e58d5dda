"""The stored forms of the version before: the way back from records and messages of today."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from shared.jobs import stored_forms
from shared.jobs.job import AcceptedWrite, Job, StepState, WriteKind
from shared.jobs.record import ClusterRecord
from shared.jobs.stored_record import to_json


def former(names: Mapping[str, str]) -> Mapping[str, str]:
    """Return the former name of each present one."""
    return {new: old for old, new in names.items()}


ERRORS, STEPS, CONDITIONS = map(former, (stored_forms.ERRORS, stored_forms.STEPS, stored_forms.CONDITIONS))


ADDED_FIELDS = (
    "installation",
    "life",
    "api_server",
    "overruled",
    "predecessors",
    "group_requested",
    "delete_accepted",
    "deleted",
    "running",
    "verified",
    "drift",
    "corrections",
    "inside",
    "windows",
    "loss",
    "recreating",
    "facts",
    "has_rival",
    "recent_events",
    "rollout",
    "removed_systems",
    "removed_configurations",
    "had_systems",
    "former_grants",
    "rebuilding",
    "cluster_uid",
    "compliance",
    "rebuilt_for",
    "held",
)
"""What a record of the version before does not have."""
ADDED_TO_CONDITIONS = ("observed_generation", "verified")


def as_before(record: ClusterRecord) -> dict[str, Any]:
    """Return a record as the version before would have stored it."""
    stored: dict[str, Any] = json.loads(to_json(record))
    for old, new in stored_forms.CLUSTER_FIELDS.items():
        stored[old] = stored.pop(new)
    stored["conditions"] = [_condition(condition) for condition in stored["conditions"]]
    stored["job"] = _job(record.job, stored["job"])
    return {key: value for key, value in stored.items() if key not in ADDED_FIELDS}


def with_added_fields(record: ClusterRecord) -> dict[str, Any]:
    """Return a record in the form of the version before, with what it lacks of the present one.

    The code of today wrote to Azure what these fields say; the version before would not have.
    """
    present = json.loads(to_json(record))
    return as_before(record) | {name: present[name] for name in ADDED_FIELDS}


def _condition(stored: dict[str, Any]) -> dict[str, Any]:
    kind = CONDITIONS.get(stored["type"], stored["type"])
    reasons = {"Retained": "Done", **ERRORS}
    kept = {name: value for name, value in stored.items() if name not in ADDED_TO_CONDITIONS}
    return {**kept, "type": kind, "reason": reasons.get(stored["reason"], stored["reason"])}


def _job(job: Job, stored: dict[str, Any]) -> dict[str, Any]:
    step, run = stored["step"], stored["next_run"]
    last, failure = job.step.last_write, step["failure"]
    if failure is not None:
        failure = {key: value for key, value in failure.items() if key != "attempts"}
        failure["kind"] = _error(failure["kind"])
    lease = stored["lease"] and {key: value for key, value in stored["lease"].items() if key != "due"}
    renamed = {**step, "lease": lease}
    return {
        **{key: stored[key] for key in ("recipe", "sequence", "started", "active", "restarts")},
        "step": STEPS.get(step["name"], step["name"]),
        "step_since": step["since"],
        "moved": None if step["last_progress"] == step["since"] else step["last_progress"],
        "tries": {_error(kind): count for kind, count in step["attempts"].items()},
        "attempts": job.attempts,
        "failure": failure,
        "wrote": _wrote(last) if last else "",
        "request_id": last.request_id if last else "",
        "part": _part(job.step),
        "part_since": (step["waiting_on"] or {}).get("since"),
        "next_at": run["at"],
        "reason": run["reason"],
        "person": run["action_required"],
        "reserved": run["reservations"],
        **{old: renamed[new] for old, new in stored_forms.JOB_FIELDS.items()},
    }


def _error(kind: str) -> str:
    return ERRORS.get(kind, kind)


def _wrote(write: AcceptedWrite) -> str:
    pool, again = f"{write.target}:" if write.target else "", ":again" if write.attempt == 2 else ""
    match write.kind:
        case WriteKind.PUT:
            return f"{pool}{write.digest}{again}"
        case WriteKind.DELETE:
            return f"{pool}deleted{again}"
        case WriteKind.UPGRADE_NODE_IMAGE:
            return f"{pool}image:{write.digest}"
        case WriteKind.DISABLE_AUTOSCALER:
            return f"rest {pool}{write.digest}"
        case WriteKind.EVICT_PODS:
            return f"drain {pool}{write.digest}"
        case WriteKind.TAG_FOREIGN_GROUP:
            return "a group of others"
        case WriteKind.START:  # the version before starts no cluster
            return ""


def _part(step: StepState) -> str:
    """Return the part that the step waits on, with the digest of its last evictions."""
    waiting, last = step.waiting_on, step.last_write
    if waiting is None:
        return ""
    evicted = last is not None and (last.kind, last.target) == (WriteKind.EVICT_PODS, waiting.key)
    return f"drain {waiting.key}:{last.digest}" if last and evicted else f"drain {waiting.key}"
