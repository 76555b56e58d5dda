"""Those who act on all fleets, and check at the end, each from a random stream of their own."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Iterable

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
