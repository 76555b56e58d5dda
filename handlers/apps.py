"""Which functions each app of a fleet runs.

An identity belongs to a whole function app, and code in an app can use every identity of it. So each group of
functions that needs rights of its own is an app of its own, from the same package. ``infra/`` gives each app
an identity, and the identity the rights that its functions need. A module is imported when its functions are
asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import azure.functions as func

from shared.configuration.settings import CHECK_SCHEDULE, SWEEP_SCHEDULE, App
from shared.frozen import dataclass

if TYPE_CHECKING:
    from handlers.sign_in import SignIn
    from shared.app.console.github_setup import GitHubSetup
    from shared.app.health import Health
    from shared.ports import Ports

PARTS: Mapping[App, Sequence[str]] = {
    App.CONTROL: ("webhooks", "flux_events", "system_approvals", "plans", "timers", "api", "console"),
    App.WORKER: ("jobs",),
    App.DELETER: ("deletes",),
}
"""The parts of each app: what an instance imports together."""


@dataclass(frozen=True)
class Functions:
    """The functions of the apps, on ports and with what the settings say."""

    ports: Ports
    sign_in: SignIn
    webhook_secrets: Sequence[str]
    form_secrets: Sequence[str]
    approval_keys: Mapping[str, str]
    git_host: str = "github"
    sweep_schedule: str = SWEEP_SCHEDULE
    check_schedule: str = CHECK_SCHEDULE
    github_setup: GitHubSetup | None = None

    @cached_property
    def health(self) -> Health:
        """What the API and the console read of the health."""
        from shared.app.health import Health

        return Health(self.ports)

    def part(self, part: str) -> Sequence[func.Blueprint]:
        """Return the functions of a part of an app."""
        found: Sequence[func.Blueprint] = getattr(self, f"_{part}")()
        return found

    def app(self, app: App) -> Sequence[func.Blueprint]:
        """Return the functions of an app."""
        return [blueprint for part in PARTS[app] for blueprint in self.part(part)]

    def _webhooks(self) -> Sequence[func.Blueprint]:
        from handlers import webhooks

        return webhooks.blueprints(self.ports, self.git_host, secrets=self.webhook_secrets)

    def _flux_events(self) -> Sequence[func.Blueprint]:
        from handlers import flux_events

        return (flux_events.blueprint(self.ports),)

    def _system_approvals(self) -> Sequence[func.Blueprint]:
        from handlers import system_approvals

        return (system_approvals.blueprint(self.ports, keys=self.approval_keys),)

    def _plans(self) -> Sequence[func.Blueprint]:
        from handlers import dead_letters, queues

        return (
            queues.blueprint(self.ports, "plans"),
            queues.blueprint(self.ports, "previews"),
            queues.azure_events(self.ports, "azure_events", "events"),
            queues.azure_events(self.ports, "dead_events", "events/$deadletterqueue"),
            dead_letters.blueprint(self.ports, "plans"),
            dead_letters.blueprint(self.ports, "previews"),
        )

    def _timers(self) -> Sequence[func.Blueprint]:
        from handlers import timers

        schedules = {"sweep_schedule": self.sweep_schedule, "check_schedule": self.check_schedule}
        return (timers.blueprint(self.ports, **schedules),)

    def _api(self) -> Sequence[func.Blueprint]:
        from handlers import api

        return (api.blueprint(self.ports, self.sign_in, self.health),)

    def _console(self) -> Sequence[func.Blueprint]:
        from handlers import console

        secrets, setup = self.form_secrets, self.github_setup
        return (console.blueprint(self.ports, self.sign_in, self.health, secrets, setup),)

    def _jobs(self) -> Sequence[func.Blueprint]:
        from handlers import dead_letters, queues

        return (
            queues.blueprint(self.ports, "jobs"),
            queues.blueprint(self.ports, "changes"),
            dead_letters.blueprint(self.ports, "jobs"),
            dead_letters.blueprint(self.ports, "changes"),
        )

    def _deletes(self) -> Sequence[func.Blueprint]:
        from handlers import dead_letters, queues

        return queues.blueprint(self.ports, "deletes"), dead_letters.blueprint(self.ports, "deletes")
