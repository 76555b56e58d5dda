"""A catalogue of invalid manifests, each with all of its messages: catalogue.txt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.resolved_fleets import GOOD, resolved


@dataclass(frozen=True)
class Entry:
    """An invalid manifest: lines of a valid file, the lines that replace them, and the messages."""

    path: str
    old: tuple[str, ...]
    new: tuple[str, ...]
    messages: tuple[str, ...]

    def text(self) -> str:
        """Return the whole file; ``*`` replaces all of it."""
        valid, new = GOOD[self.path], "".join(f"{line}\n" for line in self.new)
        if self.old == ("*",):
            return new
        old = "".join(f"{line}\n" for line in self.old)
        assert old in valid, f"{old!r} is not in {self.path}"
        return valid.replace(old, new, 1)


def catalogue() -> Iterator[Entry]:
    """Read the catalogue."""
    text = (Path(__file__).parent / "catalogue.txt").read_text()
    for block in text.split("\n\n")[1:]:
        lines = [(line[0], line[1:]) for line in block.splitlines()]
        parts = {sign: tuple(rest for first, rest in lines if first == sign) for sign in "@-+>"}
        yield Entry(parts["@"][0], parts["-"], parts["+"], parts[">"])


CATALOGUE = list(catalogue())


def test_the_catalogue_is_long_and_the_valid_fleet_is_valid() -> None:
    assert len(CATALOGUE) >= 120
    assert len({(entry.path, entry.old, entry.new) for entry in CATALOGUE}) == len(CATALOGUE)
    assert resolved({path: text.encode() for path, text in GOOD.items()}).problems == ()


def test_an_invalid_manifest_gives_exactly_these_messages() -> None:
    wrong = {}
    for number, entry in enumerate(CATALOGUE):
        files = {path: text.encode() for path, text in (GOOD | {entry.path: entry.text()}).items()}
        given = tuple(str(problem) for problem in resolved(files).problems)
        if given != entry.messages:
            wrong[f"{number}-{entry.path}"] = given
    assert wrong == {}
