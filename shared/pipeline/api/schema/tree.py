"""A cluster as a tree: its conditions, its node pools, Flux and the workloads."""

from __future__ import annotations

from typing import TypedDict, final

from shared.pipeline.api.schema.clusters import Condition


class UnhealthyObject(TypedDict):
    """An object that is not healthy: why, and since when; ``namespace`` is "" for a kind without one."""

    kind: str
    name: str
    namespace: str
    reason: str
    message: str
    since: str | None


class ObjectGroup(TypedDict):
    """The objects of one kind; what is neither ready nor suspended nor failed is at work.

    ``failed`` also counts objects that are missing. ``unhealthy`` names the first of those that failed.
    """

    kind: str
    total: int
    ready: int
    suspended: int
    failed: int
    unhealthy: list[UnhealthyObject]


class NodePool(TypedDict):
    """A node pool: ``name`` is "" for nodes of none, ``wantedVersion`` "" where git has no such pool.

    ``versions`` are those of its nodes. ``notReady`` names the first of its nodes that are not ready.
    """

    name: str
    wantedVersion: str
    versions: list[str]
    nodes: int
    ready: int
    failed: int
    notReady: list[UnhealthyObject]


class SystemOnCluster(TypedDict):
    """A team's system on a cluster; ``unhealthy`` are those of the tree's objects in its namespaces."""

    name: str
    owners: list[str]
    namespaces: list[str]
    unhealthy: list[UnhealthyObject]


@final
class Tree(TypedDict):
    """``GET clusters/NAME/tree``.

    ``checkedAt`` is when a check read the node pools, ``flux`` and ``workloads``; None before that, and then
    they have no objects. ``conditions`` are those of the whole cluster.
    """

    name: str
    phase: str
    reason: str
    kubernetesVersion: str
    runningVersion: str
    fluxRevision: str
    fluxReadAt: str | None
    conditions: list[Condition]
    checkedAt: str | None
    nodePools: list[NodePool]
    flux: list[ObjectGroup]
    workloads: list[ObjectGroup]
    systems: list[SystemOnCluster]
