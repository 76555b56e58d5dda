"""``GET /api/health`` for callers with a role, and ``GET /api/ready`` for a probe that has none.

The probe's route passes the sign-in of the platform, so that it believes no identity at all.
"""

from __future__ import annotations

from functools import partial

import azure.functions as func

from handlers.reply import reply
from handlers.routes import ANYBODY, Routes, callable_by
from handlers.sign_in import SignIn
from shared.app.api.access import Caller, Role
from shared.app.health import Health, health_view, ready_view
from shared.ports import Ports


def blueprint(ports: Ports, sign_in: SignIn) -> func.Blueprint:
    """Return the two functions, which share their readings."""
    bp, app = func.Blueprint(), Health(ports)

    @Routes(bp, sign_in).add("health", "health", Role.READER)
    def health(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        return reply(health_view(app.read()))

    @bp.function_name("ready")
    @bp.route("ready", methods=["GET"], auth_level=func.AuthLevel.ANONYMOUS)
    @partial(callable_by, ANYBODY)
    def ready(req: func.HttpRequest) -> func.HttpResponse:
        return reply(ready_view(app.read()))

    return bp
