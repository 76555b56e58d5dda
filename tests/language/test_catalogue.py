"""A catalogue of invalid manifests, each with all of its messages: catalogue.txt. Each rule has a case."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import pytest

from shared.language.resolve.rules.aks_rules import CLUSTER_RULES
from shared.language.resolve.rules.pool_rules import POOL_RULES
from tests.support.refused_specs import ANSWERS, API_SERVERS, LAUNCHES, problems_of, spec_of
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

    def with_messages(self, messages: tuple[str, ...]) -> str:
        """Return the block of the catalogue with these messages."""
        parts = (("@", (self.path,)), ("-", self.old), ("+", self.new), (">", messages))
        return "\n".join(f"{sign}{line}" for sign, lines in parts for line in lines)


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
    wrong = []
    for entry in CATALOGUE:
        files = {path: text.encode() for path, text in (GOOD | {entry.path: entry.text()}).items()}
        given = tuple(str(problem) for problem in resolved(files).problems)
        if given != entry.messages:
            wrong.append(entry.with_messages(given))
    if wrong:  # as blocks to paste: what pytest shows of a difference is cut
        pytest.fail("catalogue.txt should have these messages:\n\n" + "\n\n".join(wrong))


def test_every_rule_about_aks_is_broken_by_a_request() -> None:
    changes = [answer.spec for answer in ANSWERS if answer.rule]
    changes += [{"apiServerAccessProfile": access} for access, refused in API_SERVERS if refused]
    changes += [{"nodePools": [{"name": "apps", **pool}]} for pool, refused in LAUNCHES if refused]
    problems = (problems_of(spec_of(change)).values() for change in changes)
    messages = [*chain(*problems), *chain(*(entry.messages for entry in CATALOGUE))]
    of_rules = [*(rule.message for rule in CLUSTER_RULES), *(rule.message for rule in POOL_RULES)]
    unbroken = [message for message in of_rules if not any(map(pattern(message).search, messages))]
    assert unbroken == [], (
        "what Azure refuses of a new cluster belongs into refusals.yaml, with its source and a request that "
        "it takes; any other wrong manifest into catalogue.txt"
    )


def pattern(message: str) -> re.Pattern[str]:
    """Return what finds the message of a rule, whatever has taken the place of its braces."""
    return re.compile(".*".join(map(re.escape, re.split(r"\{[^{}]+\}", message))))
