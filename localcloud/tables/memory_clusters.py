"""The clusters of the State port in memory: their records, and the members of resource groups."""

from __future__ import annotations

import itertools
import threading
import zlib
from collections.abc import Collection, Sequence

from shared.cluster.continuations import Continuation, continuations_of
from shared.cluster.failures.errors import Stale, TooLarge, Unreadable
from shared.cluster.forms import CLUSTER, Listed, UnreadableRecord, WrongText
from shared.cluster.record import ClusterRecord
from shared.cluster.reporting.summary import ClusterSummary, summary_of
from shared.cluster.stored_record import from_json, to_json, with_etag
from shared.frozen import replace
from shared.ports import GroupMember

CLUSTERS = "roadsteadclusters"
ENTITY_BYTES = 1 << 20
"""learn.microsoft.com/rest/api/storageservices/understanding-the-table-service-data-model: an entity has at
most 1 MiB. How a record is written is the adapter's; it can be no smaller than compressed."""


class Version:
    """A version of a record. Its text is read once somebody asks for the record: most are only replaced."""

    def __init__(self, text: str, etag: str) -> None:
        self.etag = etag
        self._text = text
        self._record: ClusterRecord | None = None

    @property
    def record(self) -> ClusterRecord:
        """The record as it was stored; to be read under the lock of the clusters. Raise WrongText."""
        if self._record is None:
            self._record, self._text = from_json(self._text, self.etag), ""
        return self._record

    @property
    def text(self) -> str:
        """The text that was stored."""
        return to_json(self._record) if self._record is not None else self._text


class MemoryClusters:
    """The part of the State port that is about clusters."""

    entity_bytes = ENTITY_BYTES

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._versions = itertools.count(1)
        self._clusters: dict[str, Version] = {}
        self._summaries: dict[str, tuple[ClusterRecord, ClusterSummary, ClusterSummary]] = {}
        self._group_members: dict[str, frozenset[GroupMember]] = {}
        self._group_delete_intents: dict[str, frozenset[GroupMember]] = {}

    def cluster(self, name: str) -> ClusterRecord | None:
        """Return a cluster's record, or None; raise Unreadable."""
        with self._lock:
            saved = self._clusters.get(name)
            try:
                return saved.record if saved else None
            except WrongText as error:
                raise Unreadable(str(_row(name, error))) from error

    def clusters(self) -> Listed[ClusterRecord]:
        """Return the records of the whole fleet, by name."""
        return self.clusters_named(self._names())

    def unreadable(self) -> Sequence[UnreadableRecord]:
        """Return the records that cannot be read now; only a cluster's can be damaged here."""
        return self.clusters().unreadable

    def damage(self, name: str, text: str) -> str:
        """Put a text in place of what is stored of a cluster, and return that."""
        with self._lock:
            before = self._clusters[name].text
            self._clusters[name] = Version(text, f"v{next(self._versions)}")
        return before

    def summaries(self, *, details: bool = False) -> Listed[ClusterSummary]:
        """Return the summaries of the whole fleet, by name."""
        listed = self.clusters()
        return Listed((self._summary(record)[0 if details else 1] for record in listed), listed.unreadable)

    def _summary(self, record: ClusterRecord) -> tuple[ClusterSummary, ClusterSummary]:
        """Return the summary of a record with details and without, created once for each version."""
        known = self._summaries.get(record.name)
        if known is None or known[0] is not record:
            summary = summary_of(record)
            known = self._summaries[record.name] = record, summary, replace(summary, details=None)
        return known[1:]

    def clusters_page(self, after: str, limit: int) -> Listed[ClusterRecord]:
        """Return at most ``limit`` records, by name, of those after a name."""
        return self.clusters_named([name for name in self._names() if name > after][:limit])

    def _names(self) -> Sequence[str]:
        with self._lock:
            return sorted(self._clusters)

    def clusters_named(self, names: Sequence[str]) -> Listed[ClusterRecord]:
        """Return the records of these clusters in this order."""
        found, unreadable = list[ClusterRecord](), list[UnreadableRecord]()
        with self._lock:
            for name in names:
                try:
                    if name in self._clusters:
                        found.append(self._clusters[name].record)
                except WrongText as error:
                    unreadable.append(_row(name, error))
        return Listed(found, unreadable)

    def continuations(self) -> Listed[Continuation]:
        """Return the continuations of all active jobs, by name of the cluster."""
        listed = self.clusters()
        return Listed(continuations_of(listed), listed.unreadable)

    def save(self, record: ClusterRecord) -> ClusterRecord:
        """Write the record over its version, or as a new one; raise Stale."""
        with self._lock:
            self._check(record)
            etag, text = f"v{next(self._versions)}", to_json(record)
            size = self.entity_bytes
            if len(text) > size and len(zlib.compress(text.encode())) > size:
                raise TooLarge(f"EntityTooLarge: the entity is larger than {size >> 10} KiB")
            self._clusters[record.name] = Version(text, etag)
        return with_etag(record, etag)

    def delete(self, record: ClusterRecord) -> None:
        """Delete the record if it is still this version; raise Stale."""
        with self._lock:
            if record.name in self._clusters:
                self._check(record)
                del self._clusters[record.name]

    def _check(self, record: ClusterRecord) -> None:
        saved = self._clusters.get(record.name)
        if (saved.etag if saved else "") != record.etag:
            raise Stale("another writer changed the record")

    def add_group_members(self, members: Collection[tuple[str, GroupMember]]) -> None:
        """Save the resource groups of clusters."""
        for group, member in members:
            self._change(self._group_members, group, add={member})

    def group_members(self, group: str) -> Sequence[GroupMember]:
        """Return the members of a resource group."""
        return _by_name(self._group_members.get(group, ()))

    def remove_group_member(self, group: str, member: GroupMember) -> None:
        """Remove a member; one that does not exist is success."""
        self._change(self._group_members, group, remove={member})

    def add_group_delete_intent(self, group: str, intent: GroupMember) -> None:
        """Save that a cluster is about to delete a resource group."""
        self._change(self._group_delete_intents, group, add={intent})

    def group_delete_intents(self, group: str) -> Sequence[GroupMember]:
        """Return the intents to delete a resource group."""
        return _by_name(self._group_delete_intents.get(group, ()))

    def remove_group_delete_intent(self, group: str, intent: GroupMember) -> None:
        """Remove an intent; one that does not exist is success."""
        self._change(self._group_delete_intents, group, remove={intent})

    def _change(
        self,
        stored: dict[str, frozenset[GroupMember]],
        group: str,
        *,
        add: Collection[GroupMember] = (),
        remove: Collection[GroupMember] = (),
    ) -> None:
        with self._lock:
            left = stored.pop(group, frozenset()).union(add).difference(remove)
            stored |= {group: left} if left else {}


def _row(name: str, error: WrongText) -> UnreadableRecord:
    return UnreadableRecord(CLUSTER, CLUSTERS, "memory", name, str(error))


def _by_name(members: Collection[GroupMember]) -> Sequence[GroupMember]:
    return sorted(members, key=lambda member: (member.cluster, member.uid))
