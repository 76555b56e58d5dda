"""What an environment had and withdrew: automation never gives it back.

The planner notes with every commit which values the file of an environment and its clusters have. A value
that a commit takes away is withdrawn, until a commit gives it again, or a person promotes it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from shared.promotions.promoted_values import Value

KEPT = 100
"""So many values that an environment withdrew are remembered, and so many that it has."""


@dataclass(frozen=True)
class Withdrawal:
    """A value that a commit took from an environment, and when that was planned."""

    value: Value
    at: datetime


@dataclass(frozen=True)
class Had:
    """What an environment has as of the last plan: in its file and in its clusters, and what it withdrew."""

    environment: str
    file: tuple[Value, ...] = ()
    clusters: tuple[Value, ...] = ()
    withdrawn: tuple[Withdrawal, ...] = ()

    def withdrew(self, value: Value, lifted: datetime | None) -> bool:
        """Return whether automation may not give a value; a person ``lifted`` that for what was before."""
        return any(each.value == value and (lifted is None or each.at > lifted) for each in self.withdrawn)


def planned(
    before: Had | None, environment: str, file: Collection[Value], clusters: Collection[Value], at: datetime
) -> Had:
    """Return what an environment has after a plan, and what it withdrew with it or earlier."""
    now = Had(environment, _kept(file), _kept(clusters))
    if before is None:
        return now
    left = (set(before.file) - set(now.file)) | (set(before.clusters) - set(now.clusters))
    again = set(now.file) | (set(now.clusters) - set(before.clusters))
    known = [each for each in before.withdrawn if each.value not in left | again]
    added = [Withdrawal(value, at) for value in sorted(left - again)]
    return Had(environment, now.file, now.clusters, tuple((*known, *added)[-KEPT:]))


def _kept(values: Iterable[Value]) -> tuple[Value, ...]:
    return tuple(sorted(set(values))[:KEPT])
