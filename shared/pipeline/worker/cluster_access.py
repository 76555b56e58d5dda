"""The way into a cluster: a known API server needs no kubeconfig, and a step's outcome decides what is known.

AKS gives one kubeconfig a second for each subscription, so where a token of the app is the credential the
record has the address and the certificate authority of the API server. After an error that may mean another
server, such as a re-created cluster or a rotated authority, the next step asks AKS again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from shared.fleet.kubernetes.api_server import ApiServer
from shared.fleet.kubernetes.kubeconfig import Kubeconfig
from shared.fleet.resource_ids import ClusterId
from shared.frozen import replace
from shared.jobs.failures.errors import ReconcileError, Unauthenticated, Unavailable, VaultUnavailable
from shared.jobs.outcomes import Fail, Outcome, Retry
from shared.jobs.record import ClusterRecord
from shared.ports import Kubernetes, KubernetesApi, Ports

_UNAUTHORIZED = "Unauthorized"
"""Kubernetes does not know the caller (kubernetes/apimachinery ``meta/v1`` StatusReason)."""


class ClusterAccess:
    """How one run of a step entered the cluster of its record; ``opened`` is whether it did."""

    def __init__(self, record: ClusterRecord) -> None:
        self._known, self._found = record.api_server, record.api_server
        self._tried, self.opened = False, False

    def over(self, ports: Ports) -> Ports:
        """Return the ports with every connection to the cluster through this access."""
        return replace(ports, kubernetes=_Kubernetes(ports.kubernetes, self))

    def connect(
        self, inner: Kubernetes, cluster: ClusterId, kubeconfig: Callable[[ClusterId], str] | None
    ) -> KubernetesApi:
        """Return the API of the cluster."""
        self._tried = True
        api = inner.connect(cluster, known=self._known, kubeconfig=kubeconfig)
        self._found, self.opened = api.server(), True
        return api

    @property
    def with_secret(self) -> bool:
        """Whether this worker entered the cluster with a credential that no other worker has."""
        return self.opened and self._found is None

    def server_after(self, outcome: Outcome) -> ApiServer | None:
        """Return what the record has to know of the API server after an outcome of the step."""
        failed = isinstance(outcome, Retry | Fail) and _may_be_another_server(outcome.error)
        return None if self._tried and failed else self._found


def _may_be_another_server(error: ReconcileError) -> bool:
    if isinstance(error, VaultUnavailable):
        return False
    return isinstance(error, Unavailable | Unauthenticated) or error.code == _UNAUTHORIZED


@dataclass(frozen=True)
class _Kubernetes:
    inner: Kubernetes
    access: ClusterAccess = field(repr=False)

    def connect(
        self,
        cluster: ClusterId,
        *,
        known: ApiServer | None = None,  # noqa: ARG002 - the record knows
        kubeconfig: Callable[[ClusterId], str] | None = None,
    ) -> KubernetesApi:
        return self.access.connect(self.inner, cluster, kubeconfig)

    def open(self, cluster: ClusterId, kubeconfig: Kubeconfig) -> KubernetesApi:
        return self.inner.open(cluster, kubeconfig)
