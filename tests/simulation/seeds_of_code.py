"""The seeds of the test command: a range that moves with the code, so that each change meets new ones."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
CODE = ("shared", "simulation", "localcloud")
"""What decides what a seed means."""
RANGE = 10**9
"""The first seed is below: what ``make simulate`` runs has numbers that can be typed."""


def sources() -> list[Path]:
    """Return the files of the code in the order of their paths."""
    return sorted(path for folder in CODE for path in (ROOT / folder).rglob("*.py"))


def first_seed(files: Iterable[Path]) -> int:
    """Return where the range of this code begins: the same for the same files, in every process."""
    digest = sha256()
    for file in files:
        digest.update(file.relative_to(ROOT).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return int.from_bytes(digest.digest()[:8], "big") % RANGE
