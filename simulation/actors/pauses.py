"""Operators who pause the fleet for a while, and resume it, or let the pause end by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from functools import partial

from shared.app.api.acts import fleet
from shared.app.http_result import HttpResult
from shared.ports import Ports
from simulation.actors.kinds import PAUSES
from simulation.actors.upkeep import ActorUpkeep, Surroundings
from simulation.operators import Operators

ACTS = (1, 3)
LASTS = (20.0, 120.0, 900.0, 4000.0)
BY_ITSELF = 0.5
FOUND = timedelta(minutes=15)
"""By then after the end of a pause a timer, which runs every five minutes, has found what is overdue."""


class Pauses(ActorUpkeep):
    """They act on every fleet; ``acts`` counts the pauses."""

    kind = PAUSES

    def __init__(self, around: Surroundings) -> None:
        super().__init__(around)
        self._last = Counter[Operators]()

    def schedule(self, seconds: float) -> None:
        """Let them pause a fleet at some moments of so many seconds."""
        for _ in range(self._chance.randint(*ACTS)):
            operators, lasts = self._chance.choice(self._everybody), self._chance.choice(LASTS)
            by_itself = self._chance.random() < BY_ITSELF
            begin = partial(self._pause, operators, lasts if by_itself else None)
            at = self._chance.uniform(0, seconds)
            self._loop.schedule(at, begin)
            self._loop.schedule(at + lasts, partial(self._resume, operators))

    def check(self) -> None:
        """Resume what is paused; what waited has to end, or the seed never does."""
        for operators in self._everybody:
            self._resume(operators)

    def _pause(self, operators: Operators, lasts: float | None) -> None:
        now = self._loop.clock()
        until = now + timedelta(seconds=lasts) if lasts is not None else None
        self.acts += 1
        act = self._begin(operators)
        operators.history.goes_on_at = now + timedelta(seconds=max(LASTS)) + FOUND
        if self._call(operators, lambda ports: fleet.pause("a test", until, "ann", ports)):
            if self._last[operators] == act:  # an answer that took long may come after that to a later act
                operators.history.paused = self._loop.clock(), until
            self._loop.log("%s: paused until %s", operators.fleet, until or "a resume")

    def _resume(self, operators: Operators) -> None:
        """End a pause, as a person does who reads that it lasts."""
        self._begin(operators)
        if self._call(operators, lambda ports: fleet.resume("ann", ports)):
            operators.history.goes_on_at = self._loop.clock() + FOUND

    def _begin(self, operators: Operators) -> int:
        """Return the number of an act; until it is answered, nobody knows whether the fleet is paused."""
        self._last[operators] += 1
        operators.history.paused = None
        return self._last[operators]

    def _call(self, operators: Operators, act: Callable[[Ports], HttpResult]) -> bool:
        answers = list[HttpResult]()

        def call(ports: Ports) -> None:
            answers.append(act(ports))

        self._loop.run_function(operators.cloud, call)
        return any(answer.status == 200 for answer in answers)
