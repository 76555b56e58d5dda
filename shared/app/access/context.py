"""The context of a step: the record, the ports, the tags that mark the cluster as ours, and the ways into it.

Those are a known API server, a kubeconfig, one outside Azure, and one in a private network. AKS gives one
kubeconfig a second for each subscription, so where a token of the app is the credential the record has the
address and the certificate authority of the API server. After an error that may mean another server, such as
a re-created cluster or a rotated authority, the next step asks AKS again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar, cast

from shared.azure.ownership import Installation, OwnerTags
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
from shared.cluster.job import Job
from shared.cluster.outcomes import Fail, Outcome, Retry
from shared.cluster.record import ClusterRecord
from shared.frozen import dataclass, replace
from shared.kubernetes.kubeconfig import ApiServer, Kubeconfig, KubeconfigError, read_kubeconfig
from shared.language.desired import Desired
from shared.ports import KubernetesApi, Ports
from shared.ports.azure import AzureCall, GetKubeconfig
from shared.resource_ids import ClusterId, ObjectRef

_UNAUTHORIZED = "Unauthorized"
"""Kubernetes does not know the caller (kubernetes/apimachinery ``meta/v1`` StatusReason)."""


class ClusterAccess:
    """The ports of one run of a step, which enters the cluster of its record as that, or Azure, says.

    ``opened`` is whether it has entered.
    """

    def __init__(self, record: ClusterRecord, ports: Ports) -> None:
        self._known, self._found = record.observation.api_server, record.observation.api_server
        self._tried, self.opened, self._inner = False, False, ports
        self.ports = replace(ports, kubernetes=self)

    def connect(
        self,
        cluster: ClusterId,
        *,
        known: ApiServer | None = None,
        kubeconfig: Callable[[ClusterId], str] | None = None,
    ) -> KubernetesApi:
        """Return the API of the cluster; a kubeconfig is fetched within Azure's limits."""
        self._tried = True
        fetch = kubeconfig or (lambda target: self._inner.azure.call(GetKubeconfig(target)))
        api = self._inner.kubernetes.connect(cluster, known=known or self._known, kubeconfig=fetch)
        self._found, self.opened = api.server(), True
        return api

    def open(self, cluster: ClusterId, kubeconfig: Kubeconfig) -> KubernetesApi:
        """Return the API of a cluster that is not in Azure."""
        return self._inner.kubernetes.open(cluster, kubeconfig)

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


T = TypeVar("T")


@dataclass(frozen=True)
class StepContext:
    """Built once per step. The spec is parsed when it is used, so that a delete works without a valid one."""

    record: ClusterRecord
    ports: Ports
    owner: OwnerTags

    @classmethod
    def of(cls, record: ClusterRecord, ports: Ports) -> StepContext:
        """Return the context of the step that the record is at."""
        config = ports.config
        mine = config.installation or record.ownership.installation
        former = () if record.ownership.installation in ("", mine) else (record.ownership.installation,)
        owner = OwnerTags(
            config.fleet,
            config.repository,
            record.name,
            config.previous_repository,
            installation=Installation(mine, config.branch) if mine else None,
            life=record.azure.life or record.uid,
            known=record.azure.was_tagged,
            overruled=(*record.ownership.overruled, *former),
            predecessors=(*record.ownership.predecessors, *former),
        )
        return cls(record, ports, owner)

    @property
    def job(self) -> Job:
        """The job whose step runs."""
        return self.record.job

    @property
    def desired(self) -> Desired:
        """The spec that the job brings about."""
        return self.record.desired

    @property
    def cluster(self) -> ClusterId:
        """Where the cluster lives in Azure."""
        return self.desired.id

    @property
    def enters(self) -> bool:
        """Whether steps may work inside the cluster: the Flux extension alone needs no way to its API server.

        With the components of the repository there is no other way than inside.
        """
        desired = self.desired
        return not (desired.has_extension and desired.is_private) or self.ports.config.reaches_private is True

    @property
    def poll_seconds(self) -> float:
        """The seconds until the next read of Azure, spread so that clusters do not read at the same time."""
        return self.ports.config.timing.poll_seconds * (0.9 + 0.2 * self.ports.random())

    def azure(self, operation: AzureCall[T]) -> T:
        """Make one call to Azure."""
        return self.ports.azure.call(operation)

    def kubernetes(self) -> KubernetesApi:
        """Return the Kubernetes API of the cluster."""
        if self.desired.is_attached:
            return self._attached
        api = self.ports.kubernetes.connect(self.cluster)
        return private_api(api) if self.desired.is_private else api

    @cached_property
    def _attached(self) -> KubernetesApi:
        """The API of a cluster that is not in Azure, with the kubeconfig as the vault has it now."""
        return enter(self.record, self.ports)
