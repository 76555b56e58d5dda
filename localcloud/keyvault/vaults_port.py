"""The ``Vaults`` port on the world of vaults, without a network."""

from __future__ import annotations

from collections.abc import Mapping

from localcloud.keyvault.vault_world import VaultError, VaultWorld
from shared.cluster.failures.errors import InvalidManifest, ReconcileError, SecretMissing, from_http
from shared.ports.services import VaultSecret


class WorldVaults:
    """The vaults by their names, in lower case; one in ``failing`` raises its error."""

    def __init__(self, worlds: Mapping[str, VaultWorld]) -> None:
        self.worlds = dict(worlds)
        self.failing: dict[str, ReconcileError] = {}
        self.reads: list[tuple[str, str]] = []

    def secret(self, vault: str, name: str) -> VaultSecret:
        """Return the newest version of a secret."""
        if vault.lower() in self.worlds:
            self.reads.append((vault, name))  # one that fails is asked too
        world = self._world(vault)
        try:
            found = world.get(name)
        except VaultError as error:
            what = f"the secret {name} of the vault {vault}"
            if error.status == 403:
                raise SecretMissing(f"{what} is disabled", code=error.inner) from None
            raise SecretMissing(f"{what} does not exist, or is deleted", code=error.code) from None
        return VaultSecret(found.version, found.value, found.tags)

    def write(self, vault: str, name: str, value: str, tags: Mapping[str, str]) -> None:
        """Write a new version of a secret."""
        try:
            self._world(vault).set(name, value, tags=tags)
        except VaultError as error:
            raise from_http(error.status, error.inner or error.code, f"Key Vault: {error}") from None

    def _world(self, vault: str) -> VaultWorld:
        world = self.worlds.get(vault.lower())
        if world is None:
            raise InvalidManifest(f"the vault {vault} is not in KEY_VAULTS, a setting of the app")
        if vault.lower() in self.failing:
            raise self.failing[vault.lower()]
        return world
