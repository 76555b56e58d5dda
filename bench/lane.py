"""A small change while a large one runs: ``python -m bench.lane [CLUSTERS] [HOSTS] [small|large]``.

Virtual time on the local cloud in memory, with Azure's documented limits, and all clusters in one
subscription. Each host serves as many sessions of its queue at a time as host.json says, and a message keeps
its session for as long as its calls usually take. Five clusters are changed on a quiet fleet, and then again
and again while the other clusters are created, or while all of them are changed with ``large``.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count

from bench.hosts import SESSIONS, Hosts
from localcloud.azure.world.arm_resources import Timings
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.intake.accept import accept
from shared.app.intake.webhook import Push
from shared.cluster.pace import SMALL_CHANGE
from shared.ports import FleetConfig, Timing
from tests.support import fleet_files

CONFIG = FleetConfig("example", "example/fleet", timing=Timing(lease_seconds=90, poll_seconds=20))
TIMINGS = Timings(create_cluster=300.0)
SMALL = 5
FIRST, EVERY = 60.0, 240.0
"""Seconds from the large push to the first small one, and from each small one to the next, at the least."""


@dataclass(frozen=True)
class Change:
    """One small change: when it was pushed, and seconds until it was planned and until all were Ready.

    ``waits`` are those of the cluster that waited longest.
    """

    at: float
    planned: float
    ready: float
    waits: Counter[str]

    def __str__(self) -> str:
        waits = ", ".join(f"{seconds} s for {what}" for what, seconds in self.waits.most_common() if seconds)
        return f"{self.planned:8.0f} {self.ready:8.0f}   {waits and 'one waited ' + waits}"


@dataclass
class Lane:
    """The figures: the quiet change, those meanwhile, and how long the large change took."""

    quiet: Change
    meanwhile: list[Change] = field(default_factory=list)
    seconds: float = 0.0
    refused: Counter[str] = field(default_factory=Counter)

    @property
    def worst(self) -> float:
        """How often the quiet time the slowest change took."""
        return max(change.ready for change in self.meanwhile) / self.quiet.ready


class Fleet:
    """A fleet whose clusters are pushed and awaited."""

    def __init__(self, clusters: int, hosts: int, sessions: int, small_change: int) -> None:
        config = replace(CONFIG, limits=replace(CONFIG.limits, small_change=small_change))
        self.cloud = MemoryCloud(throttle=True, config=config, lock_seconds=3600)
        self.cloud.azure.engine.timings = TIMINGS
        self.hosts, self._started = Hosts(self.cloud, hosts, sessions), self.cloud.clock()
        self.small = [f"small-{number}" for number in range(SMALL)]
        self.large = [f"large-{number:05}" for number in range(clusters)]
        self.files = fleet_files.all_at_once(fleet_files.fleet(*self.small))

    @property
    def now(self) -> float:
        """Seconds since the beginning."""
        return (self.cloud.clock() - self._started).total_seconds()

    def push(self, names: list[str], size: int) -> None:
        """Push clusters with pools of so many nodes."""
        changed = {f"clusters/{name}/cluster.yaml": fleet_files.cluster(name, count=size) for name in names}
        self.files = self.files | changed
        commit = self.cloud.repository.push(self.files)
        accept(Push(commit, f"push-{commit}", commit), self.cloud.ports)

    def generations(self, names: list[str]) -> list[tuple[int, int]]:
        """Return the accepted and the verified generation of each."""
        found = (self.cloud.state.cluster(name) for name in names)
        return [(record.generation, record.observed_generation) if record else (0, 0) for record in found]

    def settled(self, names: list[str]) -> bool:
        """Whether all are at their newest generation."""
        return all(accepted == verified > 0 for accepted, verified in self.generations(names))

    def change(self, size: int) -> Change:
        """Change the five, and wait for them."""
        before, at = self.generations(self.small), self.now
        self.hosts.waits.seconds.clear()
        self.push(self.small, size)
        self.hosts.run(
            lambda: all(
                new[0] > old[0] for new, old in zip(self.generations(self.small), before, strict=True)
            )
        )
        planned = self.now - at
        self.hosts.run(lambda: self.settled(self.small))
        return Change(at, planned, self.now - at, self.hosts.waits.longest(self.small))


def measure(
    clusters: int,
    hosts: int,
    *,
    change_all: bool = False,
    sessions: int = SESSIONS,
    small_change: int = SMALL_CHANGE,
) -> Lane:
    """Measure small changes on a quiet fleet and next to a large one.

    Each host serves so many sessions of ``jobs``; ``small_change`` is how many clusters a small change has.
    """
    fleet, size = Fleet(clusters, hosts, sessions, small_change), count(2)
    fleet.push(fleet.small, 1)
    if change_all:
        fleet.push(fleet.large, 1)
    everything = fleet.small + (fleet.large if change_all else [])
    fleet.hosts.run(lambda: fleet.settled(everything), check=60)
    fleet.hosts.run(_at(fleet, fleet.now + 600))
    found = Lane(fleet.change(next(size)))
    fleet.hosts.run(_at(fleet, fleet.now + 600))
    started, refused = fleet.now, len(fleet.cloud.azure.limits.refusals)
    fleet.push(fleet.large, next(size))
    fleet.hosts.run(_at(fleet, started + FIRST))
    while not fleet.settled(fleet.large):
        change = fleet.change(next(size))
        found.meanwhile.append(replace(change, at=change.at - started))
        fleet.hosts.run(_at(fleet, change.at + EVERY, fleet.large))
    found.seconds = fleet.now - started
    found.refused = Counter(limit for limit, _ in fleet.cloud.azure.limits.refusals[refused:])
    return found


def _at(fleet: Fleet, moment: float, clusters: list[str] | None = None) -> Callable[[], bool]:
    """Return whether a moment has come, or some clusters are settled."""
    return lambda: fleet.now >= moment or bool(clusters and fleet.settled(clusters))


def main(clusters: int, hosts: int, *, change_all: bool) -> None:
    """Print the figures."""
    started = time.monotonic()
    found = measure(clusters, hosts, change_all=change_all)
    what = "changed" if change_all else "created"
    print(f"{clusters} clusters {what} by {hosts} hosts of {SESSIONS} sessions, {SMALL} changed meanwhile")
    print(" pushed at  planned  Ready after, in seconds")
    print(f"   quiet {found.quiet}")
    for change in found.meanwhile:
        print(f"{change.at:8.0f} {change}")
    print(f"the slowest took {found.worst:.1f} times the quiet time")
    print(f"the large change took {found.seconds:.0f} s; refusals of Azure: {dict(found.refused)}")
    print(f"real time {time.monotonic() - started:.1f} s")


if __name__ == "__main__":
    words = [text for text in sys.argv[1:] if not text.isdigit()]
    given = [int(text) for text in sys.argv[1:] if text.isdigit()]
    main(*(given + [1000, 4][len(given) :]), change_all="large" in words)
