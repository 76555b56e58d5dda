"""People who upgrade the app: both versions run at once, then the newer one, and in some seeds back.

The newer version has other forms. The former one leaves what it cannot read until the newer one is back:
docs/how-to/upgrade-roadstead.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from localcloud.memory.memory_cloud import MemoryCloud
from shared.ports import Ports
from simulation.actors.kinds import VERSIONS
from simulation.actors.upkeep import ActorUpkeep, Surroundings
from simulation.newer_forms import known_body

BOTH_SECONDS = (30.0, 300.0, 3600.0)
"""How long an update of the instances takes."""
ALONE_SECONDS = (20.0, 300.0, 1800.0)
"""How long one version runs alone."""
WAYS_BACK = (0, 1, 1, 2)
FORMER, BOTH, NEWER = "former", "both", "newer"


class VersionUpkeep(ActorUpkeep):
    """They act on all fleets at once; ``acts`` counts the changes of what runs."""

    kind = VERSIONS

    def __init__(self, around: Surroundings) -> None:
        super().__init__(around)
        self._workers: Mapping[MemoryCloud, Mapping[str, Sequence[Ports]]] = {}
        self._newer: frozenset[int] = frozenset()

    def install(
        self,
        former: Mapping[MemoryCloud, Sequence[Ports]],
        newer: Mapping[MemoryCloud, Sequence[Ports]],
    ) -> None:
        """Let the instances of the former version run; ``newer`` are those of the other one."""
        self._workers = {
            cloud: {FORMER: former[cloud], BOTH: (*former[cloud], *newer[cloud]), NEWER: newer[cloud]}
            for cloud in former
        }
        self._newer = frozenset(id(ports.state) for apps in newer.values() for ports in apps)
        for cloud in former:
            cloud.reads = self._reads
        self._run(FORMER)

    def schedule(self, seconds: float) -> None:
        """Upgrade at some moment, and in some seeds go back, as often as they do, and upgrade again."""
        at = self._chance.uniform(0, seconds)
        ways = [NEWER]
        for _ in range(self._chance.choice(WAYS_BACK)):
            ways += [FORMER, NEWER]
        for version in ways:
            self._loop.schedule(at, partial(self._run, BOTH))
            at += self._chance.choice(BOTH_SECONDS)
            self._loop.schedule(at, partial(self._run, version))
            at += self._chance.choice(ALONE_SECONDS)

    def calm(self) -> None:
        """End the upgrade."""
        self._run(NEWER)

    def check(self) -> None:
        """Nothing: that everything converges is what the other rules say."""

    def _run(self, which: str) -> None:
        if self._loop.peaceful and which != NEWER:
            return
        self._loop.log("of the two versions, %s run", which)
        self.acts += 1
        for cloud, workers in self._workers.items():
            self._loop.workers[cloud] = workers[which]

    def _reads(self, body: bytes, ports: Ports) -> bytes:
        """Return what an instance reads of a message."""
        return known_body(body) if id(ports.state) in self._newer else body
