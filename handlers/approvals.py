"""The API's approvals: of the deletes of a plan, and of the corrections of a cluster."""

from __future__ import annotations

import json
from collections.abc import Callable

import azure.functions as func

from handlers.reply import reply
from handlers.routes import Routes
from shared.app.api.access import Caller, Role
from shared.app.api.acts import approval
from shared.app.api.acts.approve_correction import approve_correction
from shared.app.api.audit import Request, audited
from shared.app.http_result import HttpResult, rejected
from shared.ports import Ports

WRONG_CORRECTION = 'the body must be {"correction": "..."}, with needsApproval of GET drift'


def add_approvals(routes: Routes, ports: Ports, reason_of: Callable[[func.HttpRequest], str]) -> None:
    """Add the routes; ``reason_of`` returns why the caller acts."""

    @routes.add("approve", "plans/{commit}/approve", Role.APPROVER, method="POST")
    def approve(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        names = clusters_in(req.get_body())
        if names is None:
            return reply(rejected(400, 'the body must be {"clusters": ["name", ...]}'))
        commit, reason = req.route_params["commit"], reason_of(req)
        act = Request("approve", commit, tuple(names), reason)
        addresses = caller.principal.addresses

        def effect() -> HttpResult:
            return approval.approve(commit, names, caller.name, ports, reason=reason, addresses=addresses)

        return reply(audited(act, caller, ports, effect))

    @routes.add("approve_correction", "clusters/{name}/approve", Role.APPROVER, method="POST")
    def approve_drift(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        correction = _correction_in(req.get_body())
        if correction is None:
            return reply(rejected(400, WRONG_CORRECTION))
        name, reason = req.route_params["name"], reason_of(req)
        act = Request("approve", f"{name}/{correction}", (name,), reason)

        def effect() -> HttpResult:
            return approve_correction(name, correction, caller.name, ports, reason=reason)

        return reply(audited(act, caller, ports, effect))


def clusters_in(body: bytes) -> list[str] | None:
    """Return the clusters that an approval names, None when the body is not an approval.

    The name of a cluster is ASCII. The record of the act has all names, and has room for those.
    """
    try:
        names = json.loads(body)["clusters"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return (
        names if isinstance(names, list) and all(isinstance(n, str) and n.isascii() for n in names) else None
    )


def _correction_in(body: bytes) -> str | None:
    """Return what identifies the corrections that an approval is of, None for a body of another form."""
    try:
        correction = json.loads(body)["correction"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return correction if isinstance(correction, str) and correction else None
