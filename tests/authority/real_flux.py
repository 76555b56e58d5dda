"""A real cluster with the real Flux, and the local GitHub that it reads over plain HTTP."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from localcloud.common.control_plane import KubernetesNode
from localcloud.github.wire.github_server import GitHubServer
from localcloud.kubernetes.world.kinds import BUILT_IN, POD, ResourceKind, kinds_of
from localcloud.kubernetes.world.object_store import At, Object, WriteMode
from tests.authority.flux_components import NAMESPACE, components
from tests.authority.node_agent import NodeAgent
from tests.authority.pod_programs import PodPrograms
from tests.authority.programs import SOURCE
from tests.authority.real_cluster import RealCluster
from tests.authority.real_world import RealWorld, Refused

REQUESTED = "reconcile.fluxcd.io/requestedAt"
_PATIENCE_SECONDS = 120.0


@dataclass(frozen=True)
class RealFlux:
    """The cluster and the host; ``pods`` has a folder for each pod, with what its program stores."""

    world: RealWorld
    host: GitHubServer
    kinds: Mapping[str, ResourceKind]
    pods: Path

    def apply(self, body: Mapping[str, Any], *, manager: str = "test") -> None:
        """Apply an object; wait for its definition, or its namespace, where that is not served yet."""
        metadata, kind = body["metadata"], self.kinds[body["kind"]]
        at = At(kind, metadata["name"], metadata.get("namespace", "") if kind.namespaced else "")
        eventually(lambda: self._applied(at, {"apiVersion": kind.api_version, **body}, manager))

    def flux_object(self, kind: str, name: str, spec: Mapping[str, Any]) -> None:
        """Apply an object of Flux in its namespace."""
        self.apply({"kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec})

    def request(self, kind: str, name: str, token: str) -> None:
        """Ask the controller of an object to reconcile it."""
        metadata = {"name": name, "namespace": NAMESPACE, "annotations": {REQUESTED: token}}
        self.apply({"kind": kind, "metadata": metadata}, manager="requests")

    def get(self, kind: str, name: str, namespace: str = NAMESPACE) -> Object | None:
        """Return an object, None when there is none."""
        found = self.kinds[kind]
        return self.world.find(At(found, name, namespace if found.namespaced else ""))

    def serves(self, kind: ResourceKind) -> bool:
        """Return whether the objects of a kind can be listed: a new definition needs seconds for that."""
        try:
            self.world.list(kind)
        except Refused as error:
            if error.status not in (404, 429):
                raise
            return False
        return True

    def delete(self, kind: str, name: str, namespace: str = NAMESPACE) -> None:
        """Delete an object; one that does not exist is success."""
        try:
            self.world.delete(At(self.kinds[kind], name, namespace))
        except Refused as error:
            if error.status != 404:
                raise

    def restart_sources(self) -> None:
        """Replace the pod of the source-controller; its storage, an emptyDir, ends with the old one."""
        for pod in self._source_pods():
            self.world.delete(At(POD, pod["metadata"]["name"], NAMESPACE))

    def _source_pods(self) -> list[Object]:
        pods = self.world.list(POD, NAMESPACE)[0]
        return [pod for pod in pods if pod["metadata"]["name"].startswith(SOURCE.name)]

    def _applied(self, at: At, body: Mapping[str, Any], manager: str) -> bool:
        try:
            self.world.apply(at, body, WriteMode(manager=manager, force=True))
        except Refused as error:
            if error.status not in (403, 404):
                raise
            return False
        return True


def eventually(holds: Callable[[], bool], seconds: float = _PATIENCE_SECONDS) -> bool:
    """Wait until something holds; return whether it does."""
    deadline = time.monotonic() + seconds
    while not (held := holds()) and time.monotonic() < deadline:
        time.sleep(0.2)
    return held


@contextmanager
def real_flux(folder: Path) -> Iterator[RealFlux]:
    """Start a cluster and a git host; install Flux."""
    with (
        GitHubServer(folder / "host", token="local", webhook_secret="s") as host,
        RealCluster(folder / "cluster") as cluster,
        closing(PodPrograms(cluster, folder / "pods", ca=folder / "cluster/ca.crt")) as pods,
        closing(NodeAgent(cluster.world, program=pods)) as agent,
    ):
        agent.set_nodes([KubernetesNode("node-1", "system", cluster.version)])
        documents = list(yaml.safe_load_all(components()))
        served = [
            kind
            for item in documents
            if item["kind"] == "CustomResourceDefinition"
            for kind in reversed(kinds_of(item))
        ]
        kinds = {kind.kind: kind for kind in (*BUILT_IN, *served)}
        flux = RealFlux(cluster.world, host, kinds, folder / "pods")
        for item in documents:
            flux.apply(item)
        assert eventually(lambda: all(flux.serves(kind) for kind in served))
        yield flux
