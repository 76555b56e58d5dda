"""A fleet whose GitHub App an Admin registers on the page of its app, with the local GitHub and a vault."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from localcloud.common.clock import ManualClock
from localcloud.common.http_server import HttpServer
from localcloud.functions.host_config import read_settings
from localcloud.functions.triggers.http_triggers import HttpFunctions
from localcloud.functions.worker.in_process import functions_of
from localcloud.functions.worker.invocations import Invoker
from localcloud.github.wire.github_server import GitHubServer
from localcloud.keyvault.vault_world import VaultWorld
from localcloud.keyvault.vaults_port import WorldVaults
from localcloud.memory.memory_cloud import MemoryCloud
from localcloud.runtime.options import EXAMPLE
from shared.adapters.github.registration import send
from shared.app.console.github_setup import GitHubSetup
from shared.frozen import dataclass, replace
from shared.github_app import SECRETS, WEBHOOK
from shared.ports import Ports
from tests.support.function_calls import function_app
from tests.support.pipeline_runs import ready

VAULT, NOTHING = "own", "none yet: run roadstead setup github"


@dataclass(frozen=True)
class Registering:
    """A fleet with an app at an address, and what it registers with."""

    cloud: MemoryCloud
    github: GitHubServer
    world: VaultWorld
    vaults: WorldVaults
    setup: GitHubSetup

    def restart(self, *, secret: str = "") -> HttpServer:
        """Serve the webhook of the app after it has fetched its secret, and have GitHub send there."""
        made = function_app(self.ports, webhook_secret=secret or self.secret(WEBHOOK))
        found = [
            function for function in functions_of(made, read_settings(EXAMPLE)) if function.name == "github"
        ]
        server = HttpServer(HttpFunctions(found, Invoker(threads=1), prefix=""))
        self.github.webhook_url = f"{server.url}/api/github"
        return server

    def answered(self) -> int:
        """Return the status of the newest delivery, 0 for no answer, once GitHub has it."""
        end = time.monotonic() + 20
        while time.monotonic() < end:
            newest = self.github.hooks.deliveries()[-1]
            if newest.status is not None:
                return newest.status
            time.sleep(0.02)
        raise AssertionError("the delivery does not end")

    @property
    def ports(self) -> Ports:
        """The ports of the app."""
        return self.cloud.ports

    @property
    def repository(self) -> str:
        """The repository of the fleet."""
        return self.cloud.ports.config.repository

    def secret(self, name: str) -> str:
        """Return what the vault has, "" for what the deployment wrote."""
        value = self.world.get(name).value
        return "" if value == NOTHING else value


@contextmanager
def registering(folder: Path, address: str = "https://app.example") -> Iterator[Registering]:
    """Serve GitHub for the app at an address; its vault has what the template writes."""
    cloud = ready("one")
    world = VaultWorld(VAULT, ManualClock())
    for name in SECRETS:
        world.set(name, NOTHING)
    vaults = WorldVaults({VAULT: world})
    config = replace(cloud.ports.config, public_url=address)
    cloud.with_ports(lambda ports: replace(ports, config=config))
    with GitHubServer(folder / "github", token="local", webhook_secret="none") as github:
        github.create_repository(config.repository)
        yield Registering(cloud, github, world, vaults, GitHubSetup(github.url, send, vaults, VAULT))
