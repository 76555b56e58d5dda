"""``POST /api/approvals/SYSTEM``: an external system approves a stage of a rollout."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import azure.functions as func

from handlers.executions import counted
from handlers.reply import reply
from handlers.routes import API, SIGNATURE, answered, callable_by
from handlers.sign_in import address_of
from shared.app.api.acts.system_approval import receive_approval
from shared.ports import Ports


def blueprint(ports: Ports, *, keys: Mapping[str, str]) -> func.Blueprint:
    """Return the function. It refuses a statement that is not signed with the key of its system."""
    bp = func.Blueprint()

    @bp.function_name("system_approval")
    @bp.route(f"{API}/approvals/{{system}}", methods=["POST"], auth_level=func.AuthLevel.ANONYMOUS)
    @partial(callable_by, SIGNATURE)
    @counted("system_approval", ports)
    def system_approval(req: func.HttpRequest) -> func.HttpResponse:
        system, body, address = req.route_params["system"], req.get_body(), address_of(req.headers)
        return answered(
            "system_approval",
            lambda: reply(receive_approval(system, req.headers, body, keys, ports, address)),
            ports,
        )

    return bp
