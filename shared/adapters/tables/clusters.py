"""The table of the clusters' records, and the members of resource groups."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from shared.adapters.tables.entities import packed, safe_key
from shared.adapters.tables.reading import Entity, Reader, text_of
from shared.adapters.tables.storage import READERS, TOGETHER, Storage, etag_of
from shared.cluster import stored_record
from shared.cluster.continuations import Continuation, continuation_of
from shared.cluster.forms import CLUSTER, Listed, StoredText, WrongText
from shared.cluster.record import ClusterRecord
from shared.cluster.reporting.summary import ClusterSummary, SummaryDetails, summary_of
from shared.frozen import replace
from shared.ports import GroupMember

CLUSTERS = "roadsteadclusters"
FLEETS = "roadsteadfleets"
READ_ALONE = 100
"""Up to so many records are read by themselves, and not with the whole fleet."""
T = TypeVar("T")


class ClustersTable:
    """The part of the State port that is about clusters."""

    _storage: Storage
    _reader: Reader
    _fleet: str

    def cluster(self, name: str) -> ClusterRecord | None:
        """Return a cluster's record, or None; raise Unreadable."""
        entity = self._storage.get(CLUSTERS, self._fleet, name)
        return self._reader.value(CLUSTER, CLUSTERS, entity, cluster_of) if entity is not None else None

    def clusters(self) -> Listed[ClusterRecord]:
        """Return the records of the whole fleet, by name."""
        return self._records(self._storage.query(CLUSTERS, "PartitionKey eq @key"))

    def _records(self, entities: Iterable[Entity]) -> Listed[ClusterRecord]:
        return self._reader.listed(CLUSTER, CLUSTERS, entities, cluster_of)

    def summaries(self, *, details: bool = False) -> Listed[ClusterSummary]:
        """Return the summaries of the whole fleet, by name; from the whole record where one cannot be read.

        The keys are not asked for: the client takes as long for a property as for parsing a whole summary.
        """
        columns = ["summary", "details"] if details else ["summary"]
        read = _detailed if details else _short
        found = list(self._storage.query(CLUSTERS, "PartitionKey eq @key", select=columns))
        try:
            return Listed(map(read, found))
        except (WrongText, TypeError):
            return self._repeated(read, summary_of, columns, "PartitionKey eq @key")

    def _repeated(
        self,
        read: Callable[[Entity], T | None],
        repeat: Callable[[ClusterRecord], T | None],
        columns: Sequence[str],
        query: str,
    ) -> Listed[T]:
        """Return what entities repeat of their records; where that cannot be read, what the record says."""
        known, wrong = dict[str, T | None](), list[str]()
        for entity in self._storage.keys(CLUSTERS, query, *columns):
            try:
                known[entity["RowKey"]] = read(entity)
            except (WrongText, TypeError):
                wrong.append(entity["RowKey"])
        whole = self._storage.query(CLUSTERS, query) if len(wrong) > READ_ALONE else self._named(wrong)
        own = (entity for entity in whole if entity["RowKey"] in {*wrong})
        listed = self._reader.listed(
            CLUSTER, CLUSTERS, own, lambda entity: (entity["RowKey"], repeat(cluster_of(entity)))
        )
        known |= dict(listed)
        values = (value for _, value in sorted(known.items()) if value is not None)
        return Listed(values, listed.unreadable)

    def clusters_page(self, after: str, limit: int) -> Listed[ClusterRecord]:
        """Return at most ``limit`` records, by name, of those after a name."""
        entities = self._storage.query(
            CLUSTERS, "PartitionKey eq @key and RowKey gt @after", page=limit, after=after
        )
        return self._records(itertools.islice(entities, limit))

    def clusters_named(self, names: Sequence[str]) -> Listed[ClusterRecord]:
        """Return the records of these clusters in this order; a few are read in parallel."""
        return self._records(self._named(names))

    def _named(self, names: Sequence[str]) -> Sequence[Entity]:
        with ThreadPoolExecutor(READERS) as pool:
            found = pool.map(partial(self._storage.get, CLUSTERS, self._fleet), names)
            return [entity for entity in found if entity is not None]

    def continuations(self) -> Listed[Continuation]:
        """Return the continuations of all active jobs, by name; from the whole record likewise."""
        found = list(self._storage.query(CLUSTERS, _ACTIVE, select=["continuation"]))
        try:
            return Listed(read for read in map(_continuation, found) if read is not None)
        except (WrongText, TypeError):
            return self._repeated(_continuation, _continuation_now, ["continuation"], _ACTIVE)

    def save(self, record: ClusterRecord) -> ClusterRecord:
        """Write the record over its version, or as a new one; raise Stale."""
        entity = {
            "PartitionKey": self._fleet,
            "RowKey": record.name,
            "active": record.job.active,
            "continuation": _CONTINUATION.write(continuation_of(record)),
            **_summary(record),
            **packed(stored_record.to_json(record)),
        }
        return stored_record.with_etag(record, self._storage.write(CLUSTERS, entity, record.etag))

    def delete(self, record: ClusterRecord) -> None:
        """Delete the record if it is still this version; raise Stale."""
        self._storage.delete(CLUSTERS, self._fleet, record.name, record.etag)

    def add_group_members(self, members: Collection[tuple[str, GroupMember]]) -> None:
        """Save the resource groups of clusters, 100 a call."""
        entities = (self._member_key(group, member) for group, member in members)
        while batch := list(itertools.islice(entities, TOGETHER)):
            self._storage.upsert_together(FLEETS, batch)

    def group_members(self, group: str) -> Sequence[GroupMember]:
        """Return the members of a resource group."""
        # The members of all groups are one partition, in which those of one group follow each other.
        first = f"{safe_key(group)}:"
        keys = self._storage.keys(
            FLEETS,
            "PartitionKey eq @key and RowKey ge @first and RowKey lt @end",
            key=f"groups|{self._fleet}",
            first=first,
            end=f"{first[:-1]};",
        )
        return [GroupMember(*key["RowKey"].removeprefix(first).split(":")) for key in keys]

    def remove_group_member(self, group: str, member: GroupMember) -> None:
        """Remove a member; one that does not exist is success."""
        self._storage.remove(FLEETS, [self._member_key(group, member)])

    def _member_key(self, group: str, member: GroupMember) -> dict[str, str]:
        name = f"{safe_key(group)}:{member.cluster}:{member.uid}"
        return {"PartitionKey": f"groups|{self._fleet}", "RowKey": name}

    def add_group_delete_intent(self, group: str, intent: GroupMember) -> None:
        """Save that a cluster is about to delete a resource group."""
        self._storage.upsert(FLEETS, self._intent_key(group, intent))

    def group_delete_intents(self, group: str) -> Sequence[GroupMember]:
        """Return the intents to delete a resource group."""
        keys = self._storage.keys(FLEETS, "PartitionKey eq @key", key=self._intents(group))
        return [GroupMember(*key["RowKey"].split(":")) for key in keys]

    def remove_group_delete_intent(self, group: str, intent: GroupMember) -> None:
        """Remove an intent; one that does not exist is success."""
        self._storage.remove(FLEETS, [self._intent_key(group, intent)])

    def _intent_key(self, group: str, intent: GroupMember) -> dict[str, str]:
        return {"PartitionKey": self._intents(group), "RowKey": f"{intent.cluster}:{intent.uid}"}

    def _intents(self, group: str) -> str:
        return f"leaving|{self._fleet}|{safe_key(group)}"


_ACTIVE = "PartitionKey eq @key and active eq true"
_CONTINUATION = StoredText[Continuation](Continuation)
_SUMMARY = StoredText[ClusterSummary](ClusterSummary)
_DETAILS = StoredText[SummaryDetails | None](SummaryDetails)
"""One property each: the client takes as long for a property as for parsing a whole summary."""


def cluster_of(entity: Entity) -> ClusterRecord:
    """Return what a record stores of a cluster; raise WrongText."""
    record = stored_record.from_json(text_of(entity), etag_of(entity))
    if record.name != entity["RowKey"]:
        raise WrongText("name is that of another record")
    if entity.get("active") is not record.job.active:
        raise WrongText("the property active is missing, or is not job.active")
    return record


def _short(entity: Entity) -> ClusterSummary:
    return _SUMMARY.read(entity.get("summary", ""))


def _detailed(entity: Entity) -> ClusterSummary:
    return replace(_short(entity), details=_DETAILS.read(entity.get("details", "")))


def _continuation(entity: Entity) -> Continuation | None:
    return _CONTINUATION.read(entity.get("continuation", ""))


def _continuation_now(record: ClusterRecord) -> Continuation | None:
    return continuation_of(record) if record.job.active else None


def _summary(record: ClusterRecord) -> dict[str, str]:
    summary = summary_of(record)
    return {
        "summary": _SUMMARY.write(summary, "details"),
        "details": _DETAILS.write(summary.details),
    }
