"""The Kubernetes port on the official client: raw JSON calls with server-side apply.

A kubeconfig is parsed in memory. Client certificates touch the disk only while OpenSSL loads them, in
files of a private folder that is gone before the first request. Clusters with local accounts disabled
(kubeconfigs that name a plugin to run) are entered with an Entra token instead of the plugin.
Connections live for five minutes, so that a rotated credential is picked up.
"""

from __future__ import annotations

import base64
import binascii
import json
import ssl
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import urllib3
import yaml
from azure.core.exceptions import AzureError, ClientAuthenticationError
from kubernetes.client import ApiClient, Configuration
from kubernetes.client.exceptions import ApiException

from shared.fleet.ids import ClusterId, ObjectRef
from shared.jobs.errors import (
    Conflict,
    Dependency,
    ReconcileError,
    Unauthenticated,
    Unavailable,
    from_http,
)
from shared.ports import Clock, Json, KubernetesApi

AKS_SCOPE = "6dae42f8-4368-4678-94ff-3960e28e3630/.default"
"""The Entra scope of every AKS API server: the same application in all tenants."""

_CONNECT_READ_SECONDS = (5.0, 20.0)
_LIFETIME = timedelta(minutes=5)
_MANAGER = "roadstead"
_APPLY = "application/apply-patch+yaml"


class KubernetesConnections:
    """Opens and keeps connections; ``kubeconfig`` fetches one, ``aad_token`` a token for a scope."""

    def __init__(
        self,
        kubeconfig: Callable[[ClusterId], str],
        *,
        aad_token: Callable[[str], str] | None,
        clock: Clock,
    ) -> None:
        self._kubeconfig, self._aad_token, self._clock = kubeconfig, aad_token, clock
        self._open: dict[ClusterId, tuple[_Connection, datetime]] = {}
        self._lock = threading.Lock()

    def connect(self, cluster: ClusterId) -> KubernetesApi:
        """Return the API of a cluster, over a connection at most five minutes old."""
        now = self._clock()
        with self._lock:
            self._drop([other for other, (_, until) in self._open.items() if until <= now])
            if cluster in self._open:
                return self._open[cluster][0]
        login = _login(cluster, self._kubeconfig(cluster))
        if login.plugin and self._aad_token is not None:
            login = _Login(login.url, login.ca, token=_token(self._aad_token))
        connection = _Connection(cluster, _client(cluster, login), self._forget)
        with self._lock:
            self._drop([cluster] if cluster in self._open else [])
            self._open[cluster] = (connection, now + _LIFETIME)
        return connection

    def close(self) -> None:
        """Close every connection."""
        with self._lock:
            self._drop(list(self._open))

    def _forget(self, cluster: ClusterId, connection: _Connection) -> None:
        with self._lock:
            if cluster in self._open and self._open[cluster][0] is connection:
                self._drop([cluster])

    def _drop(self, clusters: list[ClusterId]) -> None:
        for cluster in clusters:
            self._open.pop(cluster)[0].close()


@dataclass(frozen=True)
class _Answer:
    status: int
    headers: Mapping[str, str]
    body: Mapping[str, Any]


class _Connection:
    """A KubernetesApi over the official client."""

    def __init__(
        self, cluster: ClusterId, client: Any, forget: Callable[[ClusterId, _Connection], None]
    ) -> None:
        self._cluster, self._client, self._forget = cluster, client, forget
        self._resources: dict[tuple[str, str], tuple[str, bool]] = {}
        self._accepted = False

    def check(self) -> None:
        """Ask ``/readyz``."""
        answer = self._call("GET", "/readyz")
        if answer.status != 200:
            raise self._error(answer, f"the API server of {self._cluster.name}")

    def get(self, ref: ObjectRef) -> Json | None:
        """Return the object, or None."""
        path = self._path(ref)
        answer = None if path is None else self._call("GET", path)
        if answer is None or answer.status == 404:
            return None
        if answer.status >= 300:
            raise self._error(answer, str(ref), secret=ref.kind == "Secret")
        return answer.body

    def apply(self, manifest: Json) -> Json:
        """Apply as field manager "roadstead", taking over conflicting fields."""
        metadata = manifest["metadata"]
        ref = ObjectRef(
            manifest["apiVersion"], manifest["kind"], metadata["name"], metadata.get("namespace") or ""
        )
        path = self._path(ref)
        if path is None:
            message = f"{ref}: the cluster does not know {ref.api_version} {ref.kind}"
            raise Dependency(message, code="NotFound")
        answer = self._call("PATCH", f"{path}?fieldManager={_MANAGER}&force=true", json.dumps(manifest))
        if answer.status >= 300:
            if answer.status == 404:
                self._resources.clear()
            raise self._error(answer, str(ref), secret=ref.kind == "Secret")
        return answer.body

    def close(self) -> None:
        """Close the connection's sockets."""
        self._client.close()

    def _path(self, ref: ObjectRef) -> str | None:
        """Return the URL path of an object, or None when the cluster does not know its kind."""
        base = f"/apis/{ref.api_version}" if "/" in ref.api_version else f"/api/{ref.api_version}"
        if (ref.api_version, ref.kind) not in self._resources:
            self._discover(ref.api_version, base)
        found = self._resources.get((ref.api_version, ref.kind))
        if found is None:
            return None
        plural, namespaced = found
        where = f"/namespaces/{quote(ref.namespace or 'default', safe='')}" if namespaced else ""
        return f"{base}{where}/{plural}/{quote(ref.name, safe='')}"

    def _discover(self, api_version: str, base: str) -> None:
        answer = self._call("GET", base)
        if answer.status == 404:
            return
        if answer.status >= 300:
            raise self._error(answer, f"discovery of {api_version}")
        for resource in answer.body.get("resources") or ():
            if "/" not in resource["name"]:
                key = (api_version, resource["kind"])
                self._resources[key] = (resource["name"], bool(resource["namespaced"]))

    def _call(self, method: str, path: str, body: str | None = None) -> _Answer:
        headers = {**self._client.default_headers, "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = _APPLY
        try:
            reply = self._client.call_api(
                method,
                f"{self._client.configuration.host}{path}",
                header_params=headers,
                body=body,
                _request_timeout=_CONNECT_READ_SECONDS,
            )
            content = bytes(reply.read())
        except (urllib3.exceptions.HTTPError, ApiException, OSError) as error:
            self._forget(self._cluster, self)
            what = str(error.reason).splitlines()[0] if isinstance(error, ApiException) else ""
            name = what or type(error).__name__
            raise Unavailable(f"the API server of {self._cluster.name} does not answer: {name}") from error
        self._accepted = self._accepted or reply.status < 300
        return _Answer(reply.status, dict(reply.headers), _parsed(content))

    def _error(self, answer: _Answer, subject: str, *, secret: bool = False) -> ReconcileError:
        """Return the port's error for a refusal; of a Secret it shows only the reason."""
        reason = str(answer.body.get("reason") or "")
        text = "" if secret else str(answer.body.get("message") or "")
        message = f"{subject}: {text or reason or f'HTTP {answer.status}'}"
        headers = {name.lower(): value for name, value in answer.headers.items()}
        if answer.status == 401:
            self._forget(self._cluster, self)
            if self._accepted:  # they were good a moment ago: the next connection fetches new ones
                return Dependency(f"{subject}: the credentials are no longer accepted", code=reason)
        causes = (answer.body.get("details") or {}).get("causes") or ()
        if any(cause.get("reason") == "NamespaceTerminating" for cause in causes):
            return Conflict(message, code=reason)
        return from_http(
            answer.status,
            reason,
            message,
            retry_after=_seconds(headers.get("retry-after")),
            request_id=headers.get("audit-id", ""),
        )


def _parsed(content: bytes) -> Mapping[str, Any]:
    try:
        value = json.loads(content)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _seconds(text: str | None) -> float | None:
    return float(text) if text is not None and text.isdigit() else None


@dataclass(frozen=True)
class _Login:
    """What a kubeconfig's current context says; ``plugin``: it wants a program to be run for a token."""

    url: str
    ca: bytes = b""
    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)
    token: str = field(default="", repr=False)
    plugin: bool = False


def _token(fetch: Callable[[str], str]) -> str:
    """Return an Entra token for the API servers; raise Unauthenticated without the identity's own words."""
    try:
        return fetch(AKS_SCOPE)
    except ClientAuthenticationError as error:  # CredentialUnavailableError is one
        message = f"Entra gives us no token for the API servers: {type(error).__name__}"
        raise Unauthenticated(message) from error
    except AzureError as error:
        message = f"Entra does not answer for a token for the API servers: {type(error).__name__}"
        raise Unavailable(message) from error


def _login(cluster: ClusterId, text: str) -> _Login:
    """Read a kubeconfig; raise Unauthenticated, without any of its text, when it is not usable."""
    try:
        content = yaml.safe_load(text)
        context = _named(content["contexts"], content["current-context"])["context"]
        server = _named(content["clusters"], context["cluster"])["cluster"]
        user = _named(content["users"], context["user"]).get("user") or {}
        return _Login(
            server["server"].rstrip("/"),
            _decoded(server, "certificate-authority-data"),
            _decoded(user, "client-certificate-data"),
            _decoded(user, "client-key-data"),
            user.get("token", ""),
            plugin="exec" in user or "auth-provider" in user,
        )
    except (yaml.YAMLError, KeyError, TypeError, AttributeError, StopIteration, binascii.Error):
        raise Unauthenticated(f"the kubeconfig of {cluster.name} is not usable") from None


def _named(items: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(item for item in items if item["name"] == name)


def _decoded(section: Mapping[str, str], name: str) -> bytes:
    return base64.b64decode(section.get(name, ""), validate=True)


def _client(cluster: ClusterId, login: _Login) -> Any:
    """Return an ApiClient; it is not typed."""
    try:
        context = _tls(login)
    except (ssl.SSLError, ValueError):
        raise Unauthenticated(
            f"the certificates in the kubeconfig of {cluster.name} are not usable"
        ) from None
    client: Any = ApiClient(Configuration(host=login.url))
    client.user_agent = _MANAGER
    if login.token:
        client.set_default_header("Authorization", f"Bearer {login.token}")
    client.rest_client.pool_manager = urllib3.PoolManager(
        num_pools=1, maxsize=4, ssl_context=context, retries=False
    )
    return client


def _tls(login: _Login) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=login.ca.decode() or None)
    # The authorities of clusters often lack the key identifiers that Python 3.13 began to insist on.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if login.certificate and login.key:
        with tempfile.TemporaryDirectory() as folder:  # only its owner may enter
            pair = Path(folder) / "pair.pem"
            pair.touch(mode=0o600)
            pair.write_bytes(login.certificate + b"\n" + login.key)
            context.load_cert_chain(pair)
    return context
