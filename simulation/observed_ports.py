"""The state, the queues and the list of Azure's writes, which report every write to the invariants."""

from __future__ import annotations

from typing import Any

from localcloud.memory.memory_cloud import RECIPES, MemoryCloud
from localcloud.tables.memory_state import MemoryState
from shared.jobs.record import ClusterRecord
from shared.ports import FleetRecord, Message, PlanRecord
from simulation.event_loop import EventLoop
from simulation.invariants import Invariants
from simulation.shown import Shown


class ObservedState(MemoryState):
    """A state that reports every record that is written, once ``observe`` was called."""

    def __init__(self) -> None:
        super().__init__()
        self._observer: tuple[Invariants, Shown, MemoryCloud] | None = None

    def observe(self, invariants: Invariants, shown: Shown, cloud: MemoryCloud) -> None:
        """Report to the invariants from now on, and note what changes in what is shown."""
        self._observer = invariants, shown, cloud

    def save(self, record: ClusterRecord) -> ClusterRecord:
        """Write the record."""
        before = self.cluster(record.name)
        saved = super().save(record)
        if self._observer is not None:
            invariants, shown, cloud = self._observer
            invariants.saved(cloud, before, saved)
            shown.saved(cloud, before, saved)
            shown.changed(cloud, saved.name)
        return saved

    def delete(self, record: ClusterRecord) -> None:
        """Remove the record."""
        exists = self.cluster(record.name) is not None
        super().delete(record)
        if exists and self._observer is not None:
            invariants, shown, cloud = self._observer
            invariants.removed(cloud, record)
            shown.changed(cloud, record.name)

    def save_fleet(self, record: FleetRecord) -> FleetRecord:
        """Write the fleet's record."""
        saved = super().save_fleet(record)
        if self._observer is not None:
            invariants, shown, cloud = self._observer
            invariants.planned(cloud, saved)
            shown.changed(cloud)
        return saved

    def save_plan(self, plan_record: PlanRecord) -> None:
        """Write the plan."""
        super().save_plan(plan_record)
        if self._observer is not None:
            _, shown, cloud = self._observer
            shown.changed(cloud)


class ObservedWrites(list[dict[str, str]]):
    """The list of the writes that Azure accepted, which reports them."""

    def __init__(self, invariants: Invariants) -> None:
        super().__init__()
        self._invariants = invariants

    def append(self, write: dict[str, str]) -> None:
        """Add a write."""
        super().append(write)
        self._invariants.accepted(write["accepted"], write["resource"])


class ObservedQueue:
    """A queue that records what is sent, for those who send it again, and reports it."""

    def __init__(
        self, inner: Any, cloud: MemoryCloud, name: str, loop: EventLoop, invariants: Invariants
    ) -> None:
        self._inner, self._cloud, self._name = inner, cloud, name
        self._loop, self._invariants = loop, invariants

    def send(self, message: Message) -> None:
        """Send a message."""
        self._loop.sent.append((self._cloud, self._name, message))
        if self._name in RECIPES:
            self._invariants.sent(self._cloud, message)
        self._inner.send(message)
