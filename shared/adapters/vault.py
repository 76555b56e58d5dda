"""Azure Key Vault through its client library: the newest version of a secret, in one request."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from azure.core.credentials import TokenCredential
from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    DecodeError,
    HttpResponseError,
    ResourceNotFoundError,
)
from azure.core.pipeline.policies import RetryPolicy
from azure.core.rest import HttpRequest

from shared.adapters.transport import pooled_transport
from shared.cluster.failures.errors import (
    InvalidManifest,
    ReconcileError,
    SecretMissing,
    Unauthenticated,
    VaultForbidden,
    VaultUnavailable,
    from_http,
)
from shared.cluster.failures.retry import retry_after
from shared.ports.services import VaultSecret

if TYPE_CHECKING:
    from azure.keyvault.secrets import SecretClient

_CONNECT_SECONDS, _READ_SECONDS = 5, 10
_PROBE_VERSION = "7.4"
_DISABLED = "SecretDisabled"
_NETWORK = ("ForbiddenByFirewall", "ForbiddenByConnection")
"""Inner codes of a 403 that is no missing role.

Source: learn.microsoft.com/azure/key-vault/general/rest-error-codes.
"""


class KeyVaults:
    """The ``Vaults`` port; ``urls`` has the address of each vault by its name. Safe to share between threads.

    The library verifies that a vault asks for a token of the vault's own domain, so that no address gets one
    for another service. No call retries or sleeps by itself.
    """

    def __init__(self, urls: Mapping[str, str], credential: TokenCredential) -> None:
        self._urls, self._credential = urls, credential
        self._lock = threading.Lock()
        self._clients: dict[str, SecretClient] = {}

    def secret(self, vault: str, name: str) -> VaultSecret:
        """Return the newest version of a secret."""
        what = f"the secret {name} of the vault {vault}"
        with self._calling(vault, f"read {what}", what) as client:
            found = client.get_secret(name)
            value, version, tags = found.value, str(found.properties.version), found.properties.tags or {}
        if value is None:
            raise SecretMissing(f"{what} has no value")
        if not isinstance(value, str):
            raise VaultUnavailable(f"the vault {vault} gave an answer that cannot be read")
        return VaultSecret(version, value, dict(tags))

    def write(self, vault: str, name: str, value: str, tags: Mapping[str, str]) -> None:
        """Write a new version of a secret."""
        what = f"the secret {name} of the vault {vault}"
        with self._calling(vault, f"write {what}", what) as client:
            client.set_secret(name, value, tags=dict(tags))

    @contextmanager
    def _calling(self, vault: str, act: str, what: str) -> Iterator[SecretClient]:
        """Lend the client of a vault for one call, and translate its errors."""
        url = self._urls.get(vault.lower())
        if url is None:
            raise InvalidManifest(f"the vault {vault} is not in KEY_VAULTS, a setting of the app")
        try:
            yield self._client(url)
        except ResourceNotFoundError as error:
            raise SecretMissing(f"{what} does not exist, or is deleted", code=_code(error)) from None
        except HttpResponseError as error:
            raise _from_response(error, act, what, vault) from None
        except AzureError as error:
            raise VaultUnavailable(f"the vault {vault} did not answer: {type(error).__name__}") from None
        except ValueError:
            # The library's text of a challenge for another domain.
            text = f"the vault {vault} asks for a token of another service, which it does not get"
            raise Unauthenticated(f"{text}; check its address in KEY_VAULTS") from None
        except (LookupError, TypeError, AttributeError, RecursionError):
            # Not chained: the library's text may have parts of the answer.
            raise VaultUnavailable(f"the vault {vault} gave an answer that cannot be read") from None

    def probe_of(self, vault: str) -> VaultProbe:
        """Return what asks a vault whether it answers."""
        return VaultProbe(vault, self._urls[vault.lower()])

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            for client in self._clients.values():
                client.close()
            self._clients.clear()

    def _client(self, url: str) -> SecretClient:
        """Return the client of a vault, created at its first use."""
        from azure.keyvault.secrets import SecretClient

        with self._lock:
            if url not in self._clients:
                transport = pooled_transport(
                    url, connect_seconds=_CONNECT_SECONDS, read_seconds=_READ_SECONDS
                )
                self._clients[url] = SecretClient(
                    url, self._credential, transport=transport, retry_policy=RetryPolicy.no_retries()
                )
            return self._clients[url]


class VaultProbe:
    """Asks a vault whether it answers, without a credential: it answers with the challenge of a vault.

    Whoever probes may have no role on the vault, as the app with the API, and is then let in by no firewall
    either: that it is refused shows that the vault answers.
    """

    def __init__(self, vault: str, url: str) -> None:
        self._vault, self._url = vault, url
        self._transport = pooled_transport(url, connect_seconds=_CONNECT_SECONDS, read_seconds=_READ_SECONDS)

    def probe(self) -> None:
        """Ask the vault; raise VaultUnavailable for no answer, and for that of something else."""
        request = HttpRequest("GET", f"{self._url.rstrip('/')}/secrets?api-version={_PROBE_VERSION}")
        try:
            response = self._transport.send(request)
        except AzureError as error:
            raise VaultUnavailable(
                f"the vault {self._vault} did not answer: {type(error).__name__}"
            ) from None
        challenge = str(response.headers.get("WWW-Authenticate") or "")
        refused = response.status_code == 401 and challenge.startswith("Bearer ")
        if not refused and response.status_code != 403:
            status = response.status_code
            raise VaultUnavailable(f"the vault {self._vault} answered with {status}, and with no challenge")

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()


def _from_response(error: HttpResponseError, act: str, what: str, vault: str) -> ReconcileError:
    """Return our error for a refusal; the vault's own text is not repeated."""
    response: Any = error.response
    if response is None or isinstance(error, DecodeError):
        if isinstance(error, ClientAuthenticationError):
            text = error.message.partition("\n")[0]
            return Unauthenticated(f"there is no credential for the vault {vault}: {text}")
        return VaultUnavailable(f"the vault {vault} gave an answer that cannot be read")
    code, headers = _code(error), response.headers
    request_id = str(headers.get("x-ms-request-id") or "")
    given: dict[str, Any] = {"code": code, "request_id": request_id}
    if code == _DISABLED:
        return SecretMissing(f"{what} is disabled", **given)
    if code in _NETWORK:
        return VaultForbidden(f"the firewall of the vault {vault} refuses the address of this app", **given)
    if response.status_code == 403:
        return VaultForbidden(f"the identity of this app may not {act}", **given)
    message = f"{what}: HTTP {response.status_code}{code and f' {code}'}"
    if response.status_code >= 500 or response.status_code == 408:
        return VaultUnavailable(message, retry_after=retry_after(headers), **given)
    return from_http(
        response.status_code, code, message, retry_after=retry_after(headers), request_id=request_id
    )


def _code(error: HttpResponseError) -> str:
    """Return the innermost code of a vault's error, "" without one."""
    response: Any = error.response
    try:
        found = response.json()["error"]
        return str((found.get("innererror") or found)["code"])
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        return ""
