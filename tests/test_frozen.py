"""The copy of a frozen dataclass has the fields that ``dataclasses.replace`` gives it, and nothing else."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import pytest

from shared.cluster.job import new_job
from shared.cluster.recipes import Recipe
from shared.frozen import replace
from shared.plan.plan import Action, Item

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Place:
    name: str
    group: str = "default"

    @cached_property
    def text(self) -> str:
        return f"{self.group}/{self.name}"


@dataclass(frozen=True)
class Checked:
    name: str

    def __post_init__(self) -> None:
        assert self.name


@pytest.mark.parametrize("changes", [{}, {"name": "b"}, {"group": "other", "name": "c"}])
def test_a_copy_is_the_one_of_dataclasses(changes: dict[str, Any]) -> None:
    place = Place("a", "apps")
    assert replace(place, **changes) == dataclasses.replace(place, **changes)
    assert vars(replace(place, **changes)) == vars(dataclasses.replace(place, **changes))
    assert place == Place("a", "apps")


def test_a_copy_finds_its_cached_properties_again() -> None:
    place = Place("a")
    assert place.text == "default/a"
    copy = replace(place, name="b")
    assert "text" not in vars(copy)
    assert copy.text == "default/b"


def test_a_copy_of_a_job_is_frozen_too() -> None:
    job = replace(new_job(Recipe.PROVISION, now=NOW), sequence=2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        job.sequence = 3  # type: ignore[misc]


def test_a_field_that_does_not_exist_is_refused() -> None:
    unknown: dict[str, Any] = {"nmae": "b"}
    with pytest.raises(TypeError, match="nmae"):
        replace(Place("a"), **unknown)


@pytest.mark.parametrize("value", [Checked("a"), Item("a", Action.CREATE)])
def test_what_is_more_than_its_fields_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="use dataclasses"):
        replace(value)
