"""One vault and its secrets: versions, disabled ones, soft delete.

Sources, below learn.microsoft.com/azure/key-vault: general/about-keys-secrets-certificates (names),
secrets/about-secrets (25 KB, attributes), general/soft-delete-overview (a deleted name is not free);
Azure/azure-rest-api-specs ``specification/keyvault`` (bodies); and the answers quoted in
github.com/Azure/azure-sdk-for-js/issues/24756 (disabled) and the README of this folder (the others).
"""

from __future__ import annotations

import re
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

_NAME = re.compile(r"[0-9a-zA-Z-]{1,127}")
_MOST_BYTES = 25 * 1024
_LINK = "https://go.microsoft.com/fwlink/?linkid=2125182"


class VaultError(Exception):
    """A refusal as the vault words it; ``inner`` is the code of its innererror, "" for none."""

    def __init__(self, status: int, code: str, message: str, inner: str = "") -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.inner = status, code, message, inner


@dataclass(frozen=True)
class SecretVersion:
    """A version of a secret."""

    name: str
    version: str
    value: str
    created: datetime
    updated: datetime
    enabled: bool = True
    content_type: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)


class VaultWorld:
    """A vault with soft delete, which no vault lacks any more. Names do not differ by case."""

    def __init__(
        self, name: str, clock: Callable[[], datetime], unique: Callable[[], str] = lambda: uuid.uuid4().hex
    ) -> None:
        self.name, self._clock, self._unique = name, clock, unique
        self._lock = threading.RLock()
        self._secrets: dict[str, list[SecretVersion]] = {}
        self._deleted: dict[str, list[SecretVersion]] = {}

    def set(
        self,
        name: str,
        value: str,
        *,
        enabled: bool = True,
        content_type: str = "",
        tags: Mapping[str, str] | None = None,
    ) -> SecretVersion:
        """Add a version, which is the newest from now on."""
        if not _NAME.fullmatch(name):
            raise VaultError(400, "BadParameter", f"The request URI contains an invalid name: {name}")
        if len(value.encode()) > _MOST_BYTES:
            raise VaultError(
                400, "BadParameter", f"Secret value exceeds maximum size of {_MOST_BYTES} bytes."
            )
        with self._lock:
            if name.lower() in self._deleted:
                message = (
                    f"Secret {name} is currently in a deleted but recoverable state, and its name cannot be "
                    "reused; in this state, the secret can only be recovered or purged."
                )
                raise VaultError(409, "Conflict", message, "ObjectIsDeletedButRecoverable")
            now = self._clock()
            made = SecretVersion(name, self._unique(), value, now, now, enabled, content_type, tags or {})
            self._secrets.setdefault(name.lower(), []).append(made)
            return made

    def get(self, name: str, version: str = "") -> SecretVersion:
        """Return a version, the newest without one; a disabled one is refused."""
        with self._lock:
            found = self._find(name, version)
        if not found.enabled:
            raise VaultError(
                403, "Forbidden", "Operation get is not allowed on a disabled secret.", "SecretDisabled"
            )
        return found

    def enable(self, name: str, version: str = "", *, enabled: bool) -> SecretVersion:
        """Enable or disable a version, the newest without one."""
        with self._lock:
            before = self._find(name, version)
            after = replace(before, enabled=enabled, updated=self._clock())
            versions = self._secrets[name.lower()]
            versions[versions.index(before)] = after
            return after

    def versions(self, name: str) -> tuple[SecretVersion, ...]:
        """Return all versions, also disabled ones, oldest first; none of an unknown secret."""
        with self._lock:
            return tuple(self._secrets.get(name.lower(), ()))

    def names(self) -> tuple[str, ...]:
        """Return the names of the secrets that are not deleted."""
        with self._lock:
            return tuple(versions[-1].name for versions in self._secrets.values())

    def delete(self, name: str) -> SecretVersion:
        """Delete a secret with all its versions; it can be recovered until it is purged."""
        with self._lock:
            newest = self._find(name)
            self._deleted[name.lower()] = self._secrets.pop(name.lower())
            return newest

    def recover(self, name: str) -> SecretVersion:
        """Take a delete back."""
        with self._lock:
            self._require_deleted(name)
            self._secrets[name.lower()] = self._deleted.pop(name.lower())
            return self._secrets[name.lower()][-1]

    def purge(self, name: str) -> None:
        """Remove a deleted secret for good."""
        with self._lock:
            self._require_deleted(name)
            del self._deleted[name.lower()]

    def deleted(self, name: str) -> SecretVersion:
        """Return the newest version of a deleted secret."""
        with self._lock:
            self._require_deleted(name)
            return self._deleted[name.lower()][-1]

    def _require_deleted(self, name: str) -> None:
        if name.lower() not in self._deleted:
            message = f"A deleted secret with (name/id) {name} was not found in this key vault."
            raise VaultError(404, "SecretNotFound", message)

    def _find(self, name: str, version: str = "") -> SecretVersion:
        versions = self._secrets.get(name.lower(), [])
        found = [candidate for candidate in versions if version in ("", candidate.version)]
        if not found:
            what = f"{name}/{version}" if version else name
            message = (
                f"A secret with (name/id) {what} was not found in this key vault. If you recently deleted "
                "this secret you may be able to recover it using the correct recovery command. For help "
                f"resolving this issue, please see {_LINK}"
            )
            raise VaultError(404, "SecretNotFound", message)
        return found[-1]
