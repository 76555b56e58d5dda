"""The part of the HTTP API that is about rollouts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import azure.functions as func

from handlers.reply import reply
from handlers.routes import Routes
from shared.app.api.access import Caller, Role
from shared.app.api.acts import rollout as acts
from shared.app.api.audit import Request, audited
from shared.app.api.parts import Page
from shared.app.api.views.rollouts import rollout_view, rollouts_view
from shared.app.http_result import HttpResult, rejected
from shared.masking import cut
from shared.ports import Ports
from shared.rollouts.rollout import ActKind

Paged = Callable[[func.HttpRequest, Callable[[Page], Mapping[str, Any] | None], str], func.HttpResponse]

OF_ALL = (ActKind.PAUSE, ActKind.RESUME, ActKind.ABORT)
"""What an Operator may do; an approval, an override of windows and freezes, and what frees a part of
the failure budget, is an Approver's."""


def add_rollouts(
    routes: Routes, ports: Ports, reason: Callable[[func.HttpRequest], str], paged: Paged
) -> None:
    """Add the list, a rollout, and what people can do to it; ``reason`` reads why, ``paged`` which page."""

    @routes.add("rollouts", "rollouts", Role.READER)
    def listed(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        return reply(HttpResult(200, rollouts_view(ports)))

    @routes.add("rollout", "rollouts/{commit}", Role.READER)
    def one(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        commit = req.route_params["commit"]
        missing = f"the commit {cut(commit, 40)} has no rollout (give the full id)"
        return paged(req, lambda page: rollout_view(commit, ports, page), missing)

    for kind in OF_ALL:
        _add_act(routes, ports, reason, kind, Role.OPERATOR)
    _add_act(routes, ports, reason, ActKind.OVERRIDE, Role.APPROVER)
    _add_act(routes, ports, reason, ActKind.APPROVE, Role.APPROVER, "stage", acts.WRONG_STAGE)
    _add_act(routes, ports, reason, ActKind.SKIP, Role.APPROVER, "cluster", acts.WRONG_CLUSTER)


def _add_act(
    routes: Routes,
    ports: Ports,
    reason_of: Callable[[func.HttpRequest], str],
    kind: ActKind,
    role: Role,
    field: str = "",
    wrong: str = "",
) -> None:
    """Add an act; ``field`` of the body has what it is about, "" for the whole rollout."""

    @routes.add(f"rollout_{kind}", f"rollouts/{{commit}}/{kind}", role, method="POST")
    def act(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        commit, reason = req.route_params["commit"], reason_of(req)
        subject = _text_in(req.get_body(), field) if field else ""
        if subject is None:
            return reply(rejected(400, wrong))
        target = "/".join(filter(None, (commit, subject)))
        clusters = (subject,) if kind is ActKind.SKIP else ()
        request = Request(f"rollout-{kind}", target, clusters, reason)

        def effect() -> HttpResult:
            who = caller.principal
            return acts.act_on_rollout(
                commit,
                kind,
                subject,
                caller.name,
                ports,
                reason=reason,
                addresses=who.addresses,
                roles=who.roles,
                person=who.person,
            )

        return reply(audited(request, caller, ports, effect))


def _text_in(body: bytes, field: str) -> str | None:
    """Return a field of a body, None when the body has another form."""
    try:
        found = json.loads(body)[field]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return found if isinstance(found, str) and found else None
