"""One real cluster for the contract suites; what a test left behind is removed before the next one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from localcloud.common.clock import system_clock
from localcloud.kubernetes.world.kinds import BUILT_IN
from localcloud.kubernetes.world.object_store import At, Object
from shared.adapters.kubernetes import KubernetesConnections
from shared.resource_ids import ClusterId
from tests.authority.node_agent import NodeAgent
from tests.authority.real_cluster import RealCluster
from tests.authority.real_fleet import RealFleet, real_fleet
from tests.authority.real_world import RealWorld, Refused
from tests.support.kubernetes_ports import NOWHERE, Setting

_NOWHERE = "https://127.0.0.1:1"
_REMOVED = (
    "PodDisruptionBudget",
    "Deployment",
    "StatefulSet",
    "DaemonSet",
    "ReplicaSet",
    "Pod",
    "ConfigMap",
    "Secret",
    "CustomResourceDefinition",
    "Node",
    "Namespace",
)
_KINDS = [next(kind for kind in BUILT_IN if kind.kind == name) for name in _REMOVED]
_NAMESPACES = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})
_SYSTEM = _NAMESPACES - {"default"}


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    with RealCluster(tmp_path_factory.mktemp("real")) as running:
        agent = NodeAgent(running.world)
        yield running
        agent.close()


@pytest.fixture
def setting(cluster: RealCluster) -> Iterator[Setting]:
    nowhere = cluster.kubeconfig.replace(cluster.url, _NOWHERE)

    def kubeconfig(wanted: ClusterId) -> str:
        return nowhere if wanted == NOWHERE else cluster.kubeconfig

    _empty(cluster.world)  # the suites of answers leave objects behind
    connections = KubernetesConnections(kubeconfig, aad_token=None, clock=system_clock)
    yield Setting(connections, cluster.world, lambda: time.sleep(0.05), lambda on: cluster.set_power(on=on))
    connections.close()
    cluster.set_power(on=True)
    _empty(cluster.world)


def _empty(world: RealWorld) -> None:
    """Remove every object that the suites create, and wait until none is left."""
    deadline = time.monotonic() + 60
    for kind in (kind for kind in _KINDS if kind.namespaced):
        world.delete_all(kind, "default")
    while left := list(_left_behind(world)):
        assert time.monotonic() < deadline, f"not removed: {left}"
        for at, live in left:
            with _lost_races_pass():
                if live["metadata"].get("finalizers") and at.kind.kind != "CustomResourceDefinition":
                    metadata = {**live["metadata"], "finalizers": []}
                    world.replace(at, {**live, "metadata": metadata})
                if "deletionTimestamp" not in live["metadata"]:
                    world.delete(at)
        time.sleep(0.1)


def _left_behind(world: RealWorld) -> Iterator[tuple[At, Object]]:
    for kind in _KINDS:
        for live in world.list(kind)[0]:
            name, namespace = live["metadata"]["name"], live["metadata"].get("namespace", "")
            if namespace not in _SYSTEM and not (kind.kind == "Namespace" and name in _NAMESPACES):
                yield At(kind, name, namespace), live


@contextmanager
def _lost_races_pass() -> Iterator[None]:
    """Let pass that an object no longer exists, or was changed by somebody faster."""
    try:
        yield
    except Refused as error:
        if error.status not in (404, 409):
            raise


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[RealFleet]:
    """A fleet whose one cluster is real."""
    with real_fleet(tmp_path) as running:
        yield running
