"""What no node takes, and what the namespace refuses: pods that stay Pending, or are never created.

Sources: kubernetes.io, "Assigning Pods to Nodes" (anti-affinity, ports of a host), kubernetes#116891,
argoproj/argo-cd#16627; ``plugin/pkg/admission/limitranger/admission.go`` (``min-``, ``maxConstraint``),
kubernetes#51430, #112835; Azure/AKS#1919 (a disk is attached to one node), #1989 (nodes run containerd),
#3546 (azure.workload.identity/use is a label of the pod since 1.0 of its webhook).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from shared.json_tree import Json
from shared.language.resolve.problems import Path
from shared.platform.changes.comparison import quantity
from shared.platform.changes.objects import value_at
from shared.platform.inventory import BuiltObject, Inventory, ObjectId, Owner
from shared.platform.rules.finding import (
    ClusterPlatform,
    Finding,
    is_kind,
    is_open,
    items,
    mapping,
    named,
    objects_in,
)
from shared.platform.rules.pods import PODS, at

_HOSTNAME = "kubernetes.io/hostname"
_POOL_LABELS = ("kubernetes.azure.com/agentpool", "agentpool")
"""Labels of AKS with the name of the node pool (learn.microsoft.com/azure/aks/use-labels)."""
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
    """Yield a note for each workload that needs more nodes, or another pool, than the cluster has in git."""
    for owner, name, built in platform.objects:
        needed, why, path = _nodes(name, built.manifest)
        if platform.nodes is not None and needed > platform.nodes:
            message = (
                f"{why}, so this needs {needed} nodes, and the node pools of the cluster have at most "
                f"{platform.nodes}: the other pods stay Pending; lower replicas, or let two be on a node"
            )
            yield _note(owner, name, built, path, message)
        for path, pool in _pools(name, built.manifest):
            if platform.pools is not None and pool not in platform.pools:
                message = f"the cluster has no node pool {pool}, so these pods stay Pending; correct it"
                yield _note(owner, name, built, path, message)


def _nodes(name: ObjectId, manifest: Json) -> tuple[int, str, Path]:
    """Return how many nodes a workload needs, each pod on its own, and by which field; 0 for any number."""
    replicas = value_at(manifest, "spec.replicas")
    path = PODS.get((name.group, name.kind))
    if (
        not is_kind(name, "apps", "Deployment", "StatefulSet")
        or path is None
        or not isinstance(replicas, int)
    ):
        return 0, "", ()
    pod, labels = mapping(at(manifest, path)), mapping(at(manifest, (*path[:-1], "metadata", "labels")))
    apart: list[Path] = [
        (*path, "affinity", "podAntiAffinity", _REQUIRED, number)
        for number, term in objects_in(at(pod, ("affinity", "podAntiAffinity", _REQUIRED)))
        if term.get("topologyKey") == _HOSTNAME and _selects(term.get("labelSelector"), labels)
    ]
    on_host: list[Path] = [
        (*path, "containers", number, "ports", place, "hostPort")
        for number, container in objects_in(pod.get("containers"))
        for place, port in objects_in(container.get("ports"))
        if port.get("hostPort")
    ]
    if not apart and not on_host:
        return 0, "", ()
    why = "no two of its pods may be on a node" if apart else "a port of a node is for one of its pods"
    if is_kind(name, "apps", "Deployment") and replicas and not _unavailable(manifest, replicas):
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


def _unavailable(deployment: Json, replicas: int) -> bool:
    """Return whether an update may remove a pod before it adds one; a percentage is rounded down."""
    if value_at(deployment, "spec.strategy.type") == "Recreate":
        return True
    given = value_at(deployment, "spec.strategy.rollingUpdate.maxUnavailable")
    found = _SHARE.fullmatch(str("25%" if given is None else given))
    number = int(found[1]) if found else 1
    return (replicas * number // 100 if found and found[2] else number) > 0


def _pools(name: ObjectId, manifest: Json) -> Iterator[tuple[Path, str]]:
    """Yield the node pools that a workload names, each with its field."""
    path = PODS.get((name.group, name.kind))
    for label in _POOL_LABELS if path else ():
        pool = mapping(at(manifest, (*(path or ()), "nodeSelector"))).get(label)
        if isinstance(pool, str) and not is_open(pool):
            yield (*(path or ()), "nodeSelector", label), pool


# What Azure and its nodes do with a pod


def pods_of_azure(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield a note for each pod that wants its node's Docker, shares a disk, or lacks an identity's label."""
    for owner, name, built in platform.objects:
        path = PODS.get((name.group, name.kind))
        pod = mapping(at(built.manifest, path)) if path else {}
        volumes = list(objects_in(pod.get("volumes"))) if path else []
        hosts = {number: str(at(volume, ("hostPath", "path"))) for number, volume in volumes}
        for number, volume in volumes:
            where: Path = (*(path or ()), "volumes", number)
            if hosts[number].endswith("/docker.sock") and not any(
                "containerd" in host for host in hosts.values()
            ):
                message = "nodes of AKS run containerd, and have no socket of Docker; build images elsewhere"
                yield _note(owner, name, built, (*where, "hostPath", "path"), message)
            claim = at(volume, ("persistentVolumeClaim", "claimName"))
            if claim and _shares_a_disk(platform, name, built.manifest, str(claim)):
                message = (
                    f"{claim} is a disk, which one node has at a time, so a pod on another node waits: "
                    "write replicas: 1 and strategy Recreate, or a StatefulSet, or a class of Azure Files"
                )
                yield _note(owner, name, built, (*where, "persistentVolumeClaim", "claimName"), message)
        account = platform.known.get(
            ObjectId("", "ServiceAccount", name.namespace, str(pod.get("serviceAccountName") or "default"))
        )
        if path and account and _IDENTITY in mapping(value_at(account.manifest, "metadata.annotations")):
            labels = mapping(at(built.manifest, (*path[:-1], "metadata", "labels")))
            if labels.get(_USE) != "true":
                message = (
                    f'{account.id} has an identity of Azure, and without the label {_USE}: "true" of the pod '
                    "AKS gives it no token; add it to the labels of the template"
                )
                yield _note(owner, name, built, (*path, "serviceAccountName"), message)


_IDENTITY, _USE = "azure.workload.identity/client-id", "azure.workload.identity/use"


def _shares_a_disk(platform: ClusterPlatform, name: ObjectId, manifest: Json, claim: str) -> bool:
    """Return whether two pods of a Deployment would have a claim that one node has, now or in an update."""
    found = platform.known.get(ObjectId("", "PersistentVolumeClaim", name.namespace, claim))
    if found is None or not is_kind(name, "apps", "Deployment"):
        return False
    replicas = value_at(manifest, "spec.replicas")
    count = 1 if replicas is None else replicas
    modes = items(value_at(found.manifest, "spec.accessModes"))
    is_disk = not str(value_at(found.manifest, "spec.storageClassName") or "").startswith(
        ("azurefile", "azureblob")
    )
    if not (
        isinstance(count, int)
        and count > 0
        and is_disk
        and [*modes] in (["ReadWriteOnce"], ["ReadWriteOncePod"])
    ):
        return False
    return count > 1 or not _unavailable(manifest, count)


# What a LimitRange refuses


def refused_by_limits(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield the workloads whose pods a LimitRange refuses; a note where it may not be the only one.

    The API server gives a request the value of its limit; a limit that is missing is the default of a
    LimitRange, which a larger request does not fit. Of several in a namespace each one refuses, and nobody
    knows whose default counts: the largest surely does not refuse more.
    """
    ranges = _ranges(platform)
    for owner, name, built in platform.objects:
        path = PODS.get((name.group, name.kind))
        pod = mapping(at(built.manifest, path)) if path else {}
        refused = [
            f"{text} ({container.get('name')})"
            for part in ("initContainers", "containers")
            for _, container in objects_in(pod.get(part))
            for text in _refused(mapping(container.get("resources")), ranges.get(name.namespace, {}))
        ]
        if path and refused:
            message = (
                f"a LimitRange of {name.namespace} refuses these containers, so no pod of it is created: "
                f"{named(refused)}; correct one of the two"
            )
            is_note = not platform.is_whole or platform.has_charts
            yield Finding(built.file or owner.file, name, path, message, is_note=is_note)


_Bounds = Mapping[tuple[str, str], tuple[Decimal, str]]
"""What the LimitRanges of a namespace say, by the kind of bound and the resource."""


def _ranges(platform: ClusterPlatform) -> Mapping[str, _Bounds]:
    """Return the bounds of each namespace: once, however many LimitRanges and workloads there are."""
    found: dict[str, dict[tuple[str, str], tuple[Decimal, str]]] = {}
    for _, name, built in platform.objects:
        limits = value_at(built.manifest, "spec.limits") if is_kind(name, "", "LimitRange") else ()
        for limit in (item for _, item in objects_in(limits) if item.get("type") == "Container"):
            for bound, strictest in (("min", max), ("max", min), ("default", max)):
                for resource, text in mapping(limit.get(bound)).items():
                    amount, bounds = quantity(str(text)), found.setdefault(name.namespace, {})
                    if amount is not None:
                        known = bounds.get((bound, resource))
                        said = (amount, str(text))
                        bounds[bound, resource] = strictest(known, said) if known else said
    return found


def _refused(resources: Mapping[str, Any], bounds: _Bounds) -> Iterator[str]:
    limits = mapping(resources.get("limits"))
    for field in ("requests", "limits"):
        for resource, given in mapping(resources.get(field)).items():
            value = quantity(str(given))
            for bound in ("min", "max", "default"):
                other = bounds.get((bound, resource))
                if value is None or other is None or (bound == "default" and resource in limits):
                    continue
                if value < other[0] if bound == "min" else value > other[0]:
                    yield f"{field}.{resource} {given}, {bound} {other[1]}"


def _note(owner: Owner, name: ObjectId, built: BuiltObject, path: Path, message: str) -> Finding:
    return Finding(built.file or owner.file, name, path, message, is_note=True)
