"""A deployed fleet for ``roadstead setup``: the Azure CLI's stand-in, the local GitHub, the app's webhook.

The app verifies webhooks with the code of production and with the secrets that the stand-in gave it.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from werkzeug.wrappers import Request, Response

from localcloud.common.certificates import Authority
from localcloud.common.clock import system_clock
from localcloud.common.http_server import HttpServer
from localcloud.github.wire.github_server import GitHubServer
from shared.app.intake.github_webhook import read_delivery
from shared.app.intake.webhook import DeliveryRefusal
from shared.configuration.settings import App
from tests.support import az_stand_in
from tests.support.roadstead_command import OWN, ROADSTEAD
from tests.support.templates import EXAMPLE, of_type, outputs, resources, settings_of
from tests.support.warm_processes import start

FLEET, REPOSITORY = "example", "example/fleet"
FIRST = {
    secret.name.rpartition("/")[2]: str(secret.properties["value"])
    for secret in of_type("Microsoft.KeyVault/vaults/secrets", EXAMPLE)
    if not str(secret.whole["condition"]).startswith("[not(")
}
"""What the template writes where there is no value yet."""

QUEUES = {
    queue.name.rpartition("/")[2]: {**queue.properties, "status": "Active"}
    for queue in of_type("Microsoft.ServiceBus/namespaces/queues", EXAMPLE)
}
"""The queues that the template creates, as Resource Manager shows them."""


class LateClock:
    """The clock of GitHub: the real one, or so many seconds after it."""

    late = 0.0

    def __call__(self) -> datetime:
        """Return the time."""
        return system_clock() + timedelta(seconds=self.late)


class SetUpFleet:
    """What the tests look at: the state of Azure, GitHub, and runs of the command."""

    def __init__(self, folder: Path, github: GitHubServer, app: HttpServer, clock: LateClock) -> None:
        self.folder, self.github, self.clock = folder, github, clock
        self.state = folder / "state.json"
        self.settings = {app_name(app): dict(settings_of(app, EXAMPLE)) for app in App}
        self.settings[app_name(App.CONTROL)] |= {"GITHUB_API_URL": github.url}
        self._host = app.url.removeprefix("https://")
        self.may_read, self.denies = "yes", ""
        self._runs: list[Run] = []
        self.on_webhook: Callable[[list[str]], object] = lambda _: None
        """What looks at the secrets that the app knows when a webhook comes."""
        program = folder / "bin" / "az"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {az_stand_in.__file__} "$@"\n')
        program.chmod(0o755)

    @property
    def env(self) -> dict[str, str]:
        """Return the environment in which ``az`` is the stand-in."""
        tagged = [
            {"id": found.id, "name": found.name, "type": found.type, "location": "westeurope"}
            for found in resources(EXAMPLE)
            if found.whole.get("tags", {}).get("roadstead-fleet") == FLEET
        ]
        return {
            **{"PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}", "AZ_STATE": str(self.state)},
            **{"AZ_FLEET": FLEET, "AZ_HOST": self._host, "AZ_MAY_READ": self.may_read},
            "AZ_DENIES": self.denies,
            "AZ_OUTPUTS": json.dumps({name: {"value": value} for name, value in outputs(EXAMPLE).items()}),
            **{"AZ_FIRST": json.dumps(FIRST), "AZ_RESOURCES": json.dumps(tagged)},
            "AZ_QUEUES": json.dumps(QUEUES),
            **{"AZ_SETTINGS": json.dumps(self.settings), "SSL_CERT_FILE": str(self.folder / "ca.pem")},
        }

    def deploy(self, options: tuple[str, ...] = (), **more: object) -> None:
        """Deploy the fleet, or deploy it again, with a parameter file that has no value of a secret."""
        (self.folder / "code.zip").write_bytes(b"code")
        given = {"fleet": FLEET, "secrets": list(FIRST), "secretValues": {}, **more}
        text = json.dumps({name: {"value": value} for name, value in given.items()})
        (self.folder / "fleet.bicepparam").write_text(text)
        place = ("--location", "westeurope", "--package", "code.zip")
        run = self.run("deploy", "fleet.bicepparam", *place, *options)
        assert run.end() == 0, run.err

    def run(self, *arguments: str, given: str = "") -> Run:
        """Start the command."""
        run = Run(arguments, cwd=self.folder, env={**os.environ, **OWN, **self.env}, given=given)
        self._runs.append(run)
        return run

    def close(self) -> None:
        """End what still runs."""
        for run in self._runs:
            run.stop()

    def azure(self) -> Any:
        """Return what the subscription has: secrets, their tags, what the apps run with."""
        return json.loads(self.state.read_text())

    def running(self, app: App, setting: str) -> str:
        """Return a setting as an app has it now."""
        return str(self.azure()["running"][app_name(app)][setting])

    def log(self) -> str:
        """Return every command that the Azure CLI was given."""
        return Path(f"{self.state}.log").read_text()


class Run:
    """A run of the command: what it has printed so far, and its end."""

    def __init__(self, arguments: tuple[str, ...], *, cwd: Path, env: dict[str, str], given: str) -> None:
        name = f"run-{len(list(cwd.glob('run-*.out')))}"
        self._out, self._err, entered = (cwd / f"{name}.{kind}" for kind in ("out", "err", "in"))
        entered.write_text(given)
        with entered.open("rb") as stdin, self._out.open("wb") as out, self._err.open("wb") as err:
            self._process = start(
                [ROADSTEAD, *arguments], stdin=stdin.fileno(), stdout=out, stderr=err, env=env, cwd=cwd
            )
        entered.unlink()

    @property
    def out(self) -> str:
        """What it has printed."""
        return self._out.read_text()

    @property
    def err(self) -> str:
        """What it has said of an error."""
        return self._err.read_text()

    def address(self, pattern: str) -> str:
        """Wait for an address that it prints, and return it."""
        end = time.monotonic() + 30
        while not (found := re.search(rf"^  ({pattern})$", self.out, re.MULTILINE)):
            assert self._process.poll() is None, self.out + self.err
            assert time.monotonic() < end, self.out + self.err
            time.sleep(0.05)
        return found[1]

    def end(self) -> int:
        """Wait for the end, and return the exit code."""
        return self._process.wait(60)

    def stop(self) -> None:
        """End it."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(10)


def app_name(app: App) -> str:
    """Return the name of an app in Azure."""
    control, worker, deleter = outputs(EXAMPLE)["functionAppNames"]
    return str({App.CONTROL: control, App.WORKER: worker, App.DELETER: deleter}[app])


@contextmanager
def set_up_fleet(folder: Path) -> Iterator[SetUpFleet]:
    """Serve GitHub with the repository of a fleet, and the webhook of its app; deploy the fleet."""
    authority, clock = Authority(), LateClock()
    authority.write(folder / "ca.pem")
    holder: list[SetUpFleet] = []

    @Request.application
    def webhook(request: Request) -> Response:
        running = holder[0].azure()["running"][app_name(App.CONTROL)]
        known = [running["GITHUB_WEBHOOK_SECRET"], running["GITHUB_WEBHOOK_SECRET_PREVIOUS"]]
        holder[0].on_webhook(known)
        body = request.get_data()
        read = read_delivery(dict(request.headers), body, secrets=known, repository=REPOSITORY, branch="main")
        return Response(status=read.status if isinstance(read, DeliveryRefusal) else 200)

    with (
        GitHubServer(folder / "github", token="local", webhook_secret="none", clock=clock) as github,
        HttpServer(webhook, tls=authority.server_context()) as app,
    ):
        github.create_repository(REPOSITORY)
        fleet = SetUpFleet(folder, github, app, clock)
        holder.append(fleet)
        fleet.deploy()
        try:
            yield fleet
        finally:
            fleet.close()
