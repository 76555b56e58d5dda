"""The state, the queues and the list of Azure's writes, which report every write to the invariants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, cast

from localcloud.github.world_host import WorldHost
from localcloud.memory.memory_cloud import JOB_QUEUES, MemoryCloud
from localcloud.tables.memory_state import MemoryState
from localcloud.tables.memory_tables import MemoryTable
from shared.cluster.record import ClusterRecord
from shared.notifications.notification import Notification
from shared.ports import FleetRecord, Message, PlanRecord
from shared.ports.state import TABLES
from shared.ports.state.app import NOTIFICATION
from shared.ports.state.reading import RecordKind
from shared.rollouts.rollout import Rollout
from simulation.event_loop import EventLoop
from simulation.invariants.early_ends import LifetimeInvariant
from simulation.invariants.proposed_promotions import PromotionInvariant
from simulation.invariants.rules import Invariants
from simulation.newer_forms import FormerTable, NewerTable, known
from simulation.shown.shown import FleetObserver

BETWEEN_BACKUPS = timedelta(seconds=20)


class ObservedState(MemoryState):
    """A state that reports every record that is written, once ``observe`` was called.

    ``whole`` is a state that reads everything: itself, but for a former version of the app.
    """

    def __init__(self, tables: Mapping[str, MemoryTable] | None = None) -> None:
        super().__init__(tables)
        self.whole: ObservedState = self
        self._observer: tuple[Invariants, FleetObserver, MemoryCloud] | None = None
        self.backups: list[tuple[datetime, Mapping[str, Any]]] = []
        """What the tables contained at some moments."""
        self.stored: list[Notification] = []
        """Every notification that was stored."""
        self.pruned: set[str] = set()
        """The ids of those that were removed because of their age."""

    def observe(self, invariants: Invariants, shown: FleetObserver, cloud: MemoryCloud) -> None:
        """Report to the invariants from now on, and note what changes in what is shown."""
        self._observer = invariants, shown, cloud

    def save(self, record: ClusterRecord) -> ClusterRecord:
        """Write the record."""
        before = self.whole.cluster(record.name)
        self._no_preview(f"the record {record.name}")
        saved = super().save(record)
        if self._observer is not None:
            invariants, shown, cloud = self._observer
            self._back_up(cloud.clock())
            if before is not None:
                invariants.hand_overs.accepted(cloud, before, saved)
            invariants.hand_overs.sized(cloud, before, saved)
            invariants.records.saved(cloud, before, saved)
            invariants.pauses.saved(cloud, before, saved)
            invariants.azure_writes.rebuilds.saved(cloud, saved)
            invariants.promotions.saved(cloud, saved)
            invariants.lifetimes.saved(cloud, saved)
            invariants.rollbacks.saved(cloud, before, saved)
            invariants.rollouts.saved(cloud, before, saved)
            invariants.line.saved(cloud, before, saved)
            invariants.timed_starts.saved(cloud, before, saved)
            shown.saved(cloud, before, saved)
            shown.changed(cloud, saved.name)
        return saved

    def _back_up(self, now: datetime) -> None:
        if not self.backups or now - self.backups[-1][0] >= BETWEEN_BACKUPS:
            self.backups.append((now, self.backup()))

    def _no_preview(self, what: str) -> None:
        if self._observer is not None:
            self._observer[0].pull_requests.changes(what)

    def delete(self, record: ClusterRecord) -> None:
        """Remove the record."""
        self._no_preview(f"the record {record.name}")
        exists = self.whole.cluster(record.name) is not None
        super().delete(record)
        if exists and self._observer is not None:
            invariants, shown, cloud = self._observer
            invariants.records.removed(cloud, record)
            shown.changed(cloud, record.name)

    def save_fleet(self, record: FleetRecord) -> FleetRecord:
        """Write the fleet's record."""
        self._no_preview("the record of the fleet")
        before, saved = self.whole.fleet(), super().save_fleet(record)
        if self._observer is not None:
            invariants, shown, cloud = self._observer
            invariants.hand_overs.checked(cloud, before, saved)
            invariants.records.planned(cloud, saved)
            invariants.promotions.planned(cloud, saved)
            shown.changed(cloud)
        return saved

    def save_plan(self, plan_record: PlanRecord) -> None:
        """Write the plan."""
        self._no_preview(f"the plan of {plan_record.plan.commit[:8]}")
        super().save_plan(plan_record)
        self._plan_saved()

    def save_review(self, plan_record: PlanRecord) -> None:
        """Write what the reviews of a plan say."""
        super().save_review(plan_record)
        self._plan_saved()

    def _plan_saved(self) -> None:
        if self._observer is not None:
            _, shown, cloud = self._observer
            shown.changed(cloud)

    def save_rollout(self, rollout: Rollout) -> Rollout:
        """Write a rollout."""
        self._no_preview(f"the rollout of {rollout.commit[:8]}")
        before, saved = self.whole.rollout(rollout.commit), super().save_rollout(rollout)
        if self._observer is not None:
            invariants, shown, cloud = self._observer
            invariants.rollouts.decided(cloud, before, saved)
            invariants.rollout_ends.decided(cloud, before, saved)
            shown.changed(cloud)
        return saved

    def add_notification(self, notification: Notification) -> None:
        """Save a notification."""
        super().add_notification(notification)
        self.stored.append(notification)

    def prune(self, kind: RecordKind[Any], before: datetime) -> int:
        """Remove older records."""
        if kind is NOTIFICATION:
            left = self.whole.notifications(len(self.stored))
            self.pruned |= {notification.id for notification in left if notification.at < before}
        return super().prune(kind, before)

    def save_report(self, plan_record: PlanRecord) -> None:
        """Write what was reported of a plan."""
        super().save_report(plan_record)
        if self._observer is not None:
            _, shown, cloud = self._observer
            shown.changed(cloud)


def of_two_versions() -> tuple[ObservedState, ObservedState]:
    """Return the state of a fleet as a newer version of the app has it, and as this version has it."""
    tables = {name: MemoryTable(name) for name in TABLES}
    newer = ObservedState(cast(Any, {name: NewerTable(table) for name, table in tables.items()}))
    former = ObservedState(cast(Any, {name: FormerTable(table) for name, table in tables.items()}))
    former.whole = newer
    former.backups, former.stored, former.pruned = newer.backups, newer.stored, newer.pruned
    return newer, former


class ObservedWrites(list[dict[str, str]]):
    """The list of the writes that Azure accepted, which reports them."""

    def __init__(self, invariants: Invariants) -> None:
        super().__init__()
        self._invariants = invariants

    def append(self, write: dict[str, str]) -> None:
        """Add a write."""
        super().append(write)
        self._invariants.pull_requests.changes(write["resource"])
        self._invariants.azure_writes.accepted(write["accepted"], write["resource"])
        self._invariants.pauses.wrote(f"{write['accepted']} of {write['resource']}")


class ObservedHost(WorldHost):
    """The git host of an app; the branches that it writes are reported before."""

    def __init__(
        self, cloud: MemoryCloud, promotions: PromotionInvariant, lifetimes: LifetimeInvariant
    ) -> None:
        super().__init__(cloud.repository, others=cloud.others)
        self._cloud, self._promotions, self._lifetimes = cloud, promotions, lifetimes

    def move_branch(self, branch: str, tip: str | None, commit: str) -> None:
        """Let a branch point to a commit."""
        self._promotions.proposed(self._cloud, branch, commit)
        self._lifetimes.proposed(self._cloud, branch, commit)
        super().move_branch(branch, tip, commit)


class ObservedQueue:
    """A queue that records what is sent, for those who send it again, and reports it."""

    def __init__(
        self, inner: Any, cloud: MemoryCloud, name: str, loop: EventLoop, invariants: Invariants
    ) -> None:
        self._inner, self._cloud, self._name = inner, cloud, name
        self._loop, self._invariants = loop, invariants

    def send(self, *messages: Message) -> None:
        """Send messages."""
        for message in messages:
            self._loop.sent.append((self._cloud, self._name, message))
            seen = replace(message, body=known(message.body))
            self._invariants.pull_requests.sent(self._cloud, self._name, seen)
            if self._name in JOB_QUEUES:
                self._invariants.messages.sent(self._cloud, self._name, seen)
        self._inner.send(*messages)

    def probe(self) -> None:
        """Show that the queue is there."""
        self._inner.probe()
