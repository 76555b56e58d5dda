"""Nodes, the pods on them and their disruption budgets, in the Kubernetes world."""

from __future__ import annotations

import pytest

from localcloud.common.control_plane import KubernetesNode
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.kubernetes.world.node_objects import IMAGE_LABEL, mirror_nodes
from localcloud.kubernetes.world.object_store import At
from localcloud.kubernetes.world.writes.patches import MERGE
from tests.support.kubernetes_worlds import (
    CONTAINERS,
    KINDS,
    MAP,
    a_world,
    refusal,
)


@pytest.fixture
def world() -> KubernetesWorld:
    return a_world()[0]


def test_nodes_mirror_those_of_the_pools(world: KubernetesWorld) -> None:
    def seen() -> dict[str, str]:
        nodes = world.list(KINDS["Node"])[0]
        return {node["metadata"]["name"]: node["status"]["nodeInfo"]["kubeletVersion"] for node in nodes}

    one, two = (
        KubernetesNode("aks-a-0", "a", "1.32.1"),
        KubernetesNode("aks-a-1", "a", "1.32.1", {"zone": "1"}),
    )
    mirror_nodes(world, [one, two])
    assert seen() == {"aks-a-0": "v1.32.1", "aks-a-1": "v1.32.1"}
    before = world.version
    mirror_nodes(world, [one, two])
    assert world.version == before
    mirror_nodes(world, [KubernetesNode("aks-a-1", "a", "1.33.0", {"zone": "1"})])
    assert seen() == {"aks-a-1": "v1.33.0"}
    mirror_nodes(world, [])
    assert seen() == {}


def test_a_cordon_lasts_until_azure_replaces_the_node(world: KubernetesWorld) -> None:
    node = At(KINDS["Node"], "aks-a-0")

    def cordoned() -> bool:
        return bool(world.get(node)["spec"].get("unschedulable"))

    def mirrored(version: str, image: str, **labels: str) -> None:
        labels |= {IMAGE_LABEL: image}
        mirror_nodes(world, [KubernetesNode("aks-a-0", "a", version, labels)])

    mirrored("1.33.4", "old")
    for changed in (("1.33.5", "old"), ("1.33.5", "new")):
        world.patch(node, {"spec": {"unschedulable": True}}, MERGE)
        mirrored(world.get(node)["status"]["nodeInfo"]["kubeletVersion"].removeprefix("v"), "old", tier="web")
        assert cordoned()
        mirrored(*changed)
        assert not cordoned()


def test_a_pod_runs_if_it_is_bound_to_a_node_and_ends_with_the_node(world: KubernetesWorld) -> None:
    mirror_nodes(world, [KubernetesNode("aks-a-0", "a", "1.33.4")])
    kind = KINDS["Pod"]
    bound, unbound = At(kind, "bound", "default"), At(kind, "unbound", "default")
    spec = {"containers": CONTAINERS}
    world.create(kind, "default", {"metadata": {"name": "unbound"}, "spec": spec})
    world.create(kind, "default", {"metadata": {"name": "bound"}, "spec": {**spec, "nodeName": "aks-a-0"}})
    assert world.get(unbound)["status"]["phase"] == "Pending"
    assert world.get(bound)["status"]["phase"] == "Running"
    with refusal(422, "Invalid"):
        world.patch(unbound, {"spec": {"nodeName": "aks-a-0"}}, MERGE)
    mirror_nodes(world, [])
    assert world.find(bound) is None


def test_pods_without_a_controller_or_of_an_unknown_one_give_a_portion_no_room(
    world: KubernetesWorld,
) -> None:
    mirror_nodes(world, [KubernetesNode("aks-a-0", "a", "1.33.4")])
    budget = At(KINDS["PodDisruptionBudget"], "all", "default")
    world.create(
        budget.kind, "default", {"metadata": {"name": "all"}, "spec": {"selector": {}, "maxUnavailable": 1}}
    )
    spec = {"nodeName": "aks-a-0", "containers": CONTAINERS}
    world.create(KINDS["Pod"], "default", {"metadata": {"name": "a"}, "spec": spec})
    with refusal(429, "TooManyRequests"):
        world.evict("default", "a")
    uid = world.create(MAP.kind, "default", {"metadata": {"name": "settings"}})["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "settings", "uid": uid, "controller": True}
    body = {"metadata": {"name": "b", "ownerReferences": [owner]}, "spec": spec}
    world.create(KINDS["Pod"], "default", body)
    assert world.get(budget)["status"]["disruptionsAllowed"] == 0
