"""Approvals of deletes: exactly the set that needs approval, at exactly the commit that was planned last."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shared.jobs.failures.errors import TooLarge
from shared.jobs.messages import Approval, PlanRequest
from shared.masking import cut
from shared.pipeline.api import schema
from shared.pipeline.api.acts.other_approver import refused_by_authors
from shared.pipeline.http_result import HttpResult, rejected
from shared.pipeline.outbox import request_plan
from shared.ports import Ports
from shared.some_of import some_of

MAX_ACTOR = 100
NAMES_SHOWN = 20


def approve(
    commit: str,
    clusters: Iterable[str],
    actor: str,
    ports: Ports,
    *,
    reason: str = "",
    addresses: frozenset[str] = frozenset(),
) -> HttpResult:
    """Ask the planner to carry out the deletes of a plan, if they are exactly those that need approval.

    ``addresses`` are those of the person who approves, for a fleet in which somebody else has to.

    Only the planner writes plans, so the approval travels in its request, and the planner checks it again.
    """
    requested = frozenset(clusters)
    plan_record = ports.state.plan(commit)
    if plan_record is None:
        return rejected(404, f"the commit {cut(commit, 40)} was not planned (give the full id)")
    head = ports.state.fleet().commit
    if commit != head:
        return rejected(409, f"{commit[:8]} is no longer the commit that was planned last; {head[:8]} is")
    deletes = sorted(plan_record.plan.deletes_needing_approval)
    if not deletes or sorted(requested) != deletes:
        return rejected(409, f"an approval names exactly the deletes that need it: {_first(deletes)}")
    if ports.config.approval_by_others:
        rebuilds = {item.cluster for item in plan_record.plan.items if item.rebuilds}
        refusal = refused_by_authors(commit, deletes, rebuilds, addresses, ports)
        if refusal is not None:
            return refusal
    by, now = operator(actor), ports.clock()
    approval = Approval(commit=commit, clusters=tuple(deletes), by=by, at=now, reason=reason)
    message_id = f"approved:{commit}:{int(approval.at.timestamp())}"
    request = PlanRequest(again=True, reason="approved", approval=approval)
    try:
        request_plan(request, message_id=message_id, ports=ports)
    except TooLarge:
        return rejected(413, f"{len(deletes)} deletes are too many for one approval; commit them in parts")
    receipt: schema.ApprovalReceipt = {
        "queued": "plan",
        "commit": commit,
        "approved": deletes,
        "by": approval.by,
    }
    return HttpResult(202, receipt)


def operator(actor: str) -> str:
    """Return how events and plans name the caller of an action."""
    return cut(actor, MAX_ACTOR) or "operator"


def _first(names: Sequence[str]) -> str:
    return some_of(names, NAMES_SHOWN) or "none"
