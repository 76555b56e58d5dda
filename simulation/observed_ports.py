"""The state, the queues and the list of Azure's writes, which tell the checker of every write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from localcloud.memory.memory_cloud import MemoryCloud
from localcloud.tables.memory_state import MemoryState
from shared.jobs.record import ClusterRecord
from shared.ports import FleetRecord, Message
from simulation.invariants import Checker

if TYPE_CHECKING:
    from simulation.simulation import Life


class WatchedState(MemoryState):
    """A state that tells the checker of every row that is written."""

    def __init__(self) -> None:
        super().__init__()
        self.cloud: MemoryCloud | None = None
        self.checker: Checker | None = None

    def save(self, record: ClusterRecord) -> ClusterRecord:
        """Write the row."""
        before = self.cluster(record.name)
        saved = super().save(record)
        if self.checker is not None and self.cloud is not None:
            self.checker.saved(self.cloud, before, saved)
        return saved

    def forget(self, record: ClusterRecord) -> None:
        """Remove the row."""
        there = self.cluster(record.name) is not None
        super().forget(record)
        if there and self.checker is not None and self.cloud is not None:
            self.checker.forgot(self.cloud, record)

    def save_fleet(self, record: FleetRecord) -> FleetRecord:
        """Write the fleet's row."""
        saved = super().save_fleet(record)
        if self.checker is not None and self.cloud is not None:
            self.checker.planned(self.cloud, saved)
        return saved

    def touch(self, name: str) -> None:
        """Give a row another version, as a write of the same does."""
        record = self.cluster(name)
        if record is not None:
            super().save(record)


class Accepted(list[dict[str, str]]):
    """The list of what Azure accepted, which tells the checker."""

    def __init__(self, checker: Checker) -> None:
        super().__init__()
        self._checker = checker

    def append(self, write: dict[str, str]) -> None:
        """Add a write."""
        super().append(write)
        self._checker.accepted(write["accepted"], write["resource"])


class WatchedQueue:
    """A queue that notes what is sent, for those who send it again, and shows the checker."""

    def __init__(self, inner: Any, cloud: MemoryCloud, name: str, life: Life) -> None:
        self._inner, self._cloud, self._name, self._life = inner, cloud, name, life

    def send(self, message: Message) -> None:
        """Send, and note it."""
        self._life.sent.append((self._cloud, self._name, message))
        if self._name == "jobs":
            self._life.checker.sent(self._cloud, message)
        self._inner.send(message)
