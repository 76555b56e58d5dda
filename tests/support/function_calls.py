"""The functions of the app, called as the host calls them."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import azure.functions as func

from handlers.apps import Functions
from handlers.sign_in import KEY, SignIn
from shared.app.api.access import Role
from shared.app.console.github_setup import GitHubSetup
from shared.configuration.settings import App
from shared.ports import Ports

KEYS = {f"local-key-of-an-{role.lower()}": role for role in Role}
ADMIN_KEY = "local-key-of-an-admin"
"""As in the settings of the local cloud."""
APPROVAL_KEYS = {"CHANGES": "whsec_" + base64.b64encode(b"local-key-of-the-changes-system").decode()}
NEW = "new"
"""The secret with which a webhook is signed."""
ADMIN = {KEY: ADMIN_KEY}


def function_app(
    ports: Ports,
    sign_in: SignIn | None = None,
    setup: GitHubSetup | None = None,
    webhook_secret: str = NEW,
    git_host: str = "github",
) -> func.FunctionApp:
    """Return the app on ports; without ``sign_in``, callers have the keys above."""
    made, app = (
        func.FunctionApp(),
        Functions(
            ports,
            sign_in or SignIn(keys=KEYS),
            git_host=git_host,
            webhook_secrets=(webhook_secret,),
            form_secrets=(webhook_secret,),
            approval_keys=APPROVAL_KEYS,
            github_setup=setup,
        ),
    )
    for blueprint in [blueprint for group in App for blueprint in app.app(group)]:
        made.register_functions(blueprint)
    return made


def started(ports: Ports, sign_in: SignIn | None = None) -> dict[str, Any]:
    """Return every function by its name, as the host indexes them when an instance starts."""
    return {str(made.get_function_name()): made for made in function_app(ports, sign_in).get_functions()}


_RUNNING: list[tuple[Ports, dict[str, Any]]] = []
"""The functions on the ports that were asked for last."""


def functions(ports: Ports) -> dict[str, Any]:
    """Return the functions of an instance that runs: the same ones as for the call before on these ports."""
    if not _RUNNING or _RUNNING[0][0] is not ports:
        _RUNNING[:] = [(ports, started(ports))]
    return _RUNNING[0][1]


def call(
    ports: Ports, function: str, *, query: Mapping[str, str] | None = None, **route: str
) -> tuple[int, Any]:
    headers = {**ADMIN, "content-type": "application/json"}
    request = func.HttpRequest(
        "GET", f"/api/{function}", body=b"", params=query, route_params=route, headers=headers
    )
    reply = functions(ports)[function].get_user_function()(request)
    return reply.status_code, json.loads(reply.get_body())
