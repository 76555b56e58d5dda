"""Acts of callers: each is saved before it happens and again with its result, and listed for operators."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime

from shared.app.api import schema
from shared.app.api.access import Caller
from shared.app.api.parts import whole_moments
from shared.app.api.projection import projected
from shared.app.http_result import MAX_NAME, HttpResult
from shared.cluster.failures.errors import ReconcileError
from shared.cluster.history import Act
from shared.frozen import dataclass, replace
from shared.masking import cut
from shared.ports import Ports
from shared.ports.state.app import newest_changes

log = logging.getLogger(__name__)

MAX_TEXT = 500
MAX_CLUSTERS = 10_000


@dataclass(frozen=True)
class AuditedAct:
    """What a caller asks for: an action on a target, the clusters that it concerns, and why."""

    action: str
    target: str
    clusters: tuple[str, ...] = ()
    reason: str = ""


def audited(
    request: AuditedAct, caller: Caller, ports: Ports, effect: Callable[[], HttpResult]
) -> HttpResult:
    """Carry an act out and return its result; without its record, nothing happens.

    An act that is interrupted keeps a record without a result, and so does one whose result cannot be saved.
    """
    act = Act(
        id=ports.unique(),
        at=ports.clock(),
        action=request.action,
        target=_storable(request.target, MAX_TEXT),
        by=caller.name,
        by_id=caller.principal.id,
        address=caller.address,
        client=caller.client,
        clusters=tuple(_storable(name, MAX_NAME) for name in request.clusters[:MAX_CLUSTERS]),
        reason=_storable(request.reason, MAX_TEXT),
    )
    ports.state.save_act(act)
    try:
        result = effect()
    except ReconcileError as error:
        _save_result(act, f"failed: {error.kind}: {error}", ports)
        raise
    _save_result(
        act, "accepted" if result.ok else f"refused: {result.body.get('error', result.status)}", ports
    )
    return result


def _save_result(act: Act, result: str, ports: Ports) -> None:
    """Save what came of an act; what happened is the caller's answer, also while the state is away."""
    try:
        ports.state.save_act(replace(act, result=_storable(result, MAX_TEXT)))
    except ReconcileError as error:
        log.warning("the act %s has no result in the audit: %s: %s", act.id, error.kind, error)


def _storable(text: str, limit: int) -> str:
    """Return a text of a caller as it can be stored: JSON may have half of a surrogate pair."""
    return cut(text, limit).encode(errors="replace").decode()


def audit_view(limit: int, before: datetime | None, ports: Ports) -> schema.Audit:
    """Return a page of acts, newest first."""
    acts, next_before = whole_moments(ports.state.acts, limit, before)
    return {"acts": [act_of(act) for act in acts], "next": next_before}


def acts_on(cluster: str, ports: Ports) -> list[schema.ActView]:
    """Return the acts on a cluster among the newest ones; a read is in the audit alone."""
    return [act_of(act) for act in newest_changes(ports.state) if cluster in act.clusters]


def act_of(act: Act) -> schema.ActView:
    """Return an act as the API shows it."""
    return projected(schema.ActView, act)
