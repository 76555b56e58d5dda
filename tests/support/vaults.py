"""The vaults of a test: one world, and the port on it in memory or over the wire."""

from __future__ import annotations

from dataclasses import dataclass

from localcloud.keyvault.vault_server import VaultServer
from localcloud.keyvault.vault_world import VaultWorld
from shared.ports.services import OwnVault

VAULT = "platform"


@dataclass(frozen=True)
class VaultSetting:
    """A vault as the port sees it, and as its owner does; ``server`` is None in memory."""

    port: OwnVault
    world: VaultWorld
    server: VaultServer | None = None
