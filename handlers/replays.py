"""The part of the HTTP API that starts a job again, in an emergency also in a freeze."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

import azure.functions as func

from handlers.reply import reply
from handlers.routes import Routes
from shared.app.api.access import Caller, Role, decide
from shared.app.api.acts import replay
from shared.app.api.audit import Request, audited
from shared.app.http_result import rejected
from shared.ports import Ports


def add_replay(routes: Routes, ports: Ports, reason_of: Callable[[func.HttpRequest], str]) -> None:
    """Add the replay of a cluster; one that overrides a freeze is an Approver's, and needs a reason."""

    @routes.add("replay", "clusters/{name}/replay", Role.OPERATOR, method="POST")
    def replay_job(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        name, reason, overrides = req.route_params["name"], reason_of(req), _overrides(req.get_body())
        denied = decide(caller.principal, Role.APPROVER) if overrides else None
        if denied is not None:
            return reply(rejected(denied.status, denied.error))
        if overrides and not reason.strip():
            return reply(rejected(400, replay.WITHOUT_REASON))
        act = Request("replay-override" if overrides else "replay", name, (name,), reason)
        again = partial(replay.replay, name, caller.name, ports, reason, override=overrides)
        return reply(audited(act, caller, ports, again))


def _overrides(body: bytes) -> bool:
    """Return whether a body says that the job starts in a freeze and outside its windows, too."""
    try:
        given = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        return False
    return isinstance(given, dict) and given.get("override") is True
