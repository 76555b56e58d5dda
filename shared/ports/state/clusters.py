"""What is stored of clusters: their records, and which of them share a resource group."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from shared.cluster.continuations import Continuation
from shared.cluster.failures.errors import Unreadable
from shared.cluster.forms import Listed
from shared.cluster.record import ClusterRecord
from shared.cluster.reporting.summary import ClusterSummary
from shared.frozen import dataclass


@dataclass(frozen=True)
class GroupMember:
    """A cluster that lives in a resource group, is to live there, or is about to delete it.

    ``uid`` distinguishes clusters of one name.
    """

    cluster: str
    uid: str


class Clusters(Protocol):
    """The records of the clusters. A list names those that cannot be read, and goes on without them."""

    def cluster(self, name: str) -> ClusterRecord | None:
        """Return a cluster's record, or None; raise Unreadable."""
        ...

    def clusters(self) -> Listed[ClusterRecord]:
        """Return the records of the whole fleet, by name."""
        ...

    def summaries(self, *, details: bool = False) -> Listed[ClusterSummary]:
        """Return the summaries of the whole fleet, by name; this reads no record as a whole.

        Only with ``details`` they are sure to have any. Where a summary is missing, or cannot be read, its
        record is read as a whole.
        """
        ...

    def clusters_page(self, after: str, limit: int) -> Listed[ClusterRecord]:
        """Return at most ``limit`` records, by name, after a name ("": from the first).

        Those that cannot be read count.
        """
        ...

    def clusters_named(self, names: Sequence[str]) -> Listed[ClusterRecord]:
        """Return the records of these clusters in this order, without those that do not exist."""
        ...

    def continuations(self) -> Listed[Continuation]:
        """Return those of all active jobs, by name. The cost depends on their number, not that of clusters,
        and a record is read as a whole only where its continuation cannot be read.
        """
        ...

    def save(self, record: ClusterRecord) -> ClusterRecord:
        """Write the record over the version in ``record.etag`` ("": only if there is none); raise Stale.

        Returns the record with its new etag.
        """
        ...

    def delete(self, record: ClusterRecord) -> None:
        """Delete the record if it is still this version; raise Stale. One that does not exist is success."""
        ...

    def add_group_members(self, members: Collection[tuple[str, GroupMember]]) -> None:
        """Save clusters as members of their resource groups; saving one twice is the same."""
        ...

    def group_members(self, group: str) -> Sequence[GroupMember]:
        """Return the members of a resource group; the cost depends on their number alone."""
        ...

    def remove_group_member(self, group: str, member: GroupMember) -> None:
        """Remove a member; one that does not exist is success."""
        ...

    def add_group_delete_intent(self, group: str, intent: GroupMember) -> None:
        """Save that a cluster is about to delete a resource group; saving it twice is the same."""
        ...

    def group_delete_intents(self, group: str) -> Sequence[GroupMember]:
        """Return the intents to delete a resource group."""
        ...

    def remove_group_delete_intent(self, group: str, intent: GroupMember) -> None:
        """Remove an intent; one that does not exist is success."""
        ...


def readable(name: str, state: Clusters) -> ClusterRecord | None:
    """Return a cluster's record; None for none, and for one that cannot be read, so that others go on."""
    try:
        return state.cluster(name)
    except Unreadable:
        return None
