"""The count of repaired gaps: heads of the branch that no webhook had announced when they were planned."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.queues.bodies import request_of
from shared.cluster.queues.messages import ToPlan
from shared.ports import FleetRecord
from simulation.invariants.context import Context
from simulation.rule import RuleViolated

RULE = "gaps"
RETENTION = timedelta(days=7)
"""For so long an announcement is stored: docs/architecture.md, "roadsteaddeliveries"."""


class GapInvariant:
    """Checks each gap that is counted, whatever else happens."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._announced: dict[tuple[str, str, datetime], datetime] = {}
        """Of a fleet, a commit and the time of its push, when the tables knew of its webhook."""
        self._counted: defaultdict[str, list[tuple[str, datetime]]] = defaultdict(list)
        self._purged: list[tuple[str, datetime]] = []
        """The fleets that are purged now, and before when what was announced may be gone."""

    def announced(self, cloud: MemoryCloud, commit: str, pushed: datetime | None) -> None:
        """Note that a webhook was accepted, if the tables have it: one that they lack may count as lost."""
        if pushed is not None and cloud.state.announced_at(commit) == pushed:
            key = cloud.ports.config.fleet, commit, pushed
            self._announced.setdefault(key, self._context.loop.clock())

    @contextmanager
    def purging(self, cloud: MemoryCloud, at: datetime) -> Iterator[None]:
        """Excuse, from the beginning of a purge, what it removes because that is old by its clock."""
        fleet, before = cloud.ports.config.fleet, at - RETENTION
        self._purged.append((fleet, before))
        try:
            yield
        finally:
            self._purged.remove((fleet, before))
            for key in [key for key in self._announced if key[0] == fleet and key[2] < before]:
                del self._announced[key]

    def saved(self, cloud: MemoryCloud, before: FleetRecord, after: FleetRecord) -> None:
        """Check a version of the fleet's record, and note for what a plan begins."""
        begins = after.planning != before.planning or after.gaps != before.gaps
        if after.planning and begins and after.planning != after.commit:  # else it is planned once more
            self._began(cloud, after.planning)
        fleet, more = cloud.ports.config.fleet, after.gaps.count - before.gaps.count
        if not more:
            return
        counted = self._counted[fleet]
        if more == -1:  # the plan of the head that was counted could not be read, and begins again
            del counted[-1:]
            return
        gap = after.gaps.last
        if more != 1 or gap is None or gap.commit != after.planning:
            raise RuleViolated(RULE, f"{fleet}: {more} more gaps are counted at once: {after.gaps}")
        pushed = self._context.history(cloud).moved_at(gap.commit)
        what = f"{fleet}: the push of {gap.commit[:8]} at {pushed:%H:%M:%S}"
        if (gap.commit, pushed) in counted:
            raise RuleViolated(RULE, f"{what} is counted as a gap twice")
        known = self._announced.get((fleet, gap.commit, pushed))
        purged = any(of == fleet and pushed < before for of, before in self._purged)
        if known is not None and not purged and known < self._context.loop.actor.since:
            raise RuleViolated(RULE, f"{what} is counted as a gap, and was announced before")
        counted.append((gap.commit, pushed))

    def _began(self, cloud: MemoryCloud, commit: str) -> None:
        request = self._context.loop.actor.request
        asked = request_of(request) if request else None
        looked_for = isinstance(asked, ToPlan) and asked.found is not None
        self._context.history(cloud).looked_for[commit] = looked_for

    def tables_replaced(self, cloud: MemoryCloud) -> None:
        """Drop what the tables of a fleet no longer have."""
        fleet = cloud.ports.config.fleet
        self._counted.pop(fleet, None)
        for key in [key for key in self._announced if key[0] == fleet]:
            del self._announced[key]
