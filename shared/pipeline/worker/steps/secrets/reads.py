"""The values of bootstrap secrets, each read once, however many entries and clusters of a message use it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from shared.fleet.kubernetes.bootstrap_secrets import is_base64, secret_object
from shared.fleet.manifests.cluster.bootstrap_secrets import BootstrapSecret
from shared.jobs.failures.errors import (
    ReconcileError,
    SecretMissing,
    Throttled,
    Unauthenticated,
    VaultForbidden,
    VaultUnavailable,
)
from shared.ports import Vaults, VaultSecret

_OF_THE_VAULT = (Throttled, VaultUnavailable, Unauthenticated)
"""Errors that every secret of a vault has in common."""
NOT_BASE64 = "SecretNotBase64"
_FIREWALL = "ForbiddenByFirewall"


@dataclass
class VaultReads:
    """What one message has read of the vaults, in memory only and for as long as it runs.

    A vault that does not answer, or that asks for fewer requests, is left alone by the rest of the message.
    """

    vaults: Vaults
    _read: dict[tuple[str, str], VaultSecret | ReconcileError] = field(default_factory=dict, repr=False)
    _closed: dict[str, ReconcileError] = field(default_factory=dict)

    def secret(self, vault: str, name: str) -> VaultSecret:
        """Return the newest version of a secret; raise what the vault said when it was read."""
        vault = vault.lower()
        if vault in self._closed:
            raise self._closed[vault]
        if (vault, name) not in self._read:
            self._read[vault, name] = self._get(vault, name)
        found = self._read[vault, name]
        if isinstance(found, ReconcileError):
            raise found
        return found

    def object(self, secret: BootstrapSecret) -> dict[str, Any]:
        """Return the Secret of an entry with the newest versions; raise what a vault says."""
        read = {key: self.secret(secret.vault, name) for key, name in secret.keys.items()}
        values = {key: one.value for key, one in read.items()}
        for key in secret.binary:
            if not is_base64(values[key]):
                what = f"the secret {secret.keys[key]} of the vault {secret.vault}"
                raise SecretMissing(f"{what} is no base64, as binary of {secret.name} says", code=NOT_BASE64)
        return secret_object(secret, values, {key: one.version for key, one in read.items()})

    def _get(self, vault: str, name: str) -> VaultSecret | ReconcileError:
        try:
            return self.vaults.secret(vault, name)
        except ReconcileError as error:
            firewall = isinstance(error, VaultForbidden) and error.code == _FIREWALL
            if firewall or isinstance(error, _OF_THE_VAULT):
                self._closed[vault] = error
            return error
