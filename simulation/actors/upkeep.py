"""Those who act on all fleets, and check at the end, each from a random stream of their own."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from simulation.desired_state import DesiredCluster
from simulation.event_loop import EventLoop
from simulation.operators import Operators


class ActorUpkeep(ABC):
    """One of them; ``acts`` counts what was done."""

    def __init__(self, kind: str, seed: int, everybody: Iterable[Operators], loop: EventLoop) -> None:
        self._chance = random.Random(f"{seed} {kind}")  # noqa: S311
        self._everybody, self._loop = [*everybody], loop
        self.acts = 0

    @abstractmethod
    def schedule(self, seconds: float) -> None:
        """Let them act at some moments of so many seconds."""

    @abstractmethod
    def check(self) -> None:
        """Let them act once more when the faults have ended, and raise RuleViolated for what is not so."""


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
