"""Rows that cannot be read: what a list lacks because of them, and what an operator is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

CLUSTER = "cluster"


@dataclass(frozen=True)
class UnreadableRow:
    """A row that cannot be read: what it is of, its place, and where in it which kind of error is.

    ``kind`` is what the row stores, such as ``CLUSTER``; ``key`` is its RowKey, for a cluster the name.
    ``problem`` quotes nothing of the row.
    """

    kind: str
    table: str
    partition: str
    key: str
    problem: str

    def __str__(self) -> str:
        place = f"the row {self.key} in the partition {self.partition} of the table {self.table}"
        return f"{place} cannot be read: {self.problem}"


class Listed(list[T]):
    """What a list has that can be read; ``unreadable`` are the rows that it lacks.

    For who concludes something from what a list lacks, a row that cannot be read is there.
    """

    def __init__(self, found: Iterable[T] = (), unreadable: Iterable[UnreadableRow] = ()) -> None:
        super().__init__(found)
        self.unreadable: Sequence[UnreadableRow] = tuple(unreadable)

    @property
    def unreadable_names(self) -> frozenset[str]:
        """The keys of the rows that cannot be read: of clusters, the names."""
        return frozenset(row.key for row in self.unreadable)

    def keyed(self, key: Callable[[T], str]) -> dict[str, T | UnreadableRow]:
        """Return what the list has by its key, with the rows that cannot be read by theirs."""
        return {key(each): each for each in self} | {row.key: row for row in self.unreadable}
