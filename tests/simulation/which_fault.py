"""Which fault finds each mutation: ``python -m tests.simulation.which_fault [words of names]``.

Prints a line of a table for each mutation: the first seed that finds it with its faults, and the first that
finds it in the same seeds, at least ``FEWEST``, while one of these faults is switched off. "-": none of them
does, so the mutation is not found without that fault. Returns 1 when a mutation is not found at all.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence

import pytest

from tests.simulation.all_mutations import ALL, MOST_SEEDS
from tests.simulation.mutations import Mutation

FEWEST = 20


def first_seed(mutation: Mutation, seeds: int, *, without: str = "") -> int | None:
    """Return the first seed in which a rule does not hold, None for none."""
    return next((seed for seed in range(seeds) if mutation.violated(seed, without=without)), None)


def line(mutation: Mutation) -> str:
    """Return the line of a mutation: name, faults, first seed, and the first seed without each fault."""
    faults = sorted(mutation.faults.split())
    with pytest.MonkeyPatch.context() as patch:
        mutation.remove(patch)
        found = first_seed(mutation, MOST_SEEDS)
        seeds = max(FEWEST, (found or 0) + 1)
        without = {fault: first_seed(mutation, seeds, without=fault) for fault in faults or ["all"]}
    shown = ", ".join(f"{fault}: {'-' if seed is None else seed}" for fault, seed in without.items())
    name = mutation.remove.__name__.replace("_", " ")
    return f"| {name} | {mutation.faults or 'any'} | {'not found' if found is None else found} | {shown} |"


def main(words: Sequence[str]) -> int:
    """Print the lines of the mutations whose names have one of the words, or of all."""
    logging.disable(logging.CRITICAL)
    lines = []
    for mutation in ALL:
        if not words or any(word in mutation.remove.__name__ for word in words):
            lines.append(line(mutation))
            print(lines[-1], flush=True)
    return int(any("not found" in output for output in lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
