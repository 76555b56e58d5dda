"""The audited acts on the fleet as a whole: its source, its apps, its pause, its dead letters and routes."""

from __future__ import annotations

from handlers import bodies
from handlers.act_route import ActCall, ActRoute
from shared.app.api import schema
from shared.app.api.access import Role
from shared.app.api.acts import fleet
from shared.app.api.audit import AuditedAct
from shared.app.http_result import HttpResult


def _on_letters(action: str, call: ActCall) -> AuditedAct:
    return AuditedAct(action, ", ".join(map("/".join, sorted(call.body.named))))


FLEET_ACTS = (
    ActRoute(
        "takeover_repository",
        "takeover",
        Role.APPROVER,
        schema.SourceReceipt,
        audit=lambda call: AuditedAct("takeover", call.ports.config.repository),
        act=lambda call: fleet.accept_source(call.by, call.ports),
    ),
    ActRoute(
        "sync",
        "sync",
        Role.OPERATOR,
        schema.SyncReceipt,
        audit=lambda call: AuditedAct("sync", call.ports.config.branch),
        act=lambda call: fleet.sync(call.by, call.ports),
    ),
    ActRoute(
        "examine",
        "doctor",
        Role.OPERATOR,
        schema.ExaminationReceipt,
        audit=lambda call: AuditedAct("examine", call.ports.config.fleet),
        act=lambda call: fleet.ask_apps(call.by, call.ports),
    ),
    ActRoute(
        "pause",
        "pause",
        Role.OPERATOR,
        schema.PauseReceipt,
        audit=lambda call: AuditedAct("pause", call.ports.config.fleet),
        act=lambda call: fleet.pause(call.reason, call.body.until, call.by, call.ports),
        body=bodies.UntilBody,
        needs_reason=True,
    ),
    ActRoute(
        "resume",
        "resume",
        Role.OPERATOR,
        schema.PauseReceipt,
        audit=lambda call: AuditedAct("resume", call.ports.config.fleet),
        act=lambda call: fleet.resume(call.by, call.ports),
    ),
    ActRoute(
        "replay_letters",
        "dead-letters/replay",
        Role.OPERATOR,
        schema.LettersReceipt,
        audit=lambda call: _on_letters("replay-letters", call),
        act=lambda call: fleet.replay_letters(call.body.named, call.by, call.ports),
        body=bodies.LettersBody,
    ),
    ActRoute(
        "dismiss",
        "dead-letters/dismiss",
        Role.OPERATOR,
        schema.DismissReceipt,
        audit=lambda call: _on_letters("dismiss", call),
        act=lambda call: HttpResult(200, fleet.dismiss(call.body.named, call.by, call.ports)),
        body=bodies.LettersBody,
    ),
    ActRoute(
        "notify_test",
        "notifications/test",
        Role.OPERATOR,
        schema.Receipt,
        audit=lambda call: AuditedAct("notify", call.body.route),
        act=lambda call: fleet.try_route(call.body.route, call.by, call.ports),
        body=bodies.RouteBody,
    ),
)
