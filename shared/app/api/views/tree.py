"""A cluster as a tree, and its outputs. It reads the record alone."""

from __future__ import annotations

from collections.abc import Sequence

from shared.app.api import schema
from shared.app.api.projection import projected
from shared.app.api.views.clusters import cluster_view
from shared.cluster.findings.conditions import FLUX_REPORTS, IN_SYNC, STALLED, shown_phase
from shared.cluster.findings.health import HealthCondition
from shared.cluster.record import READY, ClusterRecord
from shared.json_tree import Json
from shared.kubernetes.inside import NODE, WORKLOADS, InsideReading, Part
from shared.language.cluster_systems import systems_in
from shared.ports import Ports

SHOWN = (READY, IN_SYNC, *HealthCondition, FLUX_REPORTS, STALLED)
"""The conditions of the whole cluster; those of the steps are in its status."""


def tree_view(name: str, ports: Ports) -> schema.TreeView | None:
    """Return a cluster as a tree; None when the fleet has no such cluster."""
    record = ports.state.cluster(name)
    if record is None:
        return None
    view = cluster_view(record, None, ports.state.sweep(), ports.clock())
    inside = record.observation.inside
    parts = inside.parts if inside else ()
    conditions = {condition["type"]: condition for condition in view["conditions"]}
    return projected(
        schema.TreeView,
        view,
        conditions=[conditions[kind] for kind in SHOWN if kind in conditions],
        checkedAt=inside.at if inside else None,
        nodePools=_pools(record, [part for part in parts if part.kind == NODE]),
        flux=[part for part in parts if part.kind not in (NODE, *WORKLOADS)],
        workloads=[part for part in parts if part.kind in WORKLOADS],
        systems=[_system(system, inside) for system in systems_in(record.document)],
    )


def _system(stored: Json, inside: InsideReading | None) -> schema.SystemOnCluster:
    """Return a system with what a check found unhealthy in its namespaces, and what it runs."""
    found = [
        unhealthy
        for part in (inside.parts if inside else ())
        for unhealthy in part.unhealthy
        if unhealthy.namespace in stored["namespaces"]
    ]
    revision = inside.systems.get(stored["name"]) if inside else None
    return projected(schema.SystemOnCluster, stored, unhealthy=found, revision=revision)


def _pools(record: ClusterRecord, parts: Sequence[Part]) -> list[schema.NodePoolView]:
    """Return the node pools of the manifest, then those that only the cluster has."""
    spec = record.document["spec"]
    wanted = {
        str(pool["name"]): str(pool.get("orchestratorVersion") or spec["kubernetesVersion"])
        for pool in spec["nodePools"]
    }
    found = {part.pool: part for part in parts}
    running = record.running.pools
    names = [*wanted, *(name for name in found if name not in wanted)]
    return [
        projected(
            schema.NodePoolView,
            part := found.get(name, Part(NODE, 0, 0)),
            name=name,
            wantedVersion=wanted.get(name, ""),
            image=running[name].image if name in running else "",
            nodes=part.total,
            notReady=part.unhealthy,
        )
        for name in names
    ]


# The outputs of a cluster: its facts, for programs that set up what is around it.


def outputs_view(name: str, ports: Ports) -> schema.Outputs | None:
    """Return the outputs of a cluster; None when the fleet has no such cluster."""
    record = ports.state.cluster(name)
    if record is None:
        return None
    phase, facts = shown_phase(record).value, record.observation.facts
    return projected(schema.Outputs, record, phase=phase, known=facts is not None, outputs=facts or {})
