"""The way to an API server: the current context of a kubeconfig, and a client with its credentials.

The kubeconfig is parsed in memory. Client certificates are on disk only while OpenSSL loads them, in a
private folder that is removed before the first request.
"""

from __future__ import annotations

import base64
import socket
import ssl
import tempfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import urllib3
import yaml
from urllib3.connectionpool import HTTPSConnectionPool

from shared.adapters.transport import address_of, looking
from shared.cluster.failures.errors import InvalidKubeconfig, Unauthenticated
from shared.frozen import dataclass
from shared.kubernetes.kubeconfig import AUTHORITY, SERVER, ApiServer, Certificate, Kubeconfig
from shared.resource_ids import ClusterId

_MALFORMED = (
    *(yaml.YAMLError, LookupError, TypeError, AttributeError, ValueError, RecursionError, StopIteration),
)


@dataclass(frozen=True)
class Login(Kubeconfig):
    """The current context of a kubeconfig; ``exec_plugin``: it asks for a program that fetches a token."""

    exec_plugin: bool = False

    @property
    def server(self) -> ApiServer | None:
        """The server where a token of the app is the credential, None with one of the kubeconfig."""
        return ApiServer(self.url, self.ca.decode()) if self.exec_plugin and self.token else None


def read_login(cluster: ClusterId, text: str) -> Login:
    """Parse a kubeconfig; raise Unauthenticated, without any of its text, when it is invalid."""
    try:
        content = yaml.safe_load(text)
        context = _named(content["contexts"], content["current-context"])["context"]
        server = _named(content["clusters"], context["cluster"])["cluster"]
        user = _named(content["users"], context["user"]).get("user") or {}
        return Login(
            server["server"].rstrip("/"),
            _decoded(server, "certificate-authority-data"),
            _decoded(user, "client-certificate-data"),
            _decoded(user, "client-key-data"),
            user.get("token", ""),
            exec_plugin="exec" in user or "auth-provider" in user,
        )
    except _MALFORMED:
        raise Unauthenticated(f"the kubeconfig of {cluster.name} is invalid") from None


def _named(items: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(item for item in items if item["name"] == name)


def _decoded(section: Mapping[str, str], name: str) -> bytes:
    return base64.b64decode(section.get(name, ""), validate=True)


class SeenCertificates:
    """The certificates that a client has seen: the authorities that it trusts, and that of the server."""

    def __init__(self, refused: Callable[[str], str] = lambda _: "") -> None:
        self._ends: dict[str, datetime] = {}
        self._refused = refused

    def all(self) -> list[Certificate]:
        """Return each kind with its end; of several authorities the one that ends first."""
        return [Certificate(of, ends) for of, ends in self._ends.items()]

    def trusts(self, context: ssl.SSLContext) -> None:
        """Take the authorities of a context."""
        ends = [_end(authority) for authority in context.get_ca_certs()]
        if ends:
            self._ends[AUTHORITY] = min(ends)

    def pools(self) -> type[HTTPSConnectionPool]:
        """Return the class of connection pools whose handshakes are seen."""
        ends, refused = self._ends, self._refused

        def reached(opened: socket.socket) -> None:
            why = refused(address_of(opened))
            if why:
                raise InvalidKubeconfig(why)

        class ObservedConnection(looking(reached)):  # type: ignore[misc]  # a class of its own for each client
            def connect(self) -> None:
                super().connect()
                shown = self.sock.getpeercert() if isinstance(self.sock, ssl.SSLSocket) else None
                if shown:
                    ends[SERVER] = _end(shown)

        class KubernetesPool(HTTPSConnectionPool):
            ConnectionCls = ObservedConnection

        return KubernetesPool


def _end(certificate: Mapping[str, Any]) -> datetime:
    return datetime.fromtimestamp(ssl.cert_time_to_seconds(certificate["notAfter"]), UTC)


def open_client(cluster: ClusterId, login: Kubeconfig, seen: SeenCertificates) -> Any:
    """Return an ApiClient, which is untyped; it shows ``seen`` the certificates."""
    from kubernetes.client import ApiClient, Configuration  # its models: a start does not wait for them

    try:
        context = _tls(login)
    except (ssl.SSLError, ValueError):
        raise Unauthenticated(f"the certificates in the kubeconfig of {cluster.name} are invalid") from None
    if login.ca:
        seen.trusts(context)
    client: Any = ApiClient(Configuration(host=login.url))
    client.user_agent = "roadstead"
    if login.token:
        client.set_default_header("Authorization", f"Bearer {login.token}")
    pools = urllib3.PoolManager(num_pools=1, maxsize=4, ssl_context=context, retries=False)
    pools.pool_classes_by_scheme = {**pools.pool_classes_by_scheme, "https": seen.pools()}
    client.rest_client.pool_manager = pools
    return client


def _tls(login: Kubeconfig) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=login.ca.decode() or None)
    # The certificate authorities of clusters often lack the key identifiers that Python 3.13 requires.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if login.certificate and login.key:
        with tempfile.TemporaryDirectory() as folder:  # readable by its owner only
            pair = Path(folder) / "pair.pem"
            pair.touch(mode=0o600)
            pair.write_bytes(login.certificate + b"\n" + login.key)
            context.load_cert_chain(pair)
    return context
