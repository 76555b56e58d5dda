"""Writes the seed that finds each mutation first: ``python -m tests.simulation.likely_seeds [words]``.

A change of the code gives seeds another meaning, so the file ages; then the tests of mutations take longer,
and nothing else. With words, only the mutations whose names have one of them are searched again. Returns 1
when one is not found.
"""

from __future__ import annotations

import json
import logging
import multiprocessing
import sys
from collections.abc import Sequence

import pytest

from tests.simulation.all_mutations import ALL, MOST_SEEDS
from tests.simulation.mutations import LIKELY_SEEDS, SEEDS_FILE


def first_seed(number: int) -> tuple[str, int | None]:
    """Return the name of a mutation, and the first seed that finds it by one of its rules, None for none."""
    logging.disable(logging.CRITICAL)
    mutation = ALL[number]
    with pytest.MonkeyPatch.context() as patch:
        mutation.remove(patch)
        found = (seed for seed in mutation.seeds(MOST_SEEDS) if mutation.violated(seed) in mutation.rules)
        return mutation.name, next(found, None)


def main(words: Sequence[str]) -> int:
    """Search the mutations, print what was found, and write the file."""
    known = {mutation.name for mutation in ALL}
    seeds = {name: seed for name, seed in LIKELY_SEEDS.items() if name in known}
    wanted = [
        n for n, mutation in enumerate(ALL) if not words or any(word in mutation.name for word in words)
    ]
    lost = False
    with multiprocessing.get_context("spawn").Pool() as pool:
        for name, seed in pool.imap_unordered(first_seed, wanted):
            print(f"{name}: {'not found' if seed is None else seed}", flush=True)
            lost = lost or seed is None
            if seed is not None:
                seeds[name] = seed
            SEEDS_FILE.write_text(json.dumps(dict(sorted(seeds.items())), indent=2) + "\n")
    return int(lost)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
