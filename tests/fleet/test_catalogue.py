"""A catalogue of invalid manifests, each with all of its messages: catalogue.txt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.resolved_fleets import GOOD, resolved


@dataclass(frozen=True)
class Row:
    """A mistake: lines of a file replaced by others, and what is told."""

    path: str
    out: tuple[str, ...]
    put: tuple[str, ...]
    told: tuple[str, ...]

    def text(self) -> str:
        good, put = GOOD[self.path], "".join(f"{line}\n" for line in self.put)
        if self.out == ("*",):
            return put
        out = "".join(f"{line}\n" for line in self.out)
        assert out in good, f"{out!r} is not in {self.path}"
        return good.replace(out, put, 1)


def catalogue() -> Iterator[Row]:
    """Read the catalogue."""
    text = (Path(__file__).parent / "catalogue.txt").read_text()
    for block in text.split("\n\n")[1:]:
        lines = [(line[0], line[1:]) for line in block.splitlines()]
        parts = {sign: tuple(rest for first, rest in lines if first == sign) for sign in "@-+>"}
        yield Row(parts["@"][0], parts["-"], parts["+"], parts[">"])


ROWS = list(catalogue())


def test_the_catalogue_is_long_and_the_valid_fleet_is_valid() -> None:
    assert len(ROWS) >= 120
    assert len({(row.path, row.out, row.put) for row in ROWS}) == len(ROWS)
    assert resolved({path: text.encode() for path, text in GOOD.items()}).problems == ()


@pytest.mark.parametrize("row", ROWS, ids=[f"{number}-{row.path}" for number, row in enumerate(ROWS)])
def test_an_invalid_manifest_gives_exactly_these_messages(row: Row) -> None:
    files = {path: text.encode() for path, text in (GOOD | {row.path: row.text()}).items()}
    assert tuple(str(problem) for problem in resolved(files).problems) == row.told
