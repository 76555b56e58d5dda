"""Approving held deletes: exactly the set that is held, at exactly the commit that is planned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shared.jobs.messages import Approval, PlanRequest
from shared.pipeline.outbox import request_plan
from shared.ports import Ports

MAX_ACTOR = 100
NAMES_TOLD = 20


@dataclass(frozen=True)
class Answer:
    """The HTTP status and JSON object for the person who approves, or replays."""

    status: int
    body: Mapping[str, Any]


def approve(commit: str, clusters: Iterable[str], actor: str, ports: Ports) -> Answer:
    """Ask the planner to release the held deletes of a plan, if they are what is held now.

    Only the planner writes plans, so the approval travels in its request, and is checked there again. A
    later commit needs a new approval.
    """
    asked = frozenset(clusters)
    record = ports.state.plan(commit)
    if record is None:
        return Answer(404, {"error": f"the commit {commit[:40]} was not planned (give the full id)"})
    head = ports.state.fleet().commit
    if commit != head:
        return Answer(409, {"error": f"{commit[:8]} is not the planned commit any more; {head[:8]} is"})
    held = sorted(record.plan.held_deletes)
    if not held or sorted(asked) != held:
        words = f"an approval names exactly what is held: {_few(held)}"
        return Answer(409, {"error": words})
    by = actor[:MAX_ACTOR] or "operator"
    approval = Approval(commit=commit, clusters=tuple(held), by=by, at=ports.clock())
    message_id = f"approved:{commit}:{int(approval.at.timestamp())}"
    request_plan(
        PlanRequest(again=True, reason="approved", approval=approval), message_id=message_id, ports=ports
    )
    return Answer(202, {"queued": "plan", "commit": commit, "approved": sorted(asked), "by": approval.by})


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMES_TOLD} more" if len(names) > NAMES_TOLD else ""
    return (", ".join(names[:NAMES_TOLD]) or "nothing") + more
