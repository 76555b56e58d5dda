"""The part of the HTTP API that is about notifications."""

from __future__ import annotations

import json
from collections.abc import Callable

import azure.functions as func

from handlers.reply import reply
from handlers.routes import Routes
from shared.app.api.access import Caller, Role
from shared.app.api.acts import requests as notify
from shared.app.api.audit import Request, audited
from shared.app.api.views.notifications import routes_view
from shared.app.http_result import HttpResult, rejected
from shared.ports import Ports


def add_notifications(routes: Routes, ports: Ports, reason: Callable[[func.HttpRequest], str]) -> None:
    """Add the list of the routes, and the test of one; ``reason`` reads why the caller acts."""

    @routes.add("notifications", "notifications", Role.READER)
    def listed(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        return reply(HttpResult(200, routes_view(ports)))

    @routes.add("notify_test", "notifications/test", Role.OPERATOR, method="POST")
    def test(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        name = _route_in(req.get_body())
        if name is None:
            return reply(rejected(400, notify.WRONG_BODY))
        act = Request("notify", name, reason=reason(req))
        return reply(audited(act, caller, ports, lambda: notify.try_route(name, caller.name, ports)))


def _route_in(body: bytes) -> str | None:
    """Return the route that a body names, None when the body has another form."""
    try:
        name = json.loads(body)["route"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return name if isinstance(name, str) and name else None
