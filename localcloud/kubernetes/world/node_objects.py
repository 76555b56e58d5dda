"""The Node objects of a cluster, which mirror the nodes in Azure.

A cordoned node stays cordoned until Azure changes its Kubernetes version or image: then it is a new machine
with the old name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from localcloud.common.clock import in_seconds
from localcloud.common.control_plane import KubernetesNode
from localcloud.kubernetes.world.kinds import NODE, ResourceKind
from localcloud.kubernetes.world.object_store import At, Object, WriteMode

IMAGE_LABEL = "kubernetes.azure.com/node-image-version"
_WRITE = WriteMode(manager="kubelet")


class NodeWriter(Protocol):
    """What nodes are written to: the world of a cluster, or another API server."""

    def clock(self) -> datetime:
        """Return the time."""
        ...

    def list(self, kind: ResourceKind) -> tuple[Sequence[Object], int]:
        """Return all objects of a kind, and their version."""
        ...

    def find(self, at: At) -> Object | None:
        """Return an object, or None."""
        ...

    def create(self, kind: ResourceKind, namespace: str, body: Any, write: WriteMode) -> Object:
        """Create an object."""
        ...

    def replace(self, at: At, body: Any, write: WriteMode) -> Object:
        """Replace an object."""
        ...

    def delete(self, at: At) -> Object:
        """Delete an object."""
        ...

    def set_status(self, at: At, status: Mapping[str, Any], *, manager: str) -> None:
        """Write a status."""
        ...


def mirror_nodes(world: NodeWriter, nodes: Sequence[KubernetesNode]) -> None:
    """Create, change and remove Node objects until the cluster has exactly these, all of them Ready."""
    wanted = {node.name: node for node in nodes}
    for live in world.list(NODE)[0]:
        if live["metadata"]["name"] not in wanted:
            world.delete(At(NODE, live["metadata"]["name"]))
    for name, node in wanted.items():
        at = At(NODE, name)
        live_node = world.find(at)
        if live_node is None:
            world.create(NODE, "", _body(node), _WRITE)
        else:
            body = _body(node)
            if not _is_new(live_node, node):
                if "annotations" in live_node["metadata"]:
                    body["metadata"]["annotations"] = live_node["metadata"]["annotations"]
                if live_node["spec"].get("unschedulable"):
                    body["spec"]["unschedulable"] = True
            world.replace(at, body, _WRITE)
        status = (world.find(at) or {}).get("status") or {}
        if (status.get("nodeInfo") or {}).get("kubeletVersion") != f"v{node.version}":
            world.set_status(at, _status(world, node), manager="kubelet")


def _is_new(live: Object, node: KubernetesNode) -> bool:
    labels = live["metadata"].get("labels") or {}
    info = (live.get("status") or {}).get("nodeInfo") or {}
    image = labels.get(IMAGE_LABEL) != node.labels.get(IMAGE_LABEL)
    return image or info.get("kubeletVersion") != f"v{node.version}"


def _body(node: KubernetesNode) -> dict[str, Any]:
    own = {
        "kubernetes.io/hostname": node.name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        **({"kubernetes.azure.com/agentpool": node.pool} if node.pool else {}),
    }
    spec: dict[str, Any] = {"providerID": f"azure:///local/{node.name}"} if node.pool else {}
    if node.taints:
        spec["taints"] = [dict(taint) for taint in node.taints]
    return {"metadata": {"name": node.name, "labels": {**own, **node.labels}}, "spec": spec}


def _status(world: NodeWriter, node: KubernetesNode) -> Mapping[str, Any]:
    now = in_seconds(world.clock())
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "kubelet is posting ready status",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }
    return {
        "conditions": [ready],
        "addresses": [{"type": "Hostname", "address": node.name}],
        "capacity": {"cpu": "2", "memory": "8Gi", "pods": "110"},
        "allocatable": {"cpu": "1900m", "memory": "6Gi", "pods": "110"},
        "nodeInfo": {
            "kubeletVersion": f"v{node.version}",
            "operatingSystem": "linux",
            "architecture": "amd64",
            "osImage": "Ubuntu 22.04.5 LTS",
            "containerRuntimeVersion": "containerd://1.7",
            "kernelVersion": "5.15",
            # Required by the API; a local node has no machine.
            **dict.fromkeys(("bootID", "machineID", "systemUUID", "kubeProxyVersion"), ""),
        },
    }
