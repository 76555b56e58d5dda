"""Which functions each app of a fleet runs.

An identity belongs to a whole function app, and code in an app can use every identity of it. So each group of
functions that needs rights of its own is an app of its own, from the same package. ``infra/`` gives each app
an identity, and the identity the rights that its functions need. An app imports what its own functions need.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import azure.functions as func

from handlers import dead_letters, queues
from handlers.sign_in import SignIn
from shared.ports import Ports
from shared.settings import CHECK_SCHEDULE, SWEEP_SCHEDULE, App

if TYPE_CHECKING:
    from shared.app.console.github_setup import GitHubSetup


def blueprints(
    app: App,
    ports: Ports,
    sign_in: SignIn,
    *,
    git_host: str = "github",
    webhook_secrets: Sequence[str],
    form_secrets: Sequence[str],
    approval_keys: Mapping[str, str],
    sweep_schedule: str = SWEEP_SCHEDULE,
    check_schedule: str = CHECK_SCHEDULE,
    github_setup: GitHubSetup | None = None,
) -> Sequence[func.Blueprint]:
    """Return the functions of an app."""
    if app is App.WORKER:
        return (
            queues.worker(ports),
            queues.changer(ports),
            dead_letters.blueprint(ports, "jobs"),
            dead_letters.blueprint(ports, "changes"),
        )
    if app is App.DELETER:
        return queues.deleter(ports), dead_letters.blueprint(ports, "deletes")

    from handlers import api, console, flux_events, system_approvals, timers, webhooks
    from shared.app.health.health import Health

    health = Health(ports)

    return (
        *webhooks.blueprints(ports, git_host, secrets=webhook_secrets),
        flux_events.blueprint(ports),
        system_approvals.blueprint(ports, keys=approval_keys),
        queues.planner(ports),
        queues.previewer(ports),
        queues.azure_events(ports),
        dead_letters.blueprint(ports, "plans"),
        dead_letters.blueprint(ports, "previews"),
        timers.blueprint(ports, sweep_schedule=sweep_schedule, check_schedule=check_schedule),
        api.blueprint(ports, sign_in, health),
        console.blueprint(ports, sign_in, health, form_secrets, github_setup),
    )
