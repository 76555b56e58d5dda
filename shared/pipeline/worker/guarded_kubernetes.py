"""The Kubernetes API of the clusters with a guard before every write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from shared.fleet.json_tree import Json
from shared.fleet.kubernetes.api_server import ApiServer, Certificate
from shared.fleet.kubernetes.kubeconfig import Kubeconfig
from shared.fleet.resource_ids import ClusterId, ObjectRef
from shared.ports import Kubernetes, KubernetesApi

Guard = Callable[[str, Json | str], None]
"""What is called before a write, with a verb, and the object, or the name of the node or pod."""


@dataclass(frozen=True)
class GuardedKubernetes:
    """The clusters, with ``guard`` before every write."""

    inner: Kubernetes
    guard: Guard

    def connect(
        self,
        cluster: ClusterId,
        *,
        known: ApiServer | None = None,
        kubeconfig: Callable[[ClusterId], str] | None = None,
    ) -> KubernetesApi:
        """Return the API of a cluster, guarded."""
        return _Api(self.inner.connect(cluster, known=known, kubeconfig=kubeconfig), self.guard)

    def open(self, cluster: ClusterId, kubeconfig: Kubeconfig) -> KubernetesApi:
        """Return the API of a cluster that is not in Azure, guarded."""
        return _Api(self.inner.open(cluster, kubeconfig), self.guard)


@dataclass(frozen=True)
class _Api:
    inner: KubernetesApi
    guard: Guard

    def server(self) -> ApiServer | None:
        return self.inner.server()

    def certificates(self) -> Sequence[Certificate]:
        return self.inner.certificates()

    def check(self) -> None:
        self.inner.check()

    def get(self, ref: ObjectRef) -> Json | None:
        return self.inner.get(ref)

    def apply(self, manifest: Json, *, dry_run: bool = False) -> Json:
        if not dry_run:
            self.guard("apply", manifest)
        return self.inner.apply(manifest, dry_run=dry_run)

    def create(self, manifest: Json) -> Json:
        self.guard("create", manifest)
        return self.inner.create(manifest)

    def replace(self, live: Json, *, status: bool = False) -> Json:
        self.guard("write", live)
        return self.inner.replace(live, status=status)

    def delete(self, live: Json) -> None:
        self.guard("delete", live)
        self.inner.delete(live)

    def list(
        self, api_version: str, kind: str, *, namespace: str = "", labels: str = "", fields: str = ""
    ) -> Sequence[Json]:
        return self.inner.list(api_version, kind, namespace=namespace, labels=labels, fields=fields)

    def cordon(self, node: str, at: datetime) -> None:
        self.guard("cordon", node)
        self.inner.cordon(node, at)

    def uncordon(self, node: str) -> None:
        self.guard("uncordon", node)
        self.inner.uncordon(node)

    def evict(self, namespace: str, pod: str) -> None:
        self.guard("evict", f"{namespace}/{pod}")
        self.inner.evict(namespace, pod)
