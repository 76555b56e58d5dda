"""What has happened so far, which the operators and the faults record and the invariants read."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Protocol

from localcloud.azure.world.arm_keys import key_of
from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record import ClusterRecord
from shared.ports import FleetRecord
from shared.resource_ids import ClusterId, GroupId
from simulation.desired_state import DesiredCluster, RequestedFleet
from simulation.followed_sources import SourceHistory

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
LIST_LAG = 10.0
"""Seconds until the lists of Azure Resource Manager show a new resource."""


@dataclass(frozen=True)
class StageApproval:
    """What somebody, or an external system, said of a stage, and when; whether it counts is for the rules.

    ``author``: that of the commit. ``proven``: a system signed it with its key.
    """

    commit: str
    stage: str
    by: str
    at: datetime
    admin: bool = False
    author: bool = False
    system: bool = False
    proven: bool = True


class SourceLine(Protocol):
    """The commits of a source in the order in which each became the newest one."""

    head_line: list[str]

    @property
    def is_ordered(self) -> bool:
        """Whether each has those before it, so that a pin goes forward: digests of a tag have not."""
        ...

    def place(self, commit: str) -> int:
        """Return when a commit last became the newest, as a number that grows."""
        ...

    def platform(self, commit: str) -> str:
        """Return the name of what Flux applies of a commit."""
        ...


class FleetHistory:
    """What the operators of a fleet committed and approved.

    ``head_line`` has every commit in the order in which it became the head of the branch, the last one at
    ``pushed_at``.
    """

    def __init__(self) -> None:
        self.head_line: list[str] = []
        self.pushed_at = LONG_AGO
        self._moved_at: list[datetime] = []
        self.approved: defaultdict[str, set[str]] = defaultdict(set)
        self.reviewed: defaultdict[str, dict[str, datetime]] = defaultdict(dict)
        """When a review approved the removal of each cluster by a commit: of those that existed before."""
        self.overridden = ""
        """The cluster that an operator replays now, whatever its freeze, "" for none."""
        self.approvals: list[StageApproval] = []
        """Of stages of rollouts: those that the API has not refused, also if it had to."""
        self.promoted: dict[str, datetime] = {}
        """When somebody promoted each value last."""
        self.declined: dict[tuple[str, str], datetime] = {}
        """The values of pull requests that somebody closed and did not merge, by environment and value, and
        when; no promoted one."""
        self.taken_back: set[str] = set()
        """The commits whose rollouts somebody aborted so that pins go back."""
        self.sources: dict[str, SourceHistory] = {}
        """The sources of the clusters that pull from elsewhere than the fleet repository."""
        self.restored_at: datetime | None = None
        """When its tables were last replaced by those of an older moment, None for never."""
        self.paused: tuple[datetime, datetime | None] | None = None
        """Since when somebody has the fleet paused, and until when, None for until a resume."""
        self.goes_on_at = LONG_AGO
        """When a timer has found what waited for the end of the last pause."""
        self._desired: dict[str, RequestedFleet] = {}

    def add(self, commit: str, desired: RequestedFleet) -> None:
        """Record what a commit asks for."""
        self._desired[commit] = desired

    def moved(self, commit: str, at: datetime) -> None:
        """Record that a commit became the head of the branch."""
        self.head_line.append(commit)
        self._moved_at.append(at)

    def moved_at(self, commit: str) -> datetime:
        """Return when a commit last became the head, in whole seconds as GitHub says it."""
        return self._moved_at[self.place(commit)].replace(microsecond=0)

    @property
    def is_ordered(self) -> bool:
        """Whether each commit has those before it."""
        return True

    def line(self, cluster: str) -> SourceLine:
        """Return what a cluster pulls: the head line of the fleet repository, or that of another source."""
        return self.sources.get(cluster, self)

    def platform(self, commit: str) -> str:
        """Return the name of what Flux applies of a commit."""
        return self.desired(commit).platform

    def may_go_back(self, cluster: str, before: str, now: str) -> bool:
        """Return whether somebody had a pin go back from one commit to another, which is an earlier one."""
        if source := self.sources.get(cluster):
            known = before in source.head_line and now in source.head_line
            return known and bool(self.taken_back) and source.place(now) < source.place(before)
        known = before in self.head_line and now in self.head_line
        asked = (commit for commit in self.taken_back if commit in self.head_line)
        return known and any(self.place(now) < self.place(before) <= self.place(commit) for commit in asked)

    def heads_since(self, at: datetime) -> set[str]:
        """Return every commit that was the head since a time."""
        later = {c for c, moved in zip(self.head_line, self._moved_at, strict=True) if moved >= at}
        before = [c for c, moved in zip(self.head_line, self._moved_at, strict=True) if moved < at]
        return later | {*before[-1:]}

    def first_moved_at(self, commit: str) -> datetime:
        """Return when a commit became the head first."""
        return self._moved_at[self.head_line.index(commit)]

    def wanted_since(self, name: str, created_for: int) -> datetime | None:
        """Return since when the head has a cluster as it is without a break, None while it does not.

        ``created_for`` is the number of the rebuild for which it was created.
        """
        since = None
        for commit, at in zip(reversed(self.head_line), reversed(self._moved_at), strict=True):
            if not self._desired[commit].keeps(name, created_for):
                break
            since = at
        return since

    def took_back(
        self, cluster: str, entries: Callable[[DesiredCluster], Collection[str]], entry: str
    ) -> bool:
        """Return whether a commit that was the head took an entry from a cluster that had it before.

        Restored tables may have a job of an older commit, which does not give the entry yet: docs/limits.md.
        """
        given = self.restored
        for commit in self.head_line:
            found = self._desired[commit].clusters.get(cluster)
            has = found is not None and entry in entries(found)
            if given and not has:
                return True
            given = given or has
        return False

    def asked_for_rebuild(self, cluster: str, created_for: int) -> bool:
        """Return whether a commit that was the head asks for another cluster than that of a rebuild."""
        found = (self._desired[commit].clusters.get(cluster) for commit in self.head_line)
        return any(desired is not None and desired.asked > created_for for desired in found)

    @property
    def restored(self) -> bool:
        """Whether its tables were ever those of an older moment."""
        return self.restored_at is not None

    def desired(self, commit: str) -> RequestedFleet:
        """Return what a commit asks for."""
        return self._desired[commit]

    @property
    def now(self) -> RequestedFleet:
        """What the head asks for."""
        return self._desired[self.head_line[-1]] if self.head_line else RequestedFleet()

    @property
    def head_before(self) -> str:
        """The branch as GitHub may show it a moment after a push."""
        return self.head_line[-2]

    def place(self, commit: str) -> int:
        """Return when a commit last became the head, as a number that grows."""
        return max(n for n, c in enumerate(self.head_line) if c == commit)

    def forget_approvals(self, name: str) -> None:
        """Record that a cluster is created again: earlier approvals of its delete no longer apply."""
        for names in self.approved.values():
            names.discard(name)
        for reviewed in self.reviewed.values():
            reviewed.pop(name, None)

    def approved_of(self, commit: str, records: Iterable[ClusterRecord]) -> frozenset[str]:
        """Return whose deletes were approved at a commit; ``records`` are the clusters as they are now."""
        created = {record.name: record.created for record in records}
        reviewed = self.reviewed[commit].items()
        return frozenset(self.approved[commit] | {n for n, at in reviewed if created.get(n, LONG_AGO) < at})


@dataclass
class AzureHistory:
    """The creators, owners and changes of the clusters in Azure."""

    clock: Callable[[], datetime]
    group_created_at: dict[tuple[str, str], datetime] = field(default_factory=dict)
    cluster_created_at: dict[ClusterId, datetime] = field(default_factory=dict)
    owners: dict[ClusterId, str] = field(default_factory=dict)
    group_owners: dict[tuple[str, str], str] = field(default_factory=dict)
    vanished: Counter[ClusterId] = field(default_factory=Counter)
    lives: Counter[ClusterId] = field(default_factory=Counter)
    """How often a cluster of a name was created."""
    created_for: dict[ClusterId, int] = field(default_factory=dict)
    """The number of the rebuild for which a cluster was created."""
    _disturbed_at: dict[ClusterId, datetime] = field(default_factory=dict)

    def created(self, cluster: ClusterId, owner: str) -> None:
        """Record that a fleet, or "" for an outside party, creates a cluster."""
        self.owners[cluster] = owner
        self.lives[cluster] += 1
        self.cluster_created_at[cluster] = self.clock()

    def may_vanish(self, cluster: ClusterId) -> None:
        """Record that the next operation removes the cluster, or a part of it, at its end."""
        self.vanished[key_of(cluster)] += 1
        self.disturb(cluster)

    def disturb(self, cluster: ClusterId) -> None:
        """Record that an outside party changes the cluster now."""
        self._disturbed_at[key_of(cluster)] = self.clock()

    def disturbed_at(self, cluster: ClusterId) -> datetime | None:
        """Return when an outside party last changed the cluster."""
        return self._disturbed_at.get(key_of(cluster))

    def is_new(self, cluster: ClusterId) -> bool:
        """Return whether a cluster is so new that Azure Resource Manager may not show it yet."""
        return self._is_recent(self.cluster_created_at.get(key_of(cluster)))

    def is_new_group(self, group: GroupId) -> bool:
        """Return whether a group is so new that Azure Resource Manager may not show it yet."""
        return self._is_recent(self.group_created_at.get((group.subscription, group.name.lower())))

    def has_new_cluster(self, group: GroupId) -> bool:
        """Return whether the list of a group may lack a cluster that is new in it."""
        inside = [c for c in self.cluster_created_at if c.group == replace(group, name=group.name.lower())]
        return any(map(self.is_new, inside))

    def _is_recent(self, at: datetime | None) -> bool:
        return at is not None and self.clock() - at < timedelta(seconds=LIST_LAG)


@dataclass
class PlannedHead:
    """The commit that a fleet planned last, from the saves of its fleet record.

    ``place`` numbers when the commit became the head.
    """

    commit: str = ""
    place: int = -1
    _record: FleetRecord = field(default_factory=FleetRecord)
    _begun: dict[str, int] = field(default_factory=dict)

    def saved(self, record: FleetRecord, place_of: Callable[[str], int]) -> None:
        """Read a save: a plan counts from its beginning, a push that needs no plan from its read."""
        before, self._record = self._record, record
        if record.planning:
            if record.planning != before.planning:
                self._begun[record.planning] = place_of(record.planning)
        elif record.commit:
            if not before.planning and record.reads.planned_at != before.reads.planned_at:
                self._begun[record.commit] = place_of(record.commit)
            self.commit, self.place = record.commit, self._begun.get(record.commit, -1)


Histories = dict[MemoryCloud, FleetHistory]
"""What the operators of each app have pushed and approved: a second app of a fleet has its own."""
