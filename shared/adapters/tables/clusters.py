"""The table of the clusters' records, and the members of resource groups."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pydantic import TypeAdapter

from shared.adapters.tables.entities import packed, safe_key, unpacked
from shared.adapters.tables.storage import READERS, TOGETHER, Storage, etag_of
from shared.frozen import replace
from shared.jobs import stored_record
from shared.jobs.continuations import Continuation, continuation_of, continuations_of
from shared.jobs.record import ClusterRecord
from shared.jobs.reporting.summary import ClusterSummary, SummaryDetails, summary_of
from shared.ports import GroupMember

CLUSTERS = "roadsteadclusters"
FLEETS = "roadsteadfleets"


class ClustersTable:
    """The part of the State port that is about clusters."""

    _storage: Storage
    _fleet: str

    def cluster(self, name: str) -> ClusterRecord | None:
        """Return a cluster's record, or None."""
        entity = self._storage.get(CLUSTERS, self._fleet, name)
        return _cluster(entity) if entity is not None else None

    def clusters(self) -> Sequence[ClusterRecord]:
        """Return the records of the whole fleet, by name."""
        return [_cluster(entity) for entity in self._storage.query(CLUSTERS, "PartitionKey eq @key")]

    def summaries(self, *, details: bool = False) -> Sequence[ClusterSummary]:
        """Return the summaries of the whole fleet, by name; from whole records after an upgrade."""
        columns = ["summary", "details"] if details else ["summary"]
        entities = list(self._storage.query(CLUSTERS, "PartitionKey eq @key", select=columns))
        summaries = [_SUMMARY.validate_json(text) for entity in entities if (text := entity.get("summary"))]
        if len(summaries) < len(entities):
            stored = {each.name for each in summaries}
            return [replace(each, stored=each.name in stored) for each in map(summary_of, self.clusters())]
        if not details:
            return summaries
        found = (_DETAILS.validate_json(entity["details"]) for entity in entities)
        return [replace(one, details=of_it) for one, of_it in zip(summaries, found, strict=True)]

    def clusters_page(self, after: str, limit: int) -> Sequence[ClusterRecord]:
        """Return at most ``limit`` records, by name, of those after a name."""
        entities = self._storage.query(
            CLUSTERS, "PartitionKey eq @key and RowKey gt @after", page=limit, after=after
        )
        return [_cluster(entity) for entity in itertools.islice(entities, limit)]

    def clusters_named(self, names: Sequence[str]) -> Sequence[ClusterRecord]:
        """Return the records of these clusters in this order; a few are read in parallel."""
        with ThreadPoolExecutor(READERS) as pool:
            return [record for record in pool.map(self.cluster, names) if record is not None]

    def continuations(self) -> Sequence[Continuation]:
        """Return the continuations of all active jobs, by name; from whole records after an upgrade."""
        entities = list(self._storage.query(CLUSTERS, _ACTIVE, select=["continuation"]))
        if all(entity.get("continuation") for entity in entities):
            return [_CONTINUATION.validate_json(entity["continuation"]) for entity in entities]
        return continuations_of(map(_cluster, self._storage.query(CLUSTERS, _ACTIVE)))

    def save(self, record: ClusterRecord) -> ClusterRecord:
        """Write the record over its version, or as a new one; raise Stale."""
        entity = {
            "PartitionKey": self._fleet,
            "RowKey": record.name,
            "active": record.job.active,
            "continuation": _CONTINUATION.dump_json(continuation_of(record)).decode(),
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
_CONTINUATION = TypeAdapter(Continuation)
_SUMMARY = TypeAdapter(ClusterSummary)
_DETAILS: TypeAdapter[SummaryDetails | None] = TypeAdapter(SummaryDetails | None)
"""One property each: the client takes as long for a property as for parsing a whole summary."""


def _cluster(entity: Any) -> ClusterRecord:
    return stored_record.from_json(unpacked(entity), etag_of(entity))


def _summary(record: ClusterRecord) -> dict[str, str]:
    summary = summary_of(record)
    return {
        "summary": _SUMMARY.dump_json(summary, exclude={"details", "stored"}).decode(),
        "details": _DETAILS.dump_json(summary.details).decode(),
    }
