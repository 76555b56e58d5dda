"""``POST /api/flux/NAME``: what the Flux of a cluster reports."""

from __future__ import annotations

from functools import partial

import azure.functions as func

from handlers.executions import counted
from handlers.reply import reply
from handlers.routes import API, SIGNATURE, answered, callable_by
from shared.app.intake.flux_event import EventKeys, receive
from shared.ports import Ports


def blueprint(ports: Ports) -> func.Blueprint:
    """Return the function. It refuses an event that is not signed with the key of its cluster."""
    bp, keys = func.Blueprint(), EventKeys(ports)

    @bp.function_name("flux")
    @bp.route(f"{API}/flux/{{cluster}}", methods=["POST"], auth_level=func.AuthLevel.ANONYMOUS)
    @partial(callable_by, SIGNATURE)
    @counted("flux", ports)
    def flux(req: func.HttpRequest) -> func.HttpResponse:
        cluster = req.route_params["cluster"]
        body = req.get_body()
        return answered("flux", lambda: reply(receive(cluster, req.headers, body, keys, ports)), ports)

    return bp
