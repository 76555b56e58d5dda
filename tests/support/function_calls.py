"""The functions of the app, called as the host calls them."""

from __future__ import annotations

import json
from typing import Any

import azure.functions as func

from handlers.apps import blueprints
from shared.ports import Ports


def functions(ports: Ports) -> dict[str, Any]:
    """Return every function by its name, as the host indexes them."""
    app = func.FunctionApp()
    for group in blueprints(ports, webhook_secrets=("new",), secrets=()).values():
        for blueprint in group:
            app.register_functions(blueprint)
    return {str(made.get_function_name()): made for made in app.get_functions()}


def call(ports: Ports, function: str, **route: str) -> tuple[int, Any]:
    request = func.HttpRequest("GET", f"/api/{function}", body=b"", route_params=route)
    reply = functions(ports)[function].get_user_function()(request)
    return reply.status_code, json.loads(reply.get_body())
