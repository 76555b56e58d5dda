"""What no node of the cluster takes: pods that stay Pending.

Sources: kubernetes.io, "Assigning Pods to Nodes" (anti-affinity, ports of a host), kubernetes#116891,
argoproj/argo-cd#16627; Azure/AKS#1919 (a disk is attached to one node), #1989 (nodes run containerd), #3546
(azure.workload.identity/use is a label of the pod since 1.0 of its webhook).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from shared.json_tree import Json
from shared.language.resolve.problems import Path
from shared.platform.changes.comparison import quantity
from shared.platform.changes.objects import (
    PodTemplate,
    is_open,
    items,
    mapping,
    mapping_at,
    objects_in,
    value_at,
)
from shared.platform.inventory import Inventory, ObjectId
from shared.platform.rules.finding import ClusterPlatform, Finding, OwnedObject, is_kind

_HOSTNAME = "kubernetes.io/hostname"
_POOL_LABELS = ("kubernetes.azure.com/agentpool", "agentpool")
"""Labels of AKS with the name of the node pool (learn.microsoft.com/azure/aks/use-labels)."""
_MOST_CORES = 2048
"""More than the largest virtual machine of Azure has (learn.microsoft.com/azure/virtual-machines/sizes)."""
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_SHARE = re.compile(r"([0-9]{1,9})(%?)")
"""A number of pods, or a share of them."""


class Room(NamedTuple):
    """What a cluster has for pods: at most how many nodes, and which node pools; None where nobody knows."""

    nodes: int | None = None
    pools: tuple[str, ...] | None = None


def room_wanted(inventory: Inventory) -> Room:
    """Return how many nodes a platform needs at least, and the node pools that it names."""
    built = [
        (name, found.manifest) for owner in inventory.owners.values() for name, found in owner.objects.items()
    ]
    nodes = max((_nodes(name, manifest)[0] for name, manifest in built), default=0)
    return Room(nodes, tuple({pool for name, manifest in built for _, pool in _pools(name, manifest)}))


def room_for(wanted: Room, room: Room) -> Room:
    """Return as much of a cluster's room as matters: none where the platform fits."""
    nodes = room.nodes if room.nodes is not None and room.nodes < (wanted.nodes or 0) else None
    fits = room.pools is None or {*(wanted.pools or ())} <= {*room.pools}
    return Room(nodes, None if fits else room.pools)


def no_room(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield a note for each workload that needs more nodes, or others, than the cluster has in git."""
    for owned, pod in platform.pods:
        needed, why, path = _nodes(owned.id, owned.manifest)
        if platform.nodes is not None and needed > platform.nodes:
            message = (
                f"{why}, so this needs {needed} nodes, and the node pools of the cluster have at most "
                f"{platform.nodes}: the other pods stay Pending; lower replicas, or let two be on a node"
            )
            yield owned.finding(path, message, is_note=True)
        if pod.spec.get("nodeName") and not is_open(pod.spec.get("nodeName")):
            message = f"{pod.spec['nodeName']} is a node of one cluster, and nodes come and go; remove it"
            yield owned.finding((*pod.path, "nodeName"), message, is_note=True)
        for place, container in pod.containers():
            given = str(mapping_at(container, "resources.requests").get("cpu"))
            amount = quantity(given)
            if amount is not None and amount > _MOST_CORES:
                message = f"{given} is more than any node has, so these pods stay Pending; m is a thousandth"
                yield owned.finding((*place, "resources", "requests", "cpu"), message, is_note=True)
        for path, pool in _pools(owned.id, owned.manifest):
            if platform.pools is not None and pool not in platform.pools:
                message = f"the cluster has no node pool {pool}, so these pods stay Pending; correct it"
                yield owned.finding(path, message, is_note=True)


def _nodes(name: ObjectId, manifest: Json) -> tuple[int, str, Path]:
    """Return how many nodes a workload needs, each pod on its own, and by which field; 0 for any number."""
    replicas, pod = value_at(manifest, "spec.replicas"), PodTemplate.of(name, manifest)
    if pod is None or name.kind not in ("Deployment", "StatefulSet") or not isinstance(replicas, int):
        return 0, "", ()
    apart: list[Path] = [
        (*pod.path, "affinity", "podAntiAffinity", _REQUIRED, number)
        for number, term in objects_in(value_at(pod.spec, ("affinity", "podAntiAffinity", _REQUIRED)))
        if term.get("topologyKey") == _HOSTNAME and _selects(term.get("labelSelector"), pod.labels)
    ]
    on_host: list[Path] = [
        (*path, "ports", number, "hostPort")
        for path, container in pod.containers("containers")
        for number, port in objects_in(container.get("ports"))
        if port.get("hostPort")
    ]
    if not apart and not on_host:
        return 0, "", ()
    why = "no two of its pods may be on a node" if apart else "a port of a node is for one of its pods"
    if adds_first(name, manifest):
        return replicas + 1, f"{why}, and an update adds one before it removes one", (apart or on_host)[0]
    return replicas, why, (apart or on_host)[0]


def _selects(selector: Any, labels: Mapping[str, Any]) -> bool:
    """Return whether a selector surely selects labels."""
    given = mapping(selector)
    chosen = mapping(given.get("matchLabels"))
    expressions = [entry for _, entry in objects_in(given.get("matchExpressions"))]
    fits = all(
        entry.get("operator") == "In" and labels.get(str(entry.get("key"))) in items(entry.get("values"))
        for entry in expressions
    )
    return bool(chosen or expressions) and fits and chosen.items() <= labels.items()


def adds_first(name: ObjectId, manifest: Json) -> bool:
    """Return whether an update adds a pod of a Deployment before it removes one; a share is rounded down."""
    replicas = value_at(manifest, "spec.replicas")
    count = 1 if replicas is None else replicas
    if not is_kind(name, "apps", "Deployment") or not isinstance(count, int) or count < 1:
        return False
    if value_at(manifest, "spec.strategy.type") == "Recreate":
        return False
    given = value_at(manifest, "spec.strategy.rollingUpdate.maxUnavailable")
    found = _SHARE.fullmatch(str("25%" if given is None else given))
    number = int(found[1]) if found else 1
    return (count * number // 100 if found and found[2] else number) == 0


def _pools(name: ObjectId, manifest: Json) -> Iterator[tuple[Path, str]]:
    """Yield the node pools that a workload names, each with its field."""
    pod = PodTemplate.of(name, manifest)
    for label in _POOL_LABELS if pod else ():
        pool = mapping_at(pod.spec, "nodeSelector").get(label) if pod else None
        if pod and isinstance(pool, str) and not is_open(pool):
            yield (*pod.path, "nodeSelector", label), pool


# What Azure and its nodes do with a pod


def pods_of_azure(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield a note for each pod that wants its node's Docker, shares a disk, or lacks an identity's label."""
    for owned, pod in platform.pods:
        volumes = list(objects_in(pod.spec.get("volumes")))
        hosts = {number: str(value_at(volume, "hostPath.path")) for number, volume in volumes}
        for number, volume in volumes:
            where: Path = (*pod.path, "volumes", number)
            if hosts[number].endswith("/docker.sock") and not any(
                "containerd" in host for host in hosts.values()
            ):
                message = "nodes of AKS run containerd, and have no socket of Docker; build images elsewhere"
                yield owned.finding((*where, "hostPath", "path"), message, is_note=True)
            claim = value_at(volume, "persistentVolumeClaim.claimName")
            if claim and _shares_a_disk(platform, owned, str(claim)):
                message = (
                    f"{claim} is a disk, which one node has at a time, so a pod on another node waits: "
                    "write replicas: 1 and strategy Recreate, or a StatefulSet, or a class of Azure Files"
                )
                yield owned.finding((*where, "persistentVolumeClaim", "claimName"), message, is_note=True)
        name = str(pod.spec.get("serviceAccountName") or "default")
        account = platform.known.get(ObjectId("", "ServiceAccount", owned.id.namespace, name))
        is_identity = account and _IDENTITY in mapping_at(account.manifest, "metadata.annotations")
        if account and is_identity and pod.labels.get(_USE) != "true":
            message = (
                f'{account.id} has an identity of Azure, and without the label {_USE}: "true" of the pod '
                "AKS gives it no token; add it to the labels of the template"
            )
            yield owned.finding((*pod.path, "serviceAccountName"), message, is_note=True)


_IDENTITY, _USE = "azure.workload.identity/client-id", "azure.workload.identity/use"


def _shares_a_disk(platform: ClusterPlatform, owned: OwnedObject, claim: str) -> bool:
    """Return whether two pods of a Deployment would have a claim that one node has, now or in an update."""
    found = platform.known.get(ObjectId("", "PersistentVolumeClaim", owned.id.namespace, claim))
    if found is None or not is_kind(owned.id, "apps", "Deployment"):
        return False
    modes = items(value_at(found.manifest, "spec.accessModes"))
    of_files = str(value_at(found.manifest, "spec.storageClassName") or "").startswith(
        ("azurefile", "azureblob")
    )
    replicas = owned.spec.get("replicas")
    is_disk = [*modes] in (["ReadWriteOnce"], ["ReadWriteOncePod"]) and not of_files
    several = isinstance(replicas, int) and replicas > 1
    return is_disk and (several or adds_first(owned.id, owned.manifest))
