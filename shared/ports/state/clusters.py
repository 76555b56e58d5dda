"""What is stored of clusters: their records, their events, and which of them share a resource group."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from functools import lru_cache, partial
from operator import attrgetter, itemgetter
from typing import TypeVar

from shared.cluster import record as stored
from shared.cluster.failures.errors import Unreadable
from shared.cluster.forms import CLUSTER, RecordList, StoredText, UnreadableRecord, WrongText
from shared.cluster.history import Event
from shared.cluster.lifetime import due_at
from shared.cluster.queues.continuations import Continuation, continuation_of
from shared.cluster.record import ClusterRecord, sleeps_at
from shared.cluster.reporting.summary import ClusterSummary, SummaryDetails, summary_of
from shared.frozen import dataclass, replace
from shared.ports.state.reading import RecordKind, TableRepository, TextKind
from shared.ports.state.texts import newest_first, packed, safe_key, text_of
from shared.ports.tables import MOST_REMOVED, Condition, Entity, Key

CLUSTERS = "roadsteadclusters"
EVENTS = "roadsteadevents"
FLEETS = "roadsteadfleets"
READ_ALONE = 100
"""Up to so many records are read by themselves, and not with the whole fleet."""
KNOWN_SUMMARIES = 16_384
"""So many summaries that a process has read it does not parse again: with details, about 5 kB each."""
LONGEST_KNOWN = 2000
"""Characters of a text that is remembered: many systems of each cluster would fill an instance's memory."""
_KEYS = ("PartitionKey", "RowKey")
T = TypeVar("T")


@dataclass(frozen=True)
class GroupMember:
    """A cluster that lives in a resource group, or is to live there."""

    cluster: str
    uid: str


class Clusters(TableRepository):
    """The records of the clusters. A list names those that cannot be read, and goes on without them."""

    def cluster(self, name: str) -> ClusterRecord | None:
        """Return a cluster's record, or None; raise Unreadable."""
        return self._value(RECORD, name)

    def clusters(self) -> RecordList[ClusterRecord]:
        """Return the records of the whole fleet, by name."""
        return self._listed(RECORD)

    def summaries(self, *, details: bool = False) -> RecordList[ClusterSummary]:
        """Return the summaries of the whole fleet, by name; this reads no record as a whole.

        Only with ``details`` they are sure to have any. Where a summary is missing, or cannot be read, its
        record is read as a whole.
        """
        read, columns = (_detailed, ("summary", "details")) if details else (_short, ("summary",))
        return self._repeated(read, summary_of, columns)

    def continuations(self) -> RecordList[Continuation]:
        """Return those of all active jobs, by name. The cost depends on their number, not that of clusters,
        and a record is read as a whole only where its continuation cannot be read.
        """
        return self._repeated(_continuation, _continuation_now, ("continuation",), ("active", "eq", True))

    def _repeated(
        self,
        read: Callable[[Entity], T],
        repeat: Callable[[ClusterRecord], T | None],
        columns: Sequence[str],
        *conditions: Condition,
    ) -> RecordList[T]:
        """Return what entities repeat of their records; where that cannot be read, what the record says.

        The keys are not asked for at first: a client takes as long for a property as for parsing a summary.
        """
        found = list(self._entities(RECORD, *conditions, select=columns))
        try:
            return RecordList(entity.value(read) for entity in found)
        except (WrongText, TypeError):
            pass
        known, wrong = dict[str, T | None](), list[str]()
        for entity in self._keys(RECORD, *conditions, also=columns):
            try:
                known[entity["RowKey"]] = read(entity)
            except (WrongText, TypeError):
                wrong.append(entity["RowKey"])
        whole = self._entities(RECORD, *conditions) if len(wrong) > READ_ALONE else self._named(wrong)
        records = self._reader.listed(RECORD, (entity for entity in whole if entity["RowKey"] in {*wrong}))
        known |= {record.name: repeat(record) for record in records}
        values = (value for _, value in sorted(known.items()) if value is not None)
        return RecordList(values, records.unreadable)

    def due_to_sleep(self, now: datetime) -> list[str]:
        """Return the clusters that are at rest and are to sleep now; no record is read for that."""
        return [entity["RowKey"] for entity in self._keys(RECORD, ("sleeps", "le", now))]

    def due_to_end(self, now: datetime) -> list[str]:
        """Return the clusters of whose lifetime something is to be done now; no record is read for that."""
        return [entity["RowKey"] for entity in self._keys(RECORD, ("ends", "le", now))]

    def clusters_page(self, after: str, limit: int) -> RecordList[ClusterRecord]:
        """Return at most ``limit`` records, by name, after a name ("": from the first).

        Those that cannot be read count.
        """
        entities = self._entities(RECORD, ("RowKey", "gt", after), page=limit)
        return self._reader.listed(RECORD, itertools.islice(entities, limit))

    def clusters_named(self, names: Sequence[str]) -> RecordList[ClusterRecord]:
        """Return the records of these clusters in this order, without those that do not exist."""
        return self._reader.listed(RECORD, self._named(names))

    def _named(self, names: Sequence[str]) -> Iterable[Entity]:
        found = self._together(partial(self._entity, RECORD), names)
        return (entity for entity in found if entity is not None)

    def save(self, record: ClusterRecord) -> ClusterRecord:
        """Write the record over the version in ``record.etag`` ("": only if there is none); raise Stale."""
        summary = summary_of(record)
        moments = {"sleeps": sleeps_at(record), "ends": due_at(record)}
        properties = {
            "active": record.job.active,
            **{name: moment for name, moment in moments.items() if moment is not None},
            "continuation": _CONTINUATION.write(continuation_of(record)),
            "summary": _SUMMARY.write(summary, "details"),
            "details": _DETAILS.write(summary.details),
            **packed(stored.to_json(record)),
        }
        etag = self._tables[CLUSTERS].write(self._fleet, record.name, properties, record.etag)
        return replace(record, etag=etag)

    def delete(self, record: ClusterRecord) -> None:
        """Delete the record if it is still this version; raise Stale. One that does not exist is success."""
        self._tables[CLUSTERS].delete(self._fleet, record.name, record.etag)

    def add_group_members(self, members: Collection[tuple[str, GroupMember]]) -> None:
        """Save clusters as members of their resource groups; saving one twice is the same."""
        keys = (f"{safe_key(group)}:{member.cluster}:{member.uid}" for group, member in members)
        self._tables[FLEETS].put(self._groups, {key: {} for key in keys})

    def group_members(self, group: str) -> Sequence[GroupMember]:
        """Return the members of a resource group; the cost depends on their number alone."""
        # The members of all groups are one partition, in which those of one group follow each other.
        first, end = f"{safe_key(group)}:", f"{safe_key(group)};"
        inside: Sequence[Condition] = (("RowKey", "ge", first), ("RowKey", "lt", end))
        found = self._tables[FLEETS].query(self._groups, *inside, select=_KEYS)
        return [GroupMember(*entity["RowKey"].removeprefix(first).split(":")) for entity in found]

    def remove_group_member(self, group: str, member: GroupMember) -> None:
        """Remove a member; one that does not exist is success."""
        self._tables[FLEETS].remove([(self._groups, f"{safe_key(group)}:{member.cluster}:{member.uid}")])

    @property
    def _groups(self) -> str:
        return f"groups|{self._fleet}"

    def append(self, events: Sequence[Event]) -> None:
        """Save events; an event that was saved before is not duplicated."""
        for cluster, own in itertools.groupby(events, key=attrgetter("cluster")):
            keyed = {_event_key(event): EVENT.properties(event) for event in own}
            self._tables[EVENTS].put(f"{self._fleet}|{cluster}", keyed)

    def events(self, cluster: str, limit: int, before: datetime | None = None) -> RecordList[Event]:
        """Return a cluster's newest events (before a millisecond), newest first, even of a deleted one.

        Those that are stored with the record of the cluster are among them. The record is read first: an
        event that is moved meanwhile is found twice, and shown once. So is one that a crash had somebody save
        again, at another time. Where the record cannot be read, those that it alone has are missing.
        """
        after = f"{newest_first(before)}~" if before else ""  # sorts behind the keys of that millisecond
        unreadable = list[UnreadableRecord]()
        record = readable(cluster, self)
        recent = {_event_key(event): event for event in record.recent_events} if record else {}
        entities = self._tables[EVENTS].query(f"{self._fleet}|{cluster}", ("RowKey", "gt", after), page=limit)
        stored = ((_event_key(event), event) for event in self._reader.values(EVENT, entities, unreadable))
        found: dict[tuple[str, int, str], Event] = {}
        for _, event in heapq.merge(
            sorted(known for known in recent.items() if known[0] > after), stored, key=itemgetter(0)
        ):
            found.setdefault((event.uid, event.sequence, event.reason), event)
            if len(found) >= limit:
                break
        return RecordList(found.values(), unreadable)

    def prune_events(self, cluster: str, keep: int) -> int:
        """Remove all but a cluster's newest events; return how many were removed."""
        entities = self._tables[EVENTS].query(f"{self._fleet}|{cluster}", select=_KEYS)
        return self._tables[EVENTS].remove(entity.place for entity in itertools.islice(entities, keep, None))

    def prune_events_before(self, at: datetime, *, living: Collection[str]) -> int:
        """Remove the events of clusters that are not in ``living`` and have none since a time.

        Return how many were removed. Those of living clusters may be millions. So each query is for what is
        between two of them.
        """
        after, first = f"{newest_first(at)}~", f"{self._fleet}|"
        borders = [first, *(f"{first}{name}" for name in sorted(living)), f"{self._fleet}~"]
        expired = self._together(partial(self._expired_between, after), list(itertools.pairwise(borders)))
        return self._tables[EVENTS].remove(itertools.chain.from_iterable(expired))

    def _expired_between(self, after: str, borders: tuple[str, str]) -> Sequence[Key]:
        """Return the keys of the events between two partitions of clusters that have none since.

        No more than are removed, because there may be millions.
        """
        first, until = borders
        found = self._tables[EVENTS].query(first, ("RowKey", "gt", after), until=until, select=_KEYS)
        by_cluster = itertools.groupby((entity.place for entity in found), key=itemgetter(0))
        expired = (own for partition, own in by_cluster if not self._has_events_since(partition, after))
        return list(itertools.islice(itertools.chain.from_iterable(expired), MOST_REMOVED))

    def _has_events_since(self, partition: str, after: str) -> bool:
        newer = self._tables[EVENTS].query(partition, ("RowKey", "le", after), select=_KEYS, page=1)
        return next(newer, None) is not None


def readable(name: str, state: Clusters) -> ClusterRecord | None:
    """Return a cluster's record; None for none, and for one that cannot be read, so that others go on."""
    try:
        return state.cluster(name)
    except Unreadable:
        return None


_CONTINUATION = StoredText[Continuation](Continuation)
_SUMMARY = StoredText[ClusterSummary](ClusterSummary)
_DETAILS = StoredText[SummaryDetails | None](SummaryDetails)
"""One property each: the client takes as long for a property as for parsing a whole summary."""


def _record(entity: Entity) -> ClusterRecord:
    record = stored.from_json(text_of(entity), entity.etag)
    if record.name != entity["RowKey"]:
        raise WrongText("name is that of another record")
    if entity.get("active") is not record.job.active:
        raise WrongText("the property active is missing, or is not job.active")
    return record


RECORD = RecordKind(CLUSTER, CLUSTERS, "{}", _record)
EVENT = TextKind[Event]("event", EVENTS, Event)


_known_summary = lru_cache(KNOWN_SUMMARIES)(_SUMMARY.read)
_known_details = lru_cache(KNOWN_SUMMARIES)(_DETAILS.read)


def _read(stored: StoredText[T], known: Callable[[str], T], text: str) -> T:
    return known(text) if len(text) <= LONGEST_KNOWN else stored.read(text)


def _short(entity: Entity) -> ClusterSummary:
    return _read(_SUMMARY, _known_summary, entity.get("summary", ""))


def _detailed(entity: Entity) -> ClusterSummary:
    details = _read(_DETAILS, _known_details, entity.get("details", ""))
    return replace(_short(entity), details=details)


def _continuation(entity: Entity) -> Continuation:
    return _CONTINUATION.read(entity.get("continuation", ""))


def _continuation_now(record: ClusterRecord) -> Continuation | None:
    return continuation_of(record) if record.job.active else None


def _event_key(event: Event) -> str:
    moment = f"{newest_first(event.at)}-{99_999_999 - event.sequence:08d}"
    return f"{moment}-{event.uid}-{event.reason}"
