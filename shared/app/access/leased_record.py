"""The record whose steps a worker runs, and what of it is not stored yet.

Reading Azure needs no lease, and a step that is done needs no save of its own. So the lease, and the outcomes
of such steps, are saved together: before the next write to Azure or to the cluster, or with the outcome at
which the message ends. Each save replaces the version that the message read. So a worker that was superseded
saves nothing and writes nothing, and what a crash loses is only what the next worker reads again.
"""

from __future__ import annotations

from collections.abc import Iterable

from shared.app.records import Transition, move_events, remove, save
from shared.cluster.failures.errors import ReconcileError, Stale
from shared.cluster.history import Event
from shared.cluster.record import ClusterRecord
from shared.cluster.transitions.lease import request_write
from shared.frozen import replace
from shared.notifications.notification import Notification
from shared.ports import Ports


class LeaseLost(Exception):
    """Another worker has the lease, or ours does not last long enough."""


class LeasedRecord:
    """The record with the lease of this worker; ``stored`` is whether the state has it like this.

    ``found`` is the record as the message found it. By ``Ports.elapsed``, ``since`` is when the lease
    began, and ``confirmed_at`` when the state was last asked, and nobody else had written the record.
    """

    def __init__(self, record: ClusterRecord, ports: Ports) -> None:
        self.record = self.found = record
        self.stored = False
        self.since, self.confirmed_at = ports.elapsed(), float("-inf")
        self._ports = ports
        self._events: list[Event] = []
        self._notifications: list[Notification] = []

    def advance(
        self, record: ClusterRecord, events: Iterable[Event], notifications: Iterable[Notification]
    ) -> None:
        """Continue with the record after a step that was done, and with the lease of the next one."""
        self._events += events
        self._notifications += notifications
        self.record, self.stored, self.since = record, False, self._ports.elapsed()

    def secure(self) -> None:
        """Ensure, before a write, that the state has our lease and nobody else's; raise LeaseLost."""
        requested = request_write(self.record)
        if self.stored and requested is self.record:
            self._confirm()
            return
        try:
            self.save(requested)
        except Stale:
            raise LeaseLost(f"{self.record.name}: another actor wrote the record") from None

    def _confirm(self) -> None:
        mine, asked_at = self.record, self._ports.elapsed()
        current = self._ports.state.cluster(mine.name)
        if current is None or current.job.lease != mine.job.lease or current.uid != mine.uid:
            raise LeaseLost(f"{mine.name}: another worker has the record")
        if current.generation != mine.generation:
            raise LeaseLost(f"{mine.name}: a newer commit was accepted")
        self.confirmed_at = asked_at

    def save(
        self, record: ClusterRecord, events: Iterable[Event] = (), notifications: Iterable[Notification] = ()
    ) -> None:
        """Save the record over the version that is stored, with all since the last save; raise Stale.

        At the end of the job, and where that fails, the events are saved by themselves: what a step did is
        real, also when a newer commit discards its outcome.
        """
        self._events += events
        self._notifications += notifications
        asked_at = self._ports.elapsed()
        try:
            if not record.job.active:
                move_events([*record.recent_events, *self._events], record, self._ports)
                record, self._events = replace(record, recent_events=()), []
            self.record = save(Transition(record, self._events, self._notifications), self._ports)
        except ReconcileError:
            self.append()
            raise
        self._events, self._notifications, self.stored, self.confirmed_at = [], [], True, asked_at

    def remove(self, events: Iterable[Event]) -> None:
        """Remove the record, whose events since the last save, and these, are saved first; raise Stale."""
        remove(self.record, [*self._events, *events], self._ports)

    def append(self, events: Iterable[Event] = ()) -> None:
        """Save the events since the last save, and these, by themselves."""
        unsaved = [*self._events, *events]
        if unsaved:
            self._ports.state.append(unsaved)
        self._events = []
