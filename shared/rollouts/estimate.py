"""How long a rollout takes: by how long such changes took in this fleet, or by what is assumed until then.

Of each kind of change the fleet keeps the durations of its newest clusters: from the start of the job until
the cluster was verified. A rollout adds its own when it has completed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from shared.jobs.reporting.summary import ClusterSummary
from shared.rollouts.rollout import Rollout, State
from shared.rollouts.standing import Seen, known_in

Durations = Mapping[str, tuple[int, ...]]
"""Seconds by the kind of change, oldest first."""
KEPT = 50
"""So many durations of a kind are stored."""
ENOUGH = 5
"""With fewer durations of a kind, what is assumed counts."""
MINUTE = 60
ASSUMED: Mapping[str, tuple[int, int, int]] = {
    "versions": (15 * MINUTE, 30 * MINUTE, 90 * MINUTE),
    "nodePools": (5 * MINUTE, 15 * MINUTE, 45 * MINUTE),
    "any": (2 * MINUTE, 5 * MINUTE, 15 * MINUTE),
    "platform": (1 * MINUTE, 3 * MINUTE, 10 * MINUTE),
}
"""A short, a usual and a long change of one cluster, for a fleet that has changed too few."""


@dataclass(frozen=True)
class Work:
    """What is left of a group: how many clusters, how many of them at a time, and how long it is watched."""

    clusters: int
    at_a_time: int
    soak: timedelta = timedelta(0)


@dataclass(frozen=True)
class Estimate:
    """How long a rollout takes at best, usually and at worst, in seconds.

    ``samples`` is how many changes of the ``kind`` that comes from, 0 for what is assumed.
    """

    kind: str
    low: int
    likely: int
    high: int
    samples: int = 0


def estimate(kind: str, groups: Iterable[Work], durations: Durations) -> Estimate:
    """Return how long groups take, one after the other; nothing of approvals, windows and freezes."""
    known = sorted(durations.get(kind, ()))
    enough = len(known) >= ENOUGH
    each = _spread(known) if enough else ASSUMED.get(kind, ASSUMED["any"])
    rounds, soaked = 0, 0
    for group in groups:
        rounds += math.ceil(group.clusters / max(1, group.at_a_time))
        soaked += int(group.soak.total_seconds())
    low, likely, high = (rounds * seconds + soaked for seconds in each)
    return Estimate(kind, low, likely, high, len(known) if enough else 0)


def with_completed(durations: Durations, rollout: Rollout, seen: Seen) -> Durations:
    """Return the durations with those of a rollout that has completed, the newest of its kind.

    What an older rollout had started may be of another kind, and adds nothing.
    """
    if rollout.state is not State.COMPLETED or not rollout.kind:
        return durations
    members = ((each, known_in(seen, each.cluster)) for each in rollout.members if not each.at_once)
    took = [
        found.took
        for each, found in members
        if found is not None
        and found.took
        and found.uid == each.uid
        and found.generation == found.observed_generation == each.generation
        and _is_started_by(rollout, found)
    ]
    return {**durations, rollout.kind: (*durations.get(rollout.kind, ()), *took)[-KEPT:]}


def _is_started_by(rollout: Rollout, found: ClusterSummary) -> bool:
    ready, took = found.ready_since, timedelta(seconds=found.took)
    return ready is not None and ready - took >= rollout.began


def describe_estimate(found: Estimate) -> str:
    """Return an estimate as a sentence that says what it is based on."""
    low, likely, high = (span(seconds) for seconds in (found.low, found.likely, found.high))
    spread = f"about {likely}" if low == high else f"about {likely}, {low} to {high}"
    what = "other changes" if found.kind == "any" else f"changes of {found.kind}"
    if found.samples:
        basis = f"by the last {found.samples} {what} in this fleet"
    else:
        basis = f"assumed, because fewer than {ENOUGH} {what} have ended in this fleet"
    return f"{spread} ({basis}); approvals, gates, windows and freezes come on top"


def span(seconds: int) -> str:
    """Return a duration as text, in minutes, or in seconds below one."""
    if seconds < MINUTE:
        return f"{seconds}s"
    days, rest = divmod(round(seconds / MINUTE), 24 * 60)
    parts = ((days, "d"), (rest // 60, "h"), (rest % 60, "m"))
    return " ".join(f"{number}{unit}" for number, unit in parts if number)


def _spread(known: Sequence[int]) -> tuple[int, int, int]:
    """Return the tenth, the fiftieth and the ninetieth percentile of sorted seconds."""
    last = len(known) - 1
    low, likely, high = (known[round(last * share)] for share in (0.1, 0.5, 0.9))
    return low, likely, high
