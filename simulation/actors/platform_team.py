"""People who change what Flux applies, several times a day: good, broken, back, and less than before."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from simulation.actors.kinds import PLATFORM
from simulation.actors.upkeep import ActorUpkeep
from simulation.event_loop import EventLoop
from simulation.operators import Operators
from simulation.platforms import CHANGED, EDITIONS, INVALID, LESS, UNAPPLIED, UNBUILT, USUAL, WHOLE

ACTS = (4, 10)
BURSTS, PUSHES, SECONDS_BETWEEN = (0, 2), (2, 4), (5, 150)
"""How often somebody merges several good commits, how many, and how soon after each other: within a soak."""
NEXT = (USUAL, CHANGED, *(WHOLE,) * 5, UNAPPLIED, UNBUILT, INVALID)
REVERTS, WITH_A_MANIFEST, APPROVES, REMOVES = 0.2, 0.3, 0.2, 0.3


class PlatformTeam(ActorUpkeep):
    """They act on all fleets; some of their commits change a manifest, too."""

    def __init__(self, seed: int, everybody: Iterable[Operators], loop: EventLoop) -> None:
        super().__init__(PLATFORM, seed, everybody, loop)

    def schedule(self, seconds: float) -> None:
        """Let them push at some moments of so many seconds."""
        for _ in range(self._chance.randint(*ACTS)):
            self._loop.schedule(self._chance.uniform(0, seconds), self._act)
        for _ in range(self._chance.randint(*BURSTS)):
            self._loop.schedule(self._chance.uniform(0, seconds), self.burst)

    def check(self) -> None:
        """Change the platform once more, without a fault."""
        for operators in self._everybody:
            self._push(operators, CHANGED if operators.now.platform == WHOLE else WHOLE)

    def _act(self) -> None:
        operators = self._chance.choice(self._everybody)
        if self._chance.random() < APPROVES:
            operators.approve()
        elif self._chance.random() < REVERTS and len(operators.history.head_line) > 1:
            self._push(operators, operators.history.desired(operators.history.head_before).platform)
        else:
            removes = self._chance.random() < REMOVES
            self._push(operators, self._chance.choice([*LESS] if removes else NEXT))

    def burst(self) -> None:
        """Merge several good commits into a fleet, faster than its stages soak."""
        operators, seconds = self._chance.choice(self._everybody), 0.0
        for edition in self._chance.sample(EDITIONS, self._chance.randint(*PUSHES)):
            self._loop.schedule(seconds, partial(self._push, operators, edition))
            seconds += self._chance.uniform(*SECONDS_BETWEEN)

    def _push(self, operators: Operators, platform: str) -> None:
        self.acts += 1
        desired = replace(operators.now, platform=platform)
        if desired.clusters and self._chance.random() < WITH_A_MANIFEST:
            cluster = self._chance.choice([*desired.clusters.values()])
            desired = desired.with_cluster(replace(cluster, tag=self._chance.choice("lmn")))
        self._loop.log("%s: the platform is %s", operators.fleet, platform)
        operators.push(desired)
