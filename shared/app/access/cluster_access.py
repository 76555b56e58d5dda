"""The ways into a cluster: a known API server, a kubeconfig, one outside Azure, one in a private network.

AKS gives one kubeconfig a second for each subscription, so where a token of the app is the credential the
record has the address and the certificate authority of the API server. After an error that may mean another
server, such as a re-created cluster or a rotated authority, the next step asks AKS again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from shared.cluster.failures.errors import (
    AnotherCluster,
    Dependency,
    InvalidKubeconfig,
    PrivateUnreachable,
    ReconcileError,
    Unauthenticated,
    Unavailable,
    VaultUnavailable,
)
from shared.cluster.outcomes import Fail, Outcome, Retry
from shared.cluster.record import ClusterRecord
from shared.frozen import dataclass, field, replace
from shared.kubernetes.kubeconfig import ApiServer, Kubeconfig, KubeconfigError, read_kubeconfig
from shared.ports import Kubernetes, KubernetesApi, Ports
from shared.resource_ids import ClusterId, ObjectRef

_UNAUTHORIZED = "Unauthorized"
"""Kubernetes does not know the caller (kubernetes/apimachinery ``meta/v1`` StatusReason)."""


class ClusterAccess:
    """How one run of a step entered the cluster of its record; ``opened`` is whether it did."""

    def __init__(self, record: ClusterRecord) -> None:
        self._known, self._found = record.observation.api_server, record.observation.api_server
        self._tried, self.opened = False, False

    def over(self, ports: Ports) -> Ports:
        """Return the ports with every connection to the cluster through this access."""
        return replace(ports, kubernetes=_AccessedKubernetes(ports.kubernetes, self))

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
class _AccessedKubernetes:
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


# The way into a cluster outside Azure: a kubeconfig from a vault, and the proof that it is the same
# cluster.
#
# Whoever writes the secret can let it lead to another cluster at any time. So each step reads the secret
# again, and compares the identity of the cluster that it meets with that of the record, before it reads or
# writes anything else there. A cluster's identity is the uid of its namespace kube-system, which lives as
# long as it does (OpenTelemetry's ``k8s.cluster.uid``: opentelemetry.io/docs/specs/semconv/resource/k8s).

_IDENTITY = ObjectRef("v1", "Namespace", "kube-system")


def enter(record: ClusterRecord, ports: Ports) -> KubernetesApi:
    """Return the API of the cluster of a record; raise AnotherCluster where it is not the same as before."""
    api = ports.kubernetes.open(record.desired.id, _kubeconfig(record, ports))
    if record.ownership.cluster_uid and identity_of(api) != record.ownership.cluster_uid:
        vault, secret = record.desired.kubeconfig or ("", "")
        leads = (
            f"the kubeconfig in the secret {secret} of the vault {vault} leads to another cluster than before"
        )
        raise AnotherCluster(f"{leads}: the uid of its namespace kube-system differs")
    return api


def identity_of(api: KubernetesApi) -> str:
    """Return the identity of a cluster; raise Dependency where it does not show one."""
    found = api.get(_IDENTITY)
    uid = str(found["metadata"].get("uid") or "") if found else ""
    if not uid:
        raise Dependency("the cluster shows no namespace kube-system", code="NotFound")
    return uid


def _kubeconfig(record: ClusterRecord, ports: Ports) -> Kubeconfig:
    vault, secret = record.desired.kubeconfig or ("", "")
    try:
        return read_kubeconfig(ports.vaults.secret(vault, secret).value)
    except KubeconfigError as error:
        raise InvalidKubeconfig(f"the secret {secret} of the vault {vault}: {error}") from None


# The Kubernetes API of a private cluster: where it does not answer, the network is the likely reason.


def private_api(api: KubernetesApi) -> KubernetesApi:
    """Return the API with an error of its own where it does not answer."""
    return cast(KubernetesApi, _PrivateApi(api))


class _PrivateApi:
    def __init__(self, inner: KubernetesApi) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        return _told(found) if callable(found) else found


def _told(call: Callable[..., Any]) -> Callable[..., Any]:
    def told(*args: Any, **kwargs: Any) -> Any:
        try:
            return call(*args, **kwargs)
        except Unavailable as error:
            if error.code:  # an answer of the API server: there is a way
                raise
            raise PrivateUnreachable(
                f"the cluster is private, and the app may have no way to it: {error}",
                request_id=error.request_id,
                retry_after=error.retry_after,
            ) from None

    return told
