"""The nodes of a cluster, computed from its agent pools, with the names and labels of AKS."""

from __future__ import annotations

from uuid import NAMESPACE_URL, uuid5

from localcloud.azure.world.arm_resources import ArmCluster
from localcloud.common.control_plane import KubernetesNode
from shared.json_tree import Json

LABEL_LENGTH = 63


def nodes_of(cluster: ArmCluster) -> list[KubernetesNode]:
    """Return every node that a cluster has now; none while it is stopped or its pools have no nodes."""
    if cluster.properties["powerState"]["code"] == "Stopped":
        return []
    pools = [
        pool
        for name, pool in cluster.pools.items()
        if name in cluster.up and pool["powerState"]["code"] == "Running"
    ]
    return [
        _node(cluster.document, pool, index, cluster.lagging.get(pool["name"], ""))
        for pool in pools
        for index in range(pool["count"])
    ]


def _node(document: Json, pool: Json, index: int, kubelet: str) -> KubernetesNode:
    unique = uuid5(NAMESPACE_URL, document["id"]).int % 10**8
    name = f"aks-{pool['name']}-{unique:08d}-vmss{index:06d}"
    taints = []
    for taint in pool.get("nodeTaints") or ():
        key, _, rest = taint.partition("=")
        value, _, effect = rest.partition(":")
        taints.append({"key": key, "value": value, "effect": effect})
    return KubernetesNode(
        name=name,
        pool=pool["name"],
        version=kubelet or pool["currentOrchestratorVersion"],
        labels=_labels(document, pool, index) | {"kubernetes.io/hostname": name},
        taints=tuple(taints),
    )


def group_label(group: str) -> str:
    """Return the name of a resource group as AKS writes it into a label.

    It has at most 63 characters, no parentheses, and a letter or digit at its end (source: AgentBaker and
    karpenter-provider-azure, which make the labels).
    """
    value = group.translate({ord("("): "-", ord(")"): "-"})[:LABEL_LENGTH]
    if value[-1].isalnum():
        return value
    return f"{value[: LABEL_LENGTH - 1]}z"


def _labels(document: Json, pool: Json, index: int) -> dict[str, str]:
    location = document["location"]
    zones = pool.get("availabilityZones") or []
    zones = ["1", "2", "3"] if zones == ["auto"] else zones
    zone = f"{location}-{zones[index % len(zones)]}" if zones else "0"
    return {
        "agentpool": pool["name"],
        "kubernetes.azure.com/agentpool": pool["name"],
        "kubernetes.azure.com/cluster": group_label(document["properties"]["nodeResourceGroup"]),
        "kubernetes.azure.com/mode": pool["mode"].lower(),
        "kubernetes.azure.com/node-image-version": pool["nodeImageVersion"],
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": pool["osType"].lower(),
        "node.kubernetes.io/instance-type": pool["vmSize"],
        "topology.kubernetes.io/region": location,
        "topology.kubernetes.io/zone": zone,
        **(pool.get("nodeLabels") or {}),
    }
