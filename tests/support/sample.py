"""The seed of a run of the tests, and the samples of what takes long that it draws.

The commit decides the seed: an unchanged commit tests the same, and the next one other cases. ``make test``
prints it, ``make test SEED=N`` repeats it, and ``make deep`` leaves nothing out.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
DEEP = os.environ.get("DEEP") == "yes"
"""Whether every case runs."""


def _git(*arguments: str) -> str:
    """Return what git says of the folder, "" without a repository."""
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _of_commit() -> int:
    """Return the seed of the commit that is checked out, 0 where that is not known."""
    return int(_git("rev-parse", "--verify", "--quiet", "HEAD")[:7] or "0", 16)


SEED = int(os.environ.get("SEED") or _of_commit())


def sample(name: str, cases: Iterable[T], most: int) -> list[T]:
    """Return some of the cases in their order, all in a deep run; the samples of different names differ."""
    known = [*cases]
    return known if DEEP else drawn(f"{SEED} {name}", known, most)


def examples(most: int) -> int:
    """Return how many examples Hypothesis tries: so many in a deep run, and a quarter of them otherwise."""
    return most if DEEP else max(most // 4, 8)


def drawn(seed: str, cases: Sequence[T], most: int) -> list[T]:
    """Return at most so many of the cases, which the seed decides, in their order."""
    numbers = random.Random(seed).sample(range(len(cases)), min(most, len(cases)))
    return [cases[number] for number in sorted(numbers)]
