"""Registries of OCI artifacts: the digest of a tag, in one HEAD, and what signs in to it.

Source of the calls: the distribution specification of the Open Container Initiative, v1.1, "Pulling
manifests" and "Checking if content exists in the registry". An Azure Container Registry exchanges a token of
Microsoft Entra for one of its own (github.com/Azure/acr, docs/AAD-OAuth.md); others give one to everybody who
asks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import requests
from azure.core.credentials import TokenCredential
from azure.core.exceptions import AzureError

from shared.cluster.failures.errors import (
    Dependency,
    InvalidManifest,
    Throttled,
    Unauthenticated,
    Unauthorized,
    Unavailable,
)
from shared.cluster.failures.retry import retry_after

SECONDS = (5, 10)
"""To connect, and to wait for an answer."""
SCOPE = "https://containerregistry.azure.net/.default"
"""Whose tokens a registry of Azure exchanges."""
_ACCEPT = ", ".join(
    (
        *("application/vnd.oci.image.manifest.v1+json", "application/vnd.oci.image.index.v1+json"),
        *(
            "application/vnd.docker.distribution.manifest.v2+json",
            "application/vnd.docker.distribution.manifest.list.v2+json",
        ),
    )
)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_PARAMETER = re.compile(r'([a-z]+)="([^"]*)"')
_OF_AZURE = (".azurecr.io", ".azurecr.cn", ".azurecr.us")
_TOKENS = ("access_token", "token")


class OciRegistries:
    """The ``Registries`` port; ``urls`` has the address of each registry by its host.

    Only these are asked, so no manifest leads the app, or its token, anywhere else. No redirect is followed.
    """

    def __init__(self, urls: Mapping[str, str], credential: TokenCredential) -> None:
        self._urls, self._credential = urls, credential

    def digest(self, host: str, name: str, tag: str) -> str:
        """Return the digest that a tag of a repository has now."""
        url = self._urls.get(host.lower())
        if url is None:
            raise InvalidManifest(f"the registry {host} is not in REGISTRIES, a setting of the app")
        address, what = f"{url}/v2/{name}/manifests/{tag}", f"{host}/{name}:{tag}"
        answer = self._ask("HEAD", address, host, headers={"Accept": _ACCEPT})
        challenge = answer.headers.get("WWW-Authenticate", "")
        if answer.status_code == 401 and challenge.lower().startswith("bearer "):
            token = self._token(url, host, dict(_PARAMETER.findall(challenge)))
            headers = {"Accept": _ACCEPT, "Authorization": f"Bearer {token}"}
            answer = self._ask("HEAD", address, host, headers=headers)
        _raise_for(answer, what)
        digest = str(answer.headers.get("Docker-Content-Digest", ""))
        if not _DIGEST.fullmatch(digest):
            raise Unavailable(f"{what}: the registry names no digest")
        return digest

    def _token(self, url: str, host: str, challenge: Mapping[str, str]) -> str:
        """Return a token that may pull, as a challenge asks for it."""
        asked = {name: challenge[name] for name in ("service", "scope") if name in challenge}
        if host.lower().endswith(_OF_AZURE):
            exchanged = {"grant_type": "access_token", "service": asked.get("service", host)}
            form = exchanged | {"access_token": self._of_entra()}
            refresh = self._granted("POST", f"{url}/oauth2/exchange", host, ("refresh_token",), data=form)
            form = {"grant_type": "refresh_token", **asked, "refresh_token": refresh}
            return self._granted("POST", f"{url}/oauth2/token", host, _TOKENS, data=form)
        realm = challenge.get("realm", "")
        if not realm.startswith("https://"):
            raise Unavailable(f"{host} asks for a token without saying where it is")
        return self._granted("GET", realm, host, _TOKENS, params=asked)

    def _of_entra(self) -> str:
        try:
            return self._credential.get_token(SCOPE).token
        except AzureError as error:
            # Not chained: the library's text may have parts of an answer.
            raise Unauthenticated(f"the app got no token for registries: {type(error).__name__}") from None

    def _granted(self, method: str, url: str, host: str, names: tuple[str, ...], **given: Any) -> str:
        answer = self._ask(method, url, host, **given)
        _raise_for(answer, f"a token of {host}")
        try:
            found = answer.json()
            return next(str(found[name]) for name in names if found.get(name))
        except (ValueError, AttributeError, StopIteration, RecursionError):
            raise Unavailable(f"{host} gave a token that cannot be read") from None

    def _ask(self, method: str, url: str, host: str, **given: Any) -> requests.Response:
        try:
            return requests.request(method, url, timeout=SECONDS, allow_redirects=False, **given)
        except (requests.RequestException, OSError, ValueError) as error:
            raise Unavailable(f"{host} does not answer: {type(error).__name__}") from None


def _raise_for(answer: requests.Response, what: str) -> None:
    """Raise the error of an answer that is no success."""
    status = answer.status_code
    if status == 200:
        return
    if status == 404:
        raise Dependency(f"{what}: there is none, or the app may not see it")
    if status in (401, 403):
        raise Unauthorized(f"{what}: the app may not pull: give its identity the role AcrPull")
    if status == 429:
        raise Throttled(f"{what}: too many requests", retry_after=retry_after(answer.headers) or 60.0)
    raise Unavailable(f"{what}: the registry answered {status}")
