"""Approvals by an external system: a signed statement that it approves a stage of a rollout.

The signature is that of Standard Webhooks (github.com/standard-webhooks/standard-webhooks), with a key for
each system. The statement names the fleet, the commit and the stage, and its time is signed with it: sent
again it is the same approval, which is the older one, and sent to another fleet it is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StrictStr, ValidationError

from shared.app.api import schema
from shared.app.api.access import Caller, Principal
from shared.app.api.acts import Refusal, answers, receipt
from shared.app.api.acts.rollout import MAX_REASON, why_not
from shared.app.api.audit import AuditedAct, audited
from shared.app.api.views.rollouts import shown
from shared.app.http_result import HttpResult, rejected
from shared.app.outbox import send
from shared.cluster.queues.message_parts import RolloutAct
from shared.cluster.queues.messages import ActRequest
from shared.masking import cut
from shared.ports import Ports
from shared.rollouts.rollout import Rollout
from shared.rollouts.rollout_acts import ActKind
from shared.standard_webhooks import is_signed, standard_webhooks_key

MAX_BODY_BYTES = 16 * 1024
TOLERANCE = timedelta(minutes=5)
"""How far the time of a statement may be from ours, as the libraries of Standard Webhooks have it."""
UNSIGNED = "the signature is not that of a key of this system"


class Statement(BaseModel):
    """What a system approves; ``by`` is who did so there, and ``reason`` why."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    fleet: StrictStr
    commit: Annotated[StrictStr, Field(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")]
    stage: Annotated[StrictStr, Field(min_length=1, max_length=63)]
    by: Annotated[StrictStr, Field(max_length=200)] = ""
    reason: Annotated[StrictStr, Field(max_length=MAX_REASON)] = ""


def receive_approval(
    system: str,
    headers: Mapping[str, str],
    body: bytes,
    keys: Mapping[str, str],
    ports: Ports,
    address: str,
) -> HttpResult:
    """Take the approval of a system from an ``address``; the case of ``headers`` does not matter.

    An unknown system and a wrong key have the same answer, before anything is parsed.
    """
    if len(body) > MAX_BODY_BYTES:
        return rejected(413, f"the body has {len(body)} bytes; at most {MAX_BODY_BYTES} are read")
    given, now = {name.lower(): value for name, value in headers.items()}, ports.clock()
    if not is_signed(given, body, _key_of(keys.get(system, ""))):
        return rejected(401, UNSIGNED)
    at = datetime.fromtimestamp(int(given["webhook-timestamp"]), UTC)
    if abs(at - now) > TOLERANCE:
        return rejected(400, f"the statement is of {at:%Y-%m-%dT%H:%M:%SZ}; send it within five minutes")
    try:
        statement = Statement.model_validate_json(body)
    except ValidationError:
        return rejected(400, 'the body must be {"fleet", "commit", "stage"}, and may have "by" and "reason"')
    caller = Caller(Principal(f"webhook:{system}", _named(system), frozenset()), address, "webhook")
    target = f"{statement.commit}/{statement.stage}"
    request = AuditedAct("rollout-approve", target, reason=_reason(statement))
    return audited(request, caller, ports, lambda: _approve(system, statement, at, ports))


@answers(202)
def _approve(system: str, statement: Statement, at: datetime, ports: Ports) -> schema.Receipt:
    if statement.fleet != ports.config.fleet:
        raise Refusal(403, f"the statement is about another fleet than {ports.config.fleet}")
    rollout, stage = ports.state.rollout(statement.commit), statement.stage
    if rollout is None:
        raise Refusal(404, f"the commit {statement.commit} has no rollout")
    rollout = shown(rollout, ports.state.fleet())
    if not any(planned.name == stage and planned.gate.system == system for planned in rollout.stages):
        raise Refusal(403, f"no stage {stage} of the rollout is approved by {system}")
    by = _named(system)
    if not _is_known(rollout, statement, by, at):
        problem = why_not(rollout, ActKind.APPROVE, stage, by, at)
        if problem:
            raise Refusal(409, problem)
        act = RolloutAct(
            commit=statement.commit,
            kind=ActKind.APPROVE.value,
            by=by,
            at=at,
            subject=stage,
            reason=_reason(statement),
        )
        send(ActRequest(act=act), ports)
    return receipt(f"{statement.commit}/{stage}", by)


def _is_known(rollout: Rollout, statement: Statement, by: str, at: datetime) -> bool:
    """Return whether a statement has come already: its sender may not have got our answer."""
    known = ((approval.subject, approval.by, approval.at) for approval in rollout.people.approved)
    return (statement.stage, by, at) in known


def _named(system: str) -> str:
    return f"{system} (webhook)"


def _reason(statement: Statement) -> str:
    return cut(": ".join(filter(None, (statement.by, statement.reason))), MAX_REASON)


def _key_of(secret: str) -> bytes:
    try:
        return standard_webhooks_key(secret)
    except ValueError:  # "" of an unknown system: the settings refuse any other text
        return b""
