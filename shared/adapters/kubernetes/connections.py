"""The Kubernetes port: connections to the clusters of the fleet, and their credentials.

A kubeconfig with an exec plugin is that of a cluster with Entra ID. There the adapter uses a token of the
app, and a server that is known needs no kubeconfig. A connection lives for five minutes, so a rotated
credential is picked up.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from azure.core.exceptions import AzureError, ClientAuthenticationError

from shared.adapters.kubernetes.connection import ClientConnection
from shared.adapters.kubernetes.kubeconfig import Login, SeenCertificates, open_client, read_login
from shared.cluster.failures.errors import (
    Unauthenticated,
    Unavailable,
)
from shared.frozen import replace
from shared.kubernetes.kubeconfig import ApiServer, Kubeconfig
from shared.ports import Clock, KubernetesApi
from shared.reachable_addresses import Network, refused_address
from shared.resource_ids import ClusterId

AKS_SCOPE = "6dae42f8-4368-4678-94ff-3960e28e3630/.default"
"""The Entra scope of every AKS API server: the same application in all tenants."""

_LIFETIME = timedelta(minutes=5)


class KubernetesConnections:
    """Opens and caches connections; ``kubeconfig`` fetches a kubeconfig, ``aad_token`` a token."""

    def __init__(
        self,
        kubeconfig: Callable[[ClusterId], str],
        *,
        aad_token: Callable[[str], str] | None,
        clock: Clock,
        networks: Sequence[Network] = (),
    ) -> None:
        self._kubeconfig, self._aad_token, self._clock = kubeconfig, aad_token, clock
        self._networks = tuple(networks)
        self._open: dict[ClusterId, tuple[ClientConnection, datetime]] = {}
        self._entered_with: dict[ClusterId, Kubeconfig] = {}
        self._lock = threading.Lock()

    def connect(
        self,
        cluster: ClusterId,
        *,
        known: ApiServer | None = None,
        kubeconfig: Callable[[ClusterId], str] | None = None,
    ) -> KubernetesApi:
        """Return the API of a cluster, over a connection at most five minutes old."""
        now = self._clock()
        found = self._still_open(cluster, now)
        if found is not None:
            return found
        login = self._login(cluster, known, kubeconfig or self._kubeconfig)
        return self._opened(cluster, login, SeenCertificates(), now, login.server)

    def open(self, cluster: ClusterId, kubeconfig: Kubeconfig) -> KubernetesApi:
        """Return the API of a cluster that is not in Azure, over a connection with this kubeconfig."""
        now = self._clock()
        found = self._still_open(cluster, now)
        if found is not None and self._entered_with.get(cluster) == kubeconfig:
            return found
        connection = self._opened(cluster, kubeconfig, SeenCertificates(self._refused), now)
        with self._lock:
            self._entered_with[cluster] = kubeconfig
        return connection

    def _still_open(self, cluster: ClusterId, now: datetime) -> ClientConnection | None:
        with self._lock:
            self._drop([other for other, (_, until) in self._open.items() if until <= now])
            return self._open[cluster][0] if cluster in self._open else None

    def _refused(self, address: str) -> str:
        why = refused_address(address, self._networks)
        return f"the app does not connect to the server of the kubeconfig: {why}" if why else ""

    def _opened(
        self,
        cluster: ClusterId,
        login: Kubeconfig,
        seen: SeenCertificates,
        now: datetime,
        server: ApiServer | None = None,
    ) -> ClientConnection:
        client = open_client(cluster, login, seen)
        connection = ClientConnection(cluster, client, self._discard, server=server, seen=seen)
        with self._lock:
            self._drop([cluster] if cluster in self._open else [])
            self._open[cluster] = (connection, now + _LIFETIME)
        return connection

    def _login(
        self, cluster: ClusterId, known: ApiServer | None, kubeconfig: Callable[[ClusterId], str]
    ) -> Login:
        if known is None or self._aad_token is None:
            login = read_login(cluster, kubeconfig(cluster))
        else:
            login = Login(known.url, known.ca.encode(), exec_plugin=True)
        if login.exec_plugin and self._aad_token is not None:
            login = replace(login, token=_token(self._aad_token))
        return login

    def close(self) -> None:
        """Close every connection."""
        with self._lock:
            self._drop(list(self._open))

    def _discard(self, cluster: ClusterId, connection: ClientConnection) -> None:
        with self._lock:
            if cluster in self._open and self._open[cluster][0] is connection:
                self._drop([cluster])

    def _drop(self, clusters: list[ClusterId]) -> None:
        for cluster in clusters:
            self._open.pop(cluster)[0].close()
            self._entered_with.pop(cluster, None)


def _token(fetch: Callable[[str], str]) -> str:
    """Return an Entra token for the API servers; errors omit the message of the identity library."""
    try:
        return fetch(AKS_SCOPE)
    except ClientAuthenticationError as error:  # CredentialUnavailableError is one
        message = f"Entra issued no token for the API servers: {type(error).__name__}"
        raise Unauthenticated(message) from error
    except AzureError as error:
        message = f"Entra did not answer a token request for the API servers: {type(error).__name__}"
        raise Unavailable(message) from error
