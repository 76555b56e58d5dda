"""How the comparison reports what it finds."""

from __future__ import annotations

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record import ClusterRecord
from shared.ports import FleetRecord
from simulation.rule import RuleViolated

CALM_SECONDS = 900.0
"""By then every message that a crash lost was sent again."""


def is_applied(cloud: MemoryCloud) -> bool:
    """Return whether the newest plan was carried out; a frozen planner may write one over it that was not."""
    newest = cloud.state.plan(cloud.state.fleet().commit)
    return newest is not None and newest.plan.applied


def silent(cloud: MemoryCloud, what: str) -> RuleViolated:
    """Return the report of a wait without a reason, or without anybody who ends it."""
    return RuleViolated("silent", f"{cloud.ports.config.fleet}: {what}")


def saved_late(record: ClusterRecord, fleet: FleetRecord) -> bool:
    """Return whether a superseded planner may have saved a new record: its first step asks for a new plan."""
    new = record.generation <= 1 and not record.azure.creation_requested
    return new and not record.deleting and record.commit != fleet.commit
