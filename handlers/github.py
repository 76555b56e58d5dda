"""``POST /api/github``: webhooks of the fleet repository."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import azure.functions as func

from handlers.reply import reply
from handlers.routes import API, SIGNATURE, answered, callable_by
from shared.app.intake.accept import accept
from shared.app.intake.webhook import read_delivery
from shared.ports import Ports


def blueprint(ports: Ports, *, secrets: Sequence[str]) -> func.Blueprint:
    """Return the webhook function. It refuses a delivery that is signed with none of ``secrets``."""
    bp = func.Blueprint()

    @bp.function_name("github")
    @bp.route(f"{API}/github", methods=["POST"], auth_level=func.AuthLevel.ANONYMOUS)
    @partial(callable_by, SIGNATURE)
    def github(req: func.HttpRequest) -> func.HttpResponse:
        delivery = read_delivery(
            req.headers,
            req.get_body(),
            secrets=secrets,
            repository=ports.config.repository,
            branch=ports.config.branch,
        )
        return answered("github", lambda: reply(accept(delivery, ports)), ports)

    return bp
