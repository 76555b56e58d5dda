"""The accounts of the local GitHub, and the teams of its organizations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from shared.ports.git_host import Addressee


@dataclass(frozen=True)
class Person:
    """An account; GitHub shows it as the author of a commit with one of its addresses."""

    id: int
    login: str
    addresses: frozenset[str] = frozenset()


OPERATOR = Person(1, "operator", frozenset({"operator@example.invalid", "operator@example.com"}))
"""Whose token everything but the reviews is done with."""
REVIEWER = Person(3, "reviewer", frozenset({"reviewer@example.com"}))
"""The member of the team "approvers" of every organization."""
CONTRIBUTOR = Person(4, "contributor", frozenset({"contributor@example.com"}))
"""Somebody in no team."""
PEOPLE: Mapping[str, Person] = {person.login: person for person in (OPERATOR, REVIEWER, CONTRIBUTOR)}


def account_of(address: str) -> Person | None:
    """Return the account with an e-mail address, None where GitHub knows none."""
    return next((person for person in PEOPLE.values() if address.lower() in person.addresses), None)


_BOT = re.compile(r"noreply@github\.com|.*(\[bot\]|\+copilot)@users\.noreply\.github\.com")
_HIDDEN = re.compile(r"(\d+)\+[^@]+@users\.noreply\.github\.com", re.IGNORECASE)
"""docs.github.com, "Setting your commit email address"."""


def account_behind(address: str) -> int | None:
    """Return the id of the account that hides behind an address; None for any other address."""
    found = _HIDDEN.fullmatch(address)
    return int(found[1]) if found else None


def addressee(address: str) -> Addressee:
    """Return whose an address in lower case is: GitHub's, or an app's, hides a person, or is a person's."""
    if _BOT.fullmatch(address):
        return Addressee.NOBODY
    return Addressee.HIDDEN if address.endswith("@users.noreply.github.com") else Addressee.PERSON


class Teams:
    """The members of each team or group "owner/slug", by login; every organization has "approvers"."""

    def __init__(self) -> None:
        self.members: dict[str, tuple[str, ...]] = {}

    def of(self, team: str) -> tuple[Person, ...] | None:
        """Return the members of a team, None where there is none; the case of its name does not matter."""
        default = (REVIEWER.login,) if team.lower().endswith("/approvers") else None
        logins = self.members.get(team.lower(), default)
        return None if logins is None else tuple(PEOPLE[login] for login in logins)
