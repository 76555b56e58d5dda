"""Those who act on all fleets, and check at the end, each from a random stream of their own."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from simulation.desired_state import DesiredCluster, RequestedFleet
from simulation.event_loop import EventLoop
from simulation.history import AzureHistory
from simulation.operators import Operators
from simulation.oracle import Oracle

LOOK_SECONDS, LOOKS_ON = 10.0, 600
"""How often those look at clusters who look all the time, and for how long after the last act."""


@dataclass(frozen=True)
class Surroundings:
    """What everybody has who acts: the operators of all fleets, what really exists, and what has happened.

    ``replaced`` counts how often the tables of a fleet were lost.
    """

    seed: int
    everybody: Sequence[Operators]
    loop: EventLoop
    oracle: Oracle
    history: AzureHistory
    replaced: Mapping[str, int]


class ActorUpkeep:
    """One of them; ``acts`` counts what was done."""

    kind: ClassVar[str]
    in_one_fleet: ClassVar[bool] = False
    """Whether they act only where there is one fleet."""

    def __init__(self, around: Surroundings) -> None:
        self._around, self._chance = around, random.Random(f"{around.seed} {self.kind}")  # noqa: S311
        self._everybody, self._loop = [*around.everybody], around.loop
        self._operators = self._everybody[0]
        self._oracle, self._history, self._replaced = around.oracle, around.history, around.replaced
        self.acts = 0

    def prepared(self, _operators: Operators, wanted: RequestedFleet) -> RequestedFleet:
        """Return the first commit of a fleet as they need it."""
        return wanted

    def schedule(self, seconds: float) -> None:
        """Let them act at some moments of so many seconds."""

    def calm(self) -> None:
        """End what only they can end, when the faults have ended."""

    def check(self) -> None:
        """Let them act once more when the faults have ended, and raise RuleViolated for what is not so.

        Those without a check leave it to the rules of the end: operators approve before it.
        """

    def _stream(self, what: str) -> random.Random:
        return random.Random(f"{self._around.seed} {what}")  # noqa: S311

    def _at_times(self, often: tuple[int, int], seconds: float, *acts: Callable[[], None]) -> None:
        """Let each of these acts happen some times in so many seconds."""
        for _ in range(self._chance.randint(*often)):
            for act in acts:
                self._loop.schedule(self._chance.uniform(0, seconds), act)

    def _in_fleets(self, often: tuple[int, int], seconds: float, act: Callable[[Operators], None]) -> None:
        """Let an act happen some times in so many seconds, each in one of the fleets."""
        for _ in range(self._chance.randint(*often)):
            in_fleet = partial(act, self._chance.choice(self._everybody))
            self._loop.schedule(self._chance.uniform(0, seconds), in_fleet)

    def _all_the_time(self, look: Callable[[], None], seconds: float) -> None:
        """Let clusters be looked at for so many seconds, and some more."""
        at = 0.0
        while at < seconds + LOOKS_ON:
            self._loop.schedule(at, look)
            at += LOOK_SECONDS


class EnvironmentActor(ActorUpkeep):
    """One of those who act on fleets whose environments share values; they begin with all clusters."""

    fewest_acts, most_acts = 4, 10

    def new_cluster(self, name: str) -> DesiredCluster:
        """Return a cluster of an environment."""
        return DesiredCluster(name)

    def schedule_acts(self, acts: Sequence[Callable[[Operators], None]], seconds: float) -> None:
        """Let there be more clusters at first, and let them act at some moments of so many seconds."""
        for operators in self._everybody:
            self._loop.schedule(2, partial(self._add, operators))
        for _ in range(self._chance.randint(self.fewest_acts, self.most_acts)):
            later = partial(self._act, self._chance.choice(acts), self._chance.choice(self._everybody))
            self._loop.schedule(self._chance.uniform(0, max(seconds, 900.0)), later)

    def _act(self, act: Callable[[Operators], None], operators: Operators) -> None:
        if not self._loop.peaceful and operators.now.environments:
            self.acts += 1
            act(operators)

    def _add(self, operators: Operators) -> None:
        desired = operators.now
        for name in operators.names:
            if name not in desired.clusters:
                desired = desired.with_cluster(self.new_cluster(name))
        operators.push(desired)
