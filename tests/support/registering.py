"""A fleet whose GitHub App an Admin registers on the page of its app, with the local GitHub and a vault."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from localcloud.common.clock import ManualClock
from localcloud.github.wire.github_server import GitHubServer
from localcloud.keyvault.vault_world import VaultWorld
from localcloud.keyvault.vaults_port import WorldVaults
from localcloud.memory.memory_cloud import MemoryCloud
from shared.adapters.github.registration import send
from shared.app.console.github_setup import GitHubSetup
from shared.frozen import dataclass, replace
from shared.github_app import SECRETS
from shared.ports import Ports
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
