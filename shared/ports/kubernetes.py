"""The Kubernetes APIs of the clusters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol

from shared.frozen import dataclass
from shared.json_tree import Json
from shared.kubernetes.kubeconfig import ApiServer, Certificate, Kubeconfig
from shared.resource_ids import ClusterId, ObjectRef


@dataclass(frozen=True)
class Access:
    """A right in all namespaces of a cluster: a verb of Kubernetes, an API group, a resource."""

    verb: str
    group: str
    resource: str


REQUIRED_ACCESS = (
    Access("patch", "apiextensions.k8s.io", "customresourcedefinitions"),
    Access("patch", "rbac.authorization.k8s.io", "clusterrolebindings"),
    Access("patch", "", "nodes"),
)
"""What only an administrator of the cluster may do: install Flux, grant Flux its rights, cordon a node."""
CORDONED = "roadstead.dev/cordoned-at"
"""Annotation of a node with the time at which Roadstead cordoned it."""


def cordon_patch(at: datetime | None) -> Json:
    """Return the merge patch that cordons a node at a time, or uncordons it (None)."""
    annotations = {CORDONED: at.isoformat() if at else None}
    return {"metadata": {"annotations": annotations}, "spec": {"unschedulable": at is not None}}


@dataclass(frozen=True)
class ObjectListPage:
    """A page of a list; ``after`` is what names the next one, "" for the last."""

    objects: Sequence[Json]
    after: str = ""


class KubernetesApi(Protocol):
    """The Kubernetes API of one cluster, as JSON objects."""

    def server(self) -> ApiServer | None:
        """Return where the API is when a token of the app is the credential, None when a secret of AKS is.

        Whoever knows it connects without a kubeconfig. This makes no call.
        """

    def certificates(self) -> Sequence[Certificate]:
        """Return the certificates that prove the API server, as the connection has seen them.

        That of the server is the one of the newest handshake. This makes no call.
        """

    def check(self) -> None:
        """Prove that we have ``REQUIRED_ACCESS``; raise Unauthorized when we lack some of it.

        Raise Unavailable without a response, Unauthenticated when the API server does not know us.
        """

    def get(self, ref: ObjectRef) -> Json | None:
        """Return the object, or None (also when the cluster does not know its kind)."""

    def apply(self, manifest: Json, *, dry_run: bool = False) -> Json:
        """Server-side apply as field manager "roadstead", taking over conflicting fields; return the result.

        A ``dry_run`` changes nothing, and returns what the apply would leave.

        Raise Dependency when the cluster does not know the kind (yet), or the namespace is missing,
        NamespaceTerminating while the namespace is being deleted, and InvalidManifest with the field for an
        object that the API server refuses.
        """

    def create(self, manifest: Json) -> Json:
        """Create an object that does not exist; return it. Raise Conflict when it exists."""

    def replace(self, live: Json, *, status: bool = False) -> Json:
        """Write an object that was read, or its ``status``, as a whole; return the result.

        Raise Conflict when somebody wrote it since, Dependency when it no longer exists.
        """

    def delete(self, live: Json) -> None:
        """Delete an object that was read; one that no longer exists is success.

        Raise Conflict when somebody wrote it since.
        """

    def list(
        self, api_version: str, kind: str, *, namespace: str = "", labels: str = "", fields: str = ""
    ) -> Sequence[Json]:
        """Return all objects of a kind, of all namespaces when ``namespace`` is "".

        ``labels`` ("app=web,!old") and ``fields`` ("spec.nodeName=aks-a-0") are selectors as kubectl takes
        them. Raise Dependency when the cluster does not know the kind, Conflict when the list expired
        while it was read.
        """

    def page(
        self,
        api_version: str,
        kind: str,
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        after: str = "",
        metadata_only: bool = False,
    ) -> ObjectListPage:
        """Return one page of what ``list`` returns, so that nobody has all objects at once; one call.

        ``after`` is that of the page before. With ``metadata_only`` an object has ``metadata`` alone.
        """

    def metric(self, name: str) -> Sequence[str]:
        """Return the samples of a metric of the API server that answers, as the lines of ``/metrics``.

        A cluster may have several API servers, each with numbers of its own.
        """

    def cordon(self, node: str, at: datetime) -> None:
        """Forbid new pods on a node, with ``CORDONED``; a node that does not exist is success."""

    def uncordon(self, node: str) -> None:
        """Allow new pods on a node, without ``CORDONED``; a node that does not exist is success."""

    def evict(self, namespace: str, pod: str) -> None:
        """Evict a pod, within its disruption budgets; one that does not exist is success.

        Raise Blocked while a PodDisruptionBudget, or an admission policy or webhook, does not allow it.
        """


class Kubernetes(Protocol):
    """Connections to the Kubernetes APIs of the fleet."""

    def connect(
        self,
        cluster: ClusterId,
        *,
        known: ApiServer | None = None,
        kubeconfig: Callable[[ClusterId], str] | None = None,
    ) -> KubernetesApi:
        """Return the API of a cluster; its credentials live in memory only.

        With a ``known`` server, a token of the app suffices. Without one, a kubeconfig is fetched;
        ``kubeconfig`` replaces the port's own way to do so. Neither is used while a connection is open.
        """

    def open(self, cluster: ClusterId, kubeconfig: Kubeconfig) -> KubernetesApi:
        """Return the API of a cluster that is not in Azure; its credentials live in memory only.

        A connection is used again while the kubeconfig is the same. Raise InvalidKubeconfig for an address
        to which this app does not connect.
        """
