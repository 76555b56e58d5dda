"""A client of registries, as far as Flux pulls: manifests, tags and blobs.

Source: the distribution specification of the Open Container Initiative, v1.1, "Pull" and "Content discovery",
and for the sign-in with an identity learn.microsoft.com/azure/container-registry, "Authentication": the user
name is a GUID of zeros, and the password a token of the identity. Here it is the client id.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from localcloud.flux.sources.fetched import SourceLogin

IDENTITY_USER = "00000000-0000-0000-0000-000000000000"
_MANIFESTS = (
    "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json"
)


class RegistryError(Exception):
    """A registry refused, or has nothing there; the text is as go-containerregistry has it."""


@dataclass(frozen=True)
class Reply:
    """The reply of a registry."""

    status: int
    headers: Mapping[str, str]
    body: bytes


Send = Callable[[str, str, Mapping[str, str]], Reply]
"""Sends a GET for (host, path with its query, headers)."""


class DistributionClient:
    """Reads registries."""

    def __init__(self, send: Send) -> None:
        self._send = send

    def manifest(
        self, host: str, name: str, reference: str, login: SourceLogin
    ) -> tuple[dict[str, Any], str]:
        """Return a manifest and its digest, which is that of its bytes."""
        reply = self._get(host, f"/v2/{name}/manifests/{reference}", login, {"Accept": _MANIFESTS})
        return json.loads(reply.body), _verified(reply.body, reference)

    def tags(self, host: str, name: str, login: SourceLogin) -> list[str]:
        """Return all tags of a repository."""
        return list(json.loads(self._get(host, f"/v2/{name}/tags/list", login, {}).body).get("tags") or ())

    def blob(self, host: str, name: str, digest: str, login: SourceLogin) -> bytes:
        """Return a blob; what does not have the digest is refused."""
        body = self._get(host, f"/v2/{name}/blobs/{digest}", login, {}).body
        _verified(body, digest)
        return body

    def _get(self, host: str, path: str, login: SourceLogin, headers: Mapping[str, str]) -> Reply:
        reply = self._send(host, path, {**headers, **_authorization(login)})
        link = urlsplit(reply.headers.get("Location", ""))
        if reply.status == 307:
            reply = self._send(link.netloc, f"{link.path}?{link.query}", {})
        if reply.status != 200:
            errors = _errors(reply.body)
            raise RegistryError(
                f"GET https://{host}{path}: {errors or f'unexpected status code {reply.status}'}"
            )
        return reply


def _authorization(login: SourceLogin) -> dict[str, str]:
    user, password = (IDENTITY_USER, login.client_id) if login.client_id else (login.user, login.password)
    if not user:
        return {}
    return {"Authorization": f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"}


def _verified(content: bytes, reference: str) -> str:
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    if reference.startswith("sha256:") and reference != digest:
        raise RegistryError(f"manifest digest: {digest!r} does not match requested digest: {reference!r}")
    return digest


def _errors(body: bytes) -> str:
    try:
        found = json.loads(body)["errors"]
        return "; ".join(f"{document['code']}: {document['message']}" for document in found)
    except (ValueError, KeyError, TypeError):
        return ""
