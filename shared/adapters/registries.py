"""Registries of OCI artifacts: the digest of a tag, in one HEAD, the first layer of one, and what signs in.

Source of the calls: the distribution specification of the Open Container Initiative, v1.1, "Pulling
manifests", "Pulling blobs" and "Checking if content exists in the registry". An Azure Container Registry
exchanges a token of Microsoft Entra for one of its own (github.com/Azure/acr, docs/AAD-OAuth.md); others give
one to everybody who asks. A registry may redirect the read of a blob to another host, with a URL that is
itself a credential: our token is not sent there.
"""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import requests
import urllib3
from azure.core.credentials import TokenCredential

from shared.adapters.transport import entra_token
from shared.cluster.failures.errors import (
    Dependency,
    Throttled,
    Unauthorized,
    Unavailable,
)
from shared.cluster.failures.retry import retry_after
from shared.ports.artifact import (
    MAX_LAYER,
    MAX_MANIFEST,
    UnreadableArtifact,
    first_layer,
    too_large,
    verified,
)
from shared.ports.services import not_among

SECONDS = (5, 10)
"""To connect, and to wait for an answer, or for more of one."""
MOST_SECONDS = 60.0
"""How long a download may take."""
MOST_LAYERS = 4
"""So many layers remain in memory, because plan after plan asks for the same."""
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
_CHUNK = 1 << 16


class OciRegistries:
    """The ``Registries`` port; ``urls`` has the address of each registry by its host.

    Only these are asked, so no manifest leads the app, or its token, anywhere else. No redirect is followed
    but one to the content of a blob, which counts only with its digest.
    """

    def __init__(
        self,
        urls: Mapping[str, str],
        credential: TokenCredential,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        self._urls, self._credential, self._elapsed = urls, credential, elapsed
        self._layers: OrderedDict[tuple[str, str, str], bytes] = OrderedDict()

    def digest(self, host: str, name: str, tag: str) -> str:
        """Return the digest that a tag of a repository has now."""
        what = f"{host}/{name}:{tag}"
        answer = self._signed("HEAD", host, f"/v2/{name}/manifests/{tag}", {"Accept": _ACCEPT})
        _raise_for(answer, what)
        digest = str(answer.headers.get("Docker-Content-Digest", ""))
        if not _DIGEST.fullmatch(digest):
            raise Unavailable(f"{what}: the registry names no digest")
        return digest

    def layer(self, host: str, name: str, digest: str) -> bytes:
        """Return the first layer of the artifact with a digest."""
        key = host, name, digest
        found = self._layers.pop(key, None)
        if found is None:
            found = self._layer(host, name, digest)
        self._layers[key] = found
        while len(self._layers) > MOST_LAYERS:
            self._layers.popitem(last=False)
        return found

    def _layer(self, host: str, name: str, digest: str) -> bytes:
        headers = {"Accept": _ACCEPT, "Accept-Encoding": "identity"}
        what = f"{host}/{name}@{digest[:19]}"
        answer = self._signed("GET", host, f"/v2/{name}/manifests/{digest}", headers, stream=True)
        layer = first_layer(self._content(answer, what, MAX_MANIFEST), digest)
        if not _DIGEST.fullmatch(layer.digest):
            raise UnreadableArtifact("its layer has no digest of sha256")
        answer = self._signed("GET", host, f"/v2/{name}/blobs/{layer.digest}", headers, stream=True)
        link = str(answer.headers.get("Location", ""))
        if answer.is_redirect and link.startswith("https://"):
            answer.close()
            answer = self._ask("GET", link, host, headers={"Accept-Encoding": "identity"}, stream=True)
        return verified(self._content(answer, what, MAX_LAYER), layer.digest)

    def _content(self, answer: requests.Response, what: str, limit: int) -> bytes:
        """Return what an answer has; raise UnreadableArtifact for more bytes than a limit."""
        end, found = self._elapsed() + MOST_SECONDS, bytearray()
        try:
            with answer:
                _raise_for(answer, what)
                for chunk in answer.raw.stream(_CHUNK, decode_content=False):
                    found += chunk
                    if len(found) > limit:
                        raise UnreadableArtifact(too_large(len(found)))
                    if self._elapsed() > end:
                        raise Unavailable(f"{what}: the download takes longer than {MOST_SECONDS:g} seconds")
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise Unavailable(f"{what}: the download broke off: {type(error).__name__}") from None
        return bytes(found)

    def _signed(
        self, method: str, host: str, path: str, headers: dict[str, str], *, stream: bool = False
    ) -> requests.Response:
        """Return the answer of a registry; ``headers`` get the token that it asks for."""
        url = self._urls.get(host.lower())
        if url is None:
            raise not_among(host)
        answer = self._ask(method, f"{url}{path}", host, headers=headers, stream=stream)
        challenge = answer.headers.get("WWW-Authenticate", "")
        if answer.status_code != 401 or not challenge.lower().startswith("bearer "):
            return answer
        answer.close()
        headers["Authorization"] = f"Bearer {self._token(url, host, dict(_PARAMETER.findall(challenge)))}"
        return self._ask(method, f"{url}{path}", host, headers=headers, stream=stream)

    def _token(self, url: str, host: str, challenge: Mapping[str, str]) -> str:
        """Return a token that may pull, as a challenge asks for it."""
        asked = {name: challenge[name] for name in ("service", "scope") if name in challenge}
        if host.lower().endswith(_OF_AZURE):
            exchanged = {"grant_type": "access_token", "service": asked.get("service", host)}
            token = entra_token(self._credential, SCOPE, "registries")
            form = exchanged | {"access_token": token}
            refresh = self._granted("POST", f"{url}/oauth2/exchange", host, ("refresh_token",), data=form)
            form = {"grant_type": "refresh_token", **asked, "refresh_token": refresh}
            return self._granted("POST", f"{url}/oauth2/token", host, _TOKENS, data=form)
        realm = challenge.get("realm", "")
        if not realm.startswith("https://"):
            raise Unavailable(f"{host} asks for a token without saying where it is")
        return self._granted("GET", realm, host, _TOKENS, params=asked)

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
            return requests.request(
                method, url, timeout=SECONDS, allow_redirects=False, auth=_anonymous, **given
            )
        except (requests.RequestException, OSError, ValueError) as error:
            raise Unavailable(f"{host} does not answer: {type(error).__name__}") from None


def _anonymous(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Add no credential; without this, requests searches the user's .netrc for one."""
    return request


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
