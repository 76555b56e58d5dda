"""The Kubernetes port in memory, as production wires it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from localcloud.kubernetes.world.kubernetes_clusters import KubernetesClusters
from localcloud.kubernetes.world.logins import ClusterLogin, kubeconfig_login
from shared.cluster.failures.errors import ReconcileError
from shared.kubernetes.kubeconfig import ApiServer, Kubeconfig
from shared.ports import Clock, KubernetesApi
from shared.resource_ids import ClusterId

LIFETIME = timedelta(minutes=5)


class Connections:
    """Connections that start with a kubeconfig, or with a known server and a token, and are used again."""

    def __init__(
        self, inner: KubernetesClusters, kubeconfig: Callable[[ClusterId], str], clock: Clock
    ) -> None:
        self._inner, self._kubeconfig, self._clock = inner, kubeconfig, clock
        self._open: dict[ClusterId, tuple[ClusterLogin, datetime]] = {}

    def connect(
        self,
        cluster: ClusterId,
        *,
        known: ApiServer | None = None,
        kubeconfig: Callable[[ClusterId], str] | None = None,
    ) -> KubernetesApi:
        """Return the API of a cluster; raise Azure's error for a cluster that does not exist."""
        now = self._clock()
        login, until = self._open.get(cluster, (None, now))
        if login is None or until <= now:
            fetch = kubeconfig or self._kubeconfig
            login = (
                ClusterLogin(known.url, known.ca, token=True) if known else kubeconfig_login(fetch(cluster))
            )
            self._open[cluster] = (login, now + LIFETIME)
        try:
            return self._inner.enter(cluster, login)
        except ReconcileError:
            del self._open[cluster]
            raise

    def open(self, _: ClusterId, kubeconfig: Kubeconfig) -> KubernetesApi:
        """Return the API of a cluster that is not in Azure, by what its kubeconfig says."""
        return self._inner.enter_outside(kubeconfig.url, kubeconfig.token)
