"""The part of the HTTP API that is about rollbacks of node pools."""

from __future__ import annotations

from collections.abc import Callable

import azure.functions as func

from handlers.reply import reply
from handlers.routes import Routes
from shared.app.api.access import Caller, Role
from shared.app.api.acts.rollback import roll_back
from shared.app.api.audit import Request, audited
from shared.ports import Ports


def add_rollback(routes: Routes, ports: Ports, reason_of: Callable[[func.HttpRequest], str]) -> None:
    """Add the request for the rollback of a node pool; ``reason_of`` reads why the caller acts."""

    @routes.add("rollback", "clusters/{name}/pools/{pool}/rollback", Role.OPERATOR, method="POST")
    def ask(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        name, pool, reason = req.route_params["name"], req.route_params["pool"], reason_of(req)
        act = Request("rollback", f"{name}/{pool}", (name,), reason)
        return reply(audited(act, caller, ports, lambda: roll_back(name, pool, caller.name, ports, reason)))
