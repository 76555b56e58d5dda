"""The vaults from which bootstrap secrets take their values."""

from __future__ import annotations

from typing import Protocol

from shared.frozen import dataclass, field


@dataclass(frozen=True)
class VaultSecret:
    """The newest version of a secret; the value lives in memory only, and no text shows it."""

    version: str
    """The id of the version, as the vault gives it."""
    value: str = field(repr=False, compare=False)


class Vaults(Protocol):
    """The vaults that the app's operator lets manifests name."""

    def secret(self, vault: str, name: str) -> VaultSecret:
        """Return the newest version of a secret.

        Raise SecretMissing for one that does not exist, is deleted or is disabled, VaultForbidden when the
        vault does not let us in, Throttled with the vault's own wait, Unavailable without an answer,
        Unauthenticated without a credential, and InvalidManifest for a vault that is not among the app's.
        """
        ...
