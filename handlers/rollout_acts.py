"""The audited acts on rollouts and promotions.

What an Operator may do to a rollout are pause, resume and abort. An approval, an override of windows and
freezes, and what frees a part of the failure budget, is an Approver's.
"""

from __future__ import annotations

from handlers import bodies
from handlers.act_route import ActCall, ActRoute, of_rollout
from handlers.bodies import Body
from shared.app.api import schema
from shared.app.api.access import Role
from shared.app.api.acts import pulls, rollout
from shared.app.api.audit import AuditedAct
from shared.app.http_result import HttpResult
from shared.rollouts.rollout_acts import ActKind


def _of_rollout(
    kind: ActKind,
    role: Role,
    body: type[Body] = Body,
    subject: str = "",
    *,
    needs_reason: bool = False,
) -> ActRoute:
    """Return an act on a rollout; ``subject`` is the field of a body with what it is about."""

    def audit(call: ActCall) -> AuditedAct:
        about = getattr(call.body, subject) if subject else ""
        target = "/".join(filter(None, (call.path["commit"], about)))
        return AuditedAct(f"rollout-{kind}", target, (about,) if kind is ActKind.SKIP else ())

    def act(call: ActCall) -> HttpResult:
        who = call.caller.principal
        return rollout.act_on_rollout(
            call.path["commit"],
            kind,
            getattr(call.body, subject) if subject else "",
            call.by,
            call.ports,
            reason=call.reason,
            addresses=who.addresses,
            roles=who.roles_in(of_rollout(call)),
            person=who.person,
        )

    name, path = f"rollout_{kind}", f"rollouts/{{commit}}/{kind}"
    return ActRoute(
        name,
        path,
        role,
        schema.Receipt,
        audit,
        act,
        body,
        needs_reason,
        concerns=of_rollout,
    )


ROLLOUT_ACTS = (
    *(
        _of_rollout(kind, Role.OPERATOR)
        for kind in (ActKind.PAUSE, ActKind.RESUME, ActKind.ABORT, ActKind.BACK)
    ),
    _of_rollout(ActKind.OVERRIDE, Role.APPROVER, needs_reason=True),
    _of_rollout(ActKind.APPROVE, Role.APPROVER, bodies.StageBody, "stage"),
    _of_rollout(ActKind.SKIP, Role.APPROVER, bodies.MemberBody, "cluster"),
    ActRoute(
        "promote",
        "promotions",
        Role.OPERATOR,
        schema.PromotionReceipt,
        audit=lambda call: AuditedAct("promote", f"{call.body.source}/{call.body.target}"),
        act=lambda call: pulls.promote(
            call.body.source, call.body.target, call.body.what, call.by, call.ports, call.reason
        ),
        body=bodies.PromotionBody,
        concerns=lambda call: (call.body.target,),
    ),
)
