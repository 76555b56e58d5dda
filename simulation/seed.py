"""How one seed is lived through, and what came of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from simulation.simulation import Life


@dataclass(frozen=True)
class Result:
    """How a seed went: ``rule`` is "" when all rules held."""

    seed: int
    rule: str
    words: str
    seconds: float
    events: int
    faults: Counter[str]
    story: tuple[str, ...] = ()


def live_through(seed: int, *, only: frozenset[str] = frozenset(), verbose: bool = False) -> Result:
    """Live one seed through, to its end or the first rule that does not hold.

    ``only``: many faults, of these kinds alone.
    """
    life = Life(seed, only=only, verbose=verbose)
    rule = words = ""
    try:
        life.run()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        rule = str(getattr(error, "rule", "") or type(error).__name__)
        words = str(error)
        life.tell("FAILED: %s", words)
        if not hasattr(error, "rule") and verbose:
            raise
    seconds = (life.clock() - life.began).total_seconds()
    return Result(seed, rule, words, seconds, life.events, life.trouble.done, tuple(life.story))
