"""The calls to the clusters of a cloud in memory, counted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from localcloud.memory.memory_cloud import MemoryCloud
from shared.json_tree import Json
from shared.kubernetes.kubeconfig import Kubeconfig
from shared.ports import KubernetesApi, ObjectListPage
from shared.resource_ids import ClusterId, ObjectRef
from tests.support.replaced_ports import Around

WRITES = ("create", "replace", "delete", "cordon", "uncordon", "evict")
"""Those besides an apply."""


@dataclass
class Calls:
    """What a cluster was asked."""

    read: list[ObjectRef] = field(default_factory=list)
    listed: list[str] = field(default_factory=list)
    applied: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    tried: list[str] = field(default_factory=list)
    paged: list[str] = field(default_factory=list)
    measured: list[str] = field(default_factory=list)

    def around(self, api: KubernetesApi) -> Any:
        def get(ref: ObjectRef) -> Json | None:
            self.read.append(ref)
            return api.get(ref)

        def listed(api_version: str, kind: str, **selectors: str) -> object:
            self.listed.append(kind)
            return api.list(api_version, kind, **selectors)

        def page(api_version: str, kind: str, **how: Any) -> ObjectListPage:
            self.paged.append(kind)
            return api.page(api_version, kind, **how)

        def metric(name: str) -> object:
            self.measured.append(name)
            return api.metric(name)

        def apply(manifest: Json, *, dry_run: bool = False) -> Json:
            (self.tried if dry_run else self.applied).append(manifest["metadata"]["name"])
            return api.apply(manifest, dry_run=dry_run)

        def writing(name: str) -> Any:
            def write(*given: Any, **how: Any) -> Any:
                self.written.append(name)
                return getattr(api, name)(*given, **how)

            return write

        writes = {name: writing(name) for name in WRITES}
        return Around(api, get=get, list=listed, page=page, metric=metric, apply=apply, **writes)


@contextmanager
def counted(cloud: MemoryCloud) -> Iterator[Calls]:
    """Count the calls to the cluster meanwhile."""
    calls, kubernetes = Calls(), cloud.ports.kubernetes

    def connect(cluster: ClusterId, **how: Any) -> KubernetesApi:
        connected: KubernetesApi = calls.around(kubernetes.connect(cluster, **how))
        return connected

    def entered(cluster: ClusterId, kubeconfig: Kubeconfig) -> KubernetesApi:
        opened: KubernetesApi = calls.around(kubernetes.open(cluster, kubeconfig))
        return opened

    wrapped = Around(kubernetes, connect=connect, open=entered)
    cloud.with_ports(lambda ports: replace(ports, kubernetes=wrapped))
    yield calls
    cloud.with_ports(lambda ports: replace(ports, kubernetes=kubernetes))
