"""The port of exports: files of lines outside the tables, each written once, and never changed by the app."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import date
from typing import Protocol


class Exports(Protocol):
    """The exports of all fleets of a container, by names such as FLEET/2026-01-31.jsonl."""

    def names(self, prefix: str) -> Collection[str]:
        """Return the names that begin with a text."""
        ...

    def write(self, name: str, lines: Iterable[str]) -> None:
        """Write a file, in parts as the lines come; one that is there already stays as it is."""
        ...

    def lines(self, name: str) -> Iterator[str]:
        """Yield the lines of a file, read in parts."""
        ...


def newest_day(exports: Exports, fleet: str) -> date | None:
    """Return the last day that was exported of a fleet, None for none."""
    return max(map(day_of, exports.names(f"{fleet}/")), default=None)


def day_of(name: str) -> date:
    """Return the last day of an export."""
    return date.fromisoformat(name.rpartition("/")[2].removesuffix(".jsonl"))


class NoExports:
    """What an app without a container has: nothing is written, and nothing is there."""

    def names(self, prefix: str) -> Collection[str]:  # noqa: ARG002
        """Return nothing."""
        return ()

    def write(self, name: str, lines: Iterable[str]) -> None:
        """Write nothing."""

    def lines(self, name: str) -> Iterator[str]:  # noqa: ARG002
        """Yield nothing."""
        return iter(())
