"""What an older version stored or sent is read as the present one; a newer one is refused."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from shared.cluster.forms import VERSION, Json, NewerForm, NewerText, StoredText, Upgrades, WrongText, present


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


@dataclass(frozen=True)
class Thing:
    """The third version of a form."""

    name: str
    size: int


@dataclass(frozen=True)
class Older:
    """The first version of the same form."""

    title: str


def test_an_instance_of_the_newer_version_reads_what_an_older_one_stored_and_writes_its_own_form() -> None:
    older, newer = StoredText[Older](Older), StoredText[Thing](Thing, 3, UPGRADES)
    stored = older.write(Older("ab"))
    assert json.loads(stored) == {"schema_version": 1, "title": "ab"}
    assert newer.read(stored) == Thing("ab", 2)
    again = newer.write(Thing("ab", 2))
    assert json.loads(again) == {"schema_version": 3, "name": "ab", "size": 2}
    assert newer.read(again) == Thing("ab", 2)
    with pytest.raises(NewerText, match="Older has the form 3, and this app knows 1: a newer app handles it"):
        older.read(again)


@pytest.mark.parametrize("values", [{}, {"schema_version": "9"}, {"a": "b"}])
def test_a_text_of_any_names_keeps_them(values: dict[str, str]) -> None:
    text = StoredText[dict[str, str]](dict[str, str])
    if VERSION not in values:
        assert json.loads(text.write(values)) == {VERSION: 1, **values}
    assert text.read(text.write(values)) == values


@pytest.mark.parametrize("text", ["{}", '{"title": "ab"}', '{"schema_version": "1", "title": "ab"}'])
def test_a_text_without_a_version_is_wrong(text: str) -> None:
    with pytest.raises(WrongText, match="schema_version is missing, or is no version"):
        StoredText[Older](Older).read(text)
