"""Lists of records, with the records that a list lacks because they cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

CLUSTER = "cluster"


@dataclass(frozen=True)
class UnreadableRecord:
    """A record that cannot be read: what it is of, its place, and where in it which kind of error is.

    ``kind`` is what the record stores, such as ``CLUSTER``; ``key`` is its RowKey, for a cluster the name.
    ``problem`` quotes nothing of the record. ``newer``: it has the form of a newer version.
    """

    kind: str
    table: str
    partition: str
    key: str
    problem: str
    newer: bool = False

    def __str__(self) -> str:
        place = f"the record {self.key} in the partition {self.partition} of the table {self.table}"
        return f"{place} cannot be read: {self.problem}"


class Listed(list[T]):
    """What a list has that can be read; ``unreadable`` are the records that it lacks.

    For who concludes something from what a list lacks, a record that cannot be read is there.
    """

    def __init__(self, found: Iterable[T] = (), unreadable: Iterable[UnreadableRecord] = ()) -> None:
        super().__init__(found)
        self.unreadable: Sequence[UnreadableRecord] = tuple(unreadable)

    @property
    def unreadable_names(self) -> frozenset[str]:
        """The keys of the records that cannot be read: of clusters, the names."""
        return frozenset(record.key for record in self.unreadable)

    def keyed(self, key: Callable[[T], str]) -> dict[str, T | UnreadableRecord]:
        """Return what the list has by its key, with the records that cannot be read by theirs."""
        return {key(each): each for each in self} | {record.key: record for record in self.unreadable}
