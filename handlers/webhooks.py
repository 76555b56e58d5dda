"""Webhooks of the fleet repository: ``POST /api/github``, or ``POST /api/webhook`` for another host.

The app has the one of the host that its settings name. A git server that is nothing more sends none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import azure.functions as func

from handlers.executions import counted
from handlers.reply import reply
from handlers.routes import API, SIGNATURE, answered, callable_by
from shared.app.intake import azure_devops_webhook, github_webhook, gitlab_webhook
from shared.app.intake.accept import accept
from shared.app.intake.webhook import Reader
from shared.ports import Ports

READERS: Mapping[str, tuple[str, Reader]] = {
    "github": ("github", github_webhook.read_delivery),
    "gitlab": ("webhook", gitlab_webhook.read_delivery),
    "azure-devops": ("webhook", azure_devops_webhook.read_delivery),
}
"""The function of each ``GIT_HOST`` that sends webhooks, as its route is called, and what reads them."""


def blueprints(ports: Ports, git_host: str, *, secrets: Sequence[str]) -> Sequence[func.Blueprint]:
    """Return the function of a host that sends webhooks. It refuses a delivery without one of ``secrets``."""
    if git_host not in READERS:
        return ()
    bp = func.Blueprint()
    name, read_delivery = READERS[git_host]

    @bp.function_name(name)
    @bp.route(f"{API}/{name}", methods=["POST"], auth_level=func.AuthLevel.ANONYMOUS)
    @partial(callable_by, SIGNATURE)
    @counted(name, ports)
    def receive(req: func.HttpRequest) -> func.HttpResponse:
        delivery = read_delivery(
            req.headers,
            req.get_body(),
            secrets=secrets,
            repository=ports.config.repository,
            branch=ports.config.branch,
        )
        return answered(name, lambda: reply(accept(delivery, ports)), ports)

    return (bp,)
