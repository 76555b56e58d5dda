"""What the invariants share: the truth, who acts, and what they have seen so far."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from localcloud.azure.world.arm_keys import key_of
from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.queues.messages import JobMessage
from shared.cluster.record import ClusterRecord
from shared.resource_ids import ClusterId
from simulation.event_loop import MAX_SKEW, SHORT_FREEZE, EventLoop
from simulation.history import LONG_AGO, AzureHistory, FleetHistory, Histories, PlannedHead
from simulation.oracle import Oracle

FROZEN = timedelta(seconds=SHORT_FREEZE + MAX_SKEW)
"""How old a worker's reads may be when it writes: no service rejects the write of an expired lease."""

CLOCKS = timedelta(seconds=2 * MAX_SKEW + 1)
"""How far apart two clocks are at most, and the second to which some times are cut off."""


@dataclass
class Creations:
    """The creations of one cluster, from the first version of its record to its removal."""

    creates: int = 0
    vanished_before: int = 0


@dataclass
class Context:
    """The truth and who acts; ``histories`` are those of the apps.

    ``left`` are groups that belong to the owners of the clusters in them, ``creations`` those of each life of
    a cluster, ``planned`` the heads that were planned, and ``accepted_at`` when a spec was accepted last.
    ``tombstones`` have the life for which each was accepted, ``created_by`` the uid of a cluster's creator.
    ``created_for`` is the number of the rebuild of each record, by fleet, name and uid, and ``began_for`` the
    one with which it began.
    ``deletes`` are those that Azure accepted: fleet, name and uid of the record, and the life.
    Of fleets whose tables were ``replaced``, with how often: what these may have ``unknown``, and the commits
    whose status may stay ``unreported``.
    """

    loop: EventLoop
    oracle: Oracle
    azure: AzureHistory
    histories: Histories
    left: set[tuple[str, str]] = field(default_factory=set)
    creations: dict[tuple[str, str, str], Creations] = field(default_factory=dict)
    planned: defaultdict[str, PlannedHead] = field(default_factory=lambda: defaultdict(PlannedHead))
    accepted_at: dict[tuple[str, str], datetime] = field(default_factory=dict)
    tombstones: dict[tuple[str, str, str], int] = field(default_factory=dict)
    created_for: dict[tuple[str, str, str], int] = field(default_factory=dict)
    began_for: dict[tuple[str, str, str], int] = field(default_factory=dict)
    deletes: set[tuple[str, str, str, int]] = field(default_factory=set)
    created_by: dict[ClusterId, str] = field(default_factory=dict)
    replaced: Counter[str] = field(default_factory=Counter)
    unknown: set[ClusterId] = field(default_factory=set)
    unreported: set[str] = field(default_factory=set)

    def tables_restored(self, cloud: MemoryCloud) -> None:
        """Note that the tables of a fleet have an older moment: a record may be older than its rebuild."""
        fleet = cloud.ports.config.fleet
        self.history(cloud).restored_at = self.loop.clock()
        self.created_for |= {record: began for record, began in self.began_for.items() if record[0] == fleet}

    def tables_replaced(self, cloud: MemoryCloud) -> None:
        """Note that the tables of a fleet were lost, or have an older moment."""
        fleet = cloud.ports.config.fleet
        self.replaced[fleet] += 1
        self.history(cloud).paused = None  # the tables have it no more, or not yet
        self.planned[fleet] = PlannedHead()
        for life in [life for life in self.creations if life[0] == fleet]:
            del self.creations[life]
        self.unreported.update(self.history(cloud).head_line)
        self.left.update(group for group, owner in self.azure.group_owners.items() if owner == fleet)
        for key in [key for key, owner in self.azure.owners.items() if owner == fleet]:
            self.unknown.add(key)
            self.oracle.keeps_labels.add(key)
            self.azure.disturb(key)

    def knows_life(self, cloud: MemoryCloud, record: ClusterRecord) -> None:
        """Note which life a tombstone is for: that of now."""
        life = self.azure.lives[key_of(record.desired.id)]
        self.tombstones[cloud.ports.config.fleet, record.name, record.uid] = life

    def history(self, cloud: MemoryCloud) -> FleetHistory:
        """Return what the operators of an app have pushed and approved."""
        return self.histories[cloud]

    def may_be_late(self, cloud: MemoryCloud, name: str) -> bool:
        """Return whether a write may have passed the lease guard before the newest spec was accepted."""
        accepted = self.accepted_at.get((cloud.ports.config.fleet, name), LONG_AGO)
        return self.loop.clock() - accepted <= FROZEN

    def is_suspended(self, record: ClusterRecord) -> bool:
        """Return whether a record is suspended, by the clock of every worker."""
        suspension = record.document["spec"].get("suspend")
        ends = datetime.fromisoformat(suspension["until"]) if suspension else LONG_AGO
        return ends > self.loop.clock() + timedelta(seconds=MAX_SKEW)


def moment_of_message(message: JobMessage) -> tuple[str, int, int]:
    """Return the moment of a cluster that a message names."""
    return message.uid, message.generation, message.sequence


def moment(record: ClusterRecord) -> tuple[int, int]:
    """Return the moment of a record, which only grows."""
    return record.generation, record.job.sequence
