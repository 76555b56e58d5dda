"""The part of the HTTP API that is about promotions."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import azure.functions as func

from handlers.reply import reply
from handlers.routes import Routes
from shared.app.api.access import Caller, Role
from shared.app.api.acts.promote import WRONG_PROMOTION, promote
from shared.app.api.audit import Request, audited
from shared.app.api.views.promotions import promotions_view
from shared.app.http_result import HttpResult, rejected
from shared.ports import Ports


def add_promotions(routes: Routes, ports: Ports, reason_of: Callable[[func.HttpRequest], str]) -> None:
    """Add the list of promotions, and the request for one; ``reason_of`` reads why the caller acts."""

    @routes.add("promotions", "promotions", Role.READER)
    def listed(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        return reply(HttpResult(200, promotions_view(ports)))

    @routes.add("promote", "promotions", Role.OPERATOR, method="POST")
    def ask(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        asked = _asked_in(req.get_body())
        if asked is None:
            return reply(rejected(400, WRONG_PROMOTION))
        (source, target, what), reason = asked, reason_of(req)
        act = Request("promote", f"{source}/{target}", reason=reason)

        def effect() -> HttpResult:
            return promote(source, target, what, caller.name, ports, reason)

        return reply(audited(act, caller, ports, effect))


def _asked_in(body: bytes) -> tuple[str, str, Sequence[str]] | None:
    """Return the two environments of a body and what is promoted, None for a body of another form."""
    try:
        read = json.loads(body)
        source, target, what = read["from"], read["to"], read.get("what", [])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    texts = isinstance(what, list) and all(isinstance(each, str) for each in (source, target, *what))
    return (source, target, what) if texts and source and target else None
