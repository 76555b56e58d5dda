"""Pods that no node takes, or that the namespace refuses, are said before the merge."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from shared.platform.inventory import Inventory
from shared.platform.rules.placement import Room, room_for, room_wanted
from tests.support.built_platforms import NAMESPACE, Platform, deployment

POOLS: dict[str, Any] = {"nodes": 3, "pools": ("system", "work")}
APART = {"matchLabels": {"app": "web"}}


def workload(
    pod: dict[str, Any] | None = None, *, labels: dict[str, str] | None = None, **container: Any
) -> dict[str, Any]:
    """Return a Deployment whose pod, and its container, have more."""
    made: dict[str, Any] = yaml.safe_load(deployment())
    template = made["spec"]["template"]
    template["spec"] |= pod or {}
    template["spec"]["containers"][0] |= container
    template["metadata"]["labels"] |= labels or {}
    return made


def with_spec(made: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {**made, "spec": {**made["spec"], **spec}}


def said(*documents: dict[str, Any], **options: Any) -> tuple[list[str], list[str]]:
    """Return the problems and the notes of objects in their namespace."""
    platform = Platform(NAMESPACE, *(yaml.safe_dump(document) for document in documents), **options)
    return platform.problems, platform.notes


def apart(selector: dict[str, Any], topology: str = "kubernetes.io/hostname") -> dict[str, Any]:
    term = {"topologyKey": topology, "labelSelector": selector}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


IN = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}
NOT_IN = {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["other"]}]}
SURGE = {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}


@pytest.mark.parametrize(
    ("pod", "spec", "needed"),
    [
        (apart(APART), {"replicas": 4}, 4),
        (apart(IN), {"replicas": 4}, 4),
        (apart(APART), {"replicas": 2}, 0),
        (apart(APART), {"replicas": 3}, 4),
        (apart(APART), {"replicas": 3, "strategy": {"type": "Recreate"}}, 0),
        (apart(APART), {"replicas": 3, "strategy": {"rollingUpdate": {"maxUnavailable": 1}}}, 0),
        (apart(APART), {"replicas": 3, "strategy": {"rollingUpdate": {"maxUnavailable": "34%"}}}, 0),
        (apart(APART), {"replicas": 3, "strategy": SURGE}, 4),
        (apart(APART, "topology.kubernetes.io/zone"), {"replicas": 9}, 0),
        (apart({"matchLabels": {"app": "other"}}), {"replicas": 9}, 0),
        (apart(NOT_IN), {"replicas": 9}, 0),
        (apart({}), {"replicas": 9}, 0),
    ],
)
def test_pods_that_may_not_share_a_node_have_enough_of_them(
    pod: dict[str, Any], spec: dict[str, Any], needed: int
) -> None:
    """Reports: kubernetes/kubernetes#116891, #56539, argoproj/argo-cd#16627."""
    given = with_spec(workload(pod), **spec)
    problems, notes = said(given, **POOLS)
    assert problems == []
    assert len(notes) == bool(needed)
    assert not needed or f"needs {needed} nodes, and the node pools of the cluster have at most 3" in notes[0]
    assert said(given) == ([], [])


def test_a_port_of_the_node_is_for_one_pod_of_it() -> None:
    given = with_spec(workload(ports=[{"containerPort": 80, "hostPort": 80}]), replicas=5)
    assert "a port of a node is for one of its pods" in said(given, **POOLS)[1][0]


@pytest.mark.parametrize("label", ["agentpool", "kubernetes.azure.com/agentpool"])
def test_a_node_pool_that_pods_name_is_there(label: str) -> None:
    for pool, notes in (("work", 0), ("gpu", 1), ("${pool}", 0)):
        found = said(workload({"nodeSelector": {label: pool}}), **POOLS)
        assert (found[0], len(found[1])) == ([], notes)
    assert (
        "the cluster has no node pool gpu" in said(workload({"nodeSelector": {label: "gpu"}}), **POOLS)[1][0]
    )


def test_only_what_a_platform_wants_makes_clusters_differ() -> None:
    given = with_spec(workload({**apart(APART), "nodeSelector": {"agentpool": "work"}}), replicas=3)
    wanted = room_wanted(Platform(NAMESPACE, yaml.safe_dump(given)).platform.inventory)
    assert room_for(wanted, Room(4, ("system", "work"))) == Room()
    assert room_for(wanted, Room(3, ("work",))) == Room(nodes=3)
    assert room_for(wanted, Room(9, ("system",))) == Room(pools=("system",))
    assert room_for(wanted, Room()) == Room()
    assert room_for(room_wanted(Inventory()), Room(0, ())) == Room()


def host_path(*paths: str) -> dict[str, Any]:
    return {
        "volumes": [{"name": f"v{number}", "hostPath": {"path": path}} for number, path in enumerate(paths)]
    }


@pytest.mark.parametrize(
    ("pod", "notes"),
    [
        (host_path("/var/run/docker.sock"), 1),
        (host_path("/run/docker.sock", "/run/containerd/containerd.sock"), 0),
        (host_path("/var/log"), 0),
    ],
)
def test_a_node_of_aks_has_no_socket_of_docker(pod: dict[str, Any], notes: int) -> None:
    """Reports: Azure/AKS#1989, argoproj/argo-workflows#5243."""
    problems, found = said(workload(pod))
    assert (problems, len(found)) == ([], notes)
    assert all("run containerd" in note for note in found)


def claim(mode: str = "ReadWriteOnce", storage: str = "managed-csi") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "platform"},
        "spec": {
            "accessModes": [mode],
            "storageClassName": storage,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


@pytest.mark.parametrize(
    ("given", "spec", "notes"),
    [
        (claim(), {"replicas": 2}, 1),
        (claim(), {"replicas": 1}, 1),
        (claim(), {"replicas": 1, "strategy": {"type": "Recreate"}}, 0),
        (claim(), {"replicas": 1, "strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}}, 0),
        (claim(), {"replicas": 0}, 0),
        (claim("ReadWriteMany", "azurefile-csi"), {"replicas": 2}, 0),
        (claim("ReadWriteOnce", "azurefile-csi"), {"replicas": 2}, 0),
    ],
)
def test_a_disk_is_for_pods_of_one_node(given: dict[str, Any], spec: dict[str, Any], notes: int) -> None:
    """Reports: Azure/AKS#1919, #477."""
    pod = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}
    problems, found = said(given, with_spec(workload(pod), **spec))
    assert (problems, len(found)) == ([], notes)
    assert all("data is a disk, which one node has at a time" in note for note in found)


def test_a_pod_that_has_an_identity_of_azure_has_its_label() -> None:
    """Reports: Azure/AKS#3546, Azure/azure-workload-identity#751."""
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {
            "name": "deployer",
            "namespace": "platform",
            "annotations": {"azure.workload.identity/client-id": "11111111-1111-1111-1111-111111111111"},
        },
    }
    pod = {"serviceAccountName": "deployer"}
    (note,) = said(account, workload(pod))[1]
    assert 'without the label azure.workload.identity/use: "true"' in note
    assert said(account, workload(pod, labels={"azure.workload.identity/use": "true"})) == ([], [])
    assert said(account, workload()) == ([], [])


def limits(**given: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "limits", "namespace": "platform"},
        "spec": {"limits": [{"type": "Container", **given}]},
    }


@pytest.mark.parametrize(
    ("limit", "resources", "refused"),
    [
        ({"min": {"cpu": "50m"}}, {"requests": {"cpu": "10m"}}, "requests.cpu 10m, min 50m (web)"),
        ({"min": {"cpu": "50m"}}, {"requests": {"cpu": "0.05"}}, ""),
        ({"min": {"cpu": "50m"}}, {}, ""),
        ({"min": {"memory": "1Gi"}}, {"limits": {"memory": "512Mi"}}, "limits.memory 512Mi, min 1Gi"),
        ({"max": {"memory": "1Gi"}}, {"limits": {"memory": "2Gi"}}, "limits.memory 2Gi, max 1Gi"),
        ({"max": {"memory": "1Gi"}}, {"limits": {"memory": "1024Mi"}}, ""),
        (
            {"default": {"memory": "512Mi"}},
            {"requests": {"memory": "1Gi"}},
            "requests.memory 1Gi, default 512Mi",
        ),
        (
            {"default": {"memory": "512Mi"}},
            {"requests": {"memory": "1Gi"}, "limits": {"memory": "1Gi"}},
            "",
        ),
        ({"type": "Pod", "max": {"cpu": "1"}}, {"limits": {"cpu": "2"}}, ""),
    ],
)
def test_a_limit_range_takes_the_containers_of_its_namespace(
    limit: dict[str, Any], resources: dict[str, Any], refused: str
) -> None:
    """Reports: kubernetes/kubernetes#51430, #112835."""
    problems, notes = said(limits(**limit), workload(resources=resources))
    assert notes == []
    assert len(problems) == bool(refused)
    assert refused in "".join(problems)


def test_each_limit_range_of_a_namespace_refuses_and_the_largest_default_counts() -> None:
    given = {"requests": {"memory": "1Gi", "cpu": "10m"}}
    two = [limits(min={"cpu": "5m"}, default={"memory": "2Gi"})]
    other = limits(min={"cpu": "50m"}, default={"memory": "512Mi"})
    two.append({**other, "metadata": {"name": "more", "namespace": "platform"}})
    (problem,) = said(*two, workload(resources=given))[0]
    assert "requests.cpu 10m, min 50m (web)" in problem
    assert "memory" not in problem
