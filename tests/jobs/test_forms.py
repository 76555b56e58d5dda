"""What an older version stored or sent is read as the present one; a newer one is refused."""

from __future__ import annotations

import pytest

from shared.jobs.forms import Json, NewerForm, Upgrades, present


def renamed(stored: Json) -> Json:
    return {"schema_version": 1, "name": stored["title"]}


def with_size(stored: Json) -> Json:
    return {**stored, "size": len(stored["name"])}


UPGRADES: Upgrades = {("Thing", 1): renamed, ("Thing", 2): with_size, ("Other", 1): dict}


@pytest.mark.parametrize(
    "stored",
    [
        {"schema_version": 1, "title": "ab"},
        {"schema_version": 2, "name": "ab"},
        {"schema_version": 3, "name": "ab", "size": 2},
    ],
    ids=lambda stored: f"version {stored['schema_version']}",
)
def test_each_version_becomes_the_present_one(stored: Json) -> None:
    assert present("Thing", 3, stored, UPGRADES) == {"schema_version": 3, "name": "ab", "size": 2}


def test_a_newer_version_is_refused() -> None:
    with pytest.raises(NewerForm, match="Thing has the form 4, and this app knows 3"):
        present("Thing", 3, {"schema_version": 4}, UPGRADES)


@pytest.mark.parametrize("version", [None, 0, -1, "1", True, 1.0])
def test_what_states_no_version_is_refused(version: object) -> None:
    with pytest.raises(ValueError, match="schema_version is missing, or is no version"):
        present("Thing", 3, {"schema_version": version}, UPGRADES)
