"""A frozen dataclass and its copy are what ``dataclasses`` makes of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, ClassVar

import pytest

from shared import frozen
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
def test_what_is_more_than_its_fields_is_copied_too(value: Any) -> None:
    assert replace(value) == value


Kinds = tuple[type[Any], type[Any], type[Any], type[Any]]


def kinds(make: Callable[..., Any]) -> Kinds:
    """Return a class with fields of every sort, one below it, and two that compare in their own way."""

    @make(frozen=True)
    class Pool:
        limit: ClassVar[int] = 3
        name: str
        tags: list[str] = field(default_factory=list)
        secret: str = field(default="", repr=False)
        etag: str = field(default="", compare=False)
        of: str = field(default="x", kw_only=True)

        def __post_init__(self) -> None:
            if not self.name:
                raise ValueError("no name")

    @make(frozen=True)
    class Spot(Pool):
        price: float = 1.5

    @make(frozen=True)
    class Alike:  # noqa: PLW1641
        name: str

        def __eq__(self, other: object) -> bool:
            return True

        def __repr__(self) -> str:
            return "alike"

    @make(frozen=True, order=True)
    class Place:
        row: int
        column: int = 0

    return Pool, Spot, Alike, Place


def outcome(use: str, made: Kinds) -> str:
    known = {"dataclasses": dataclasses, **dict(zip(("pool", "spot", "alike", "place"), made, strict=True))}
    try:
        return str(eval(use, known))  # noqa: S307
    except (TypeError, ValueError) as error:
        return f"{type(error)}: {error}"


@pytest.mark.parametrize(
    "use",
    [
        'pool("a", ["b"], "c", "d", of="e")',
        'vars(pool("a"))',
        'vars(spot(name="a", price=2))',
        'pool("a").tags is pool("a").tags',
        'pool("a", [], "s", "1") == pool("a", [], "s", "2")',
        'pool("a") == pool("a", of="y")',
        'pool("a") == spot("a")',
        'pool("a").__eq__("a")',
        'hash(pool("a", (), "s", "1")) == hash(pool("a", (), "s", "2"))',
        'hash(pool("a"))',
        'repr(spot("a", secret="s"))',
        "pool()",
        'pool("")',
        'pool("a", [], "s", "1", "e")',
        'pool("a", size=3)',
        '(alike("a") == alike("b"), hash(alike("a")) == hash(alike("a")))',
        'repr(alike("a"))',
        "[given.name for given in dataclasses.fields(spot)]",
        'dataclasses.asdict(dataclasses.replace(spot("a"), price=3.0))',
        "spot.__match_args__",
        "[place(1) < place(1, 2), place(1) <= place(1), place(2) > place(3), place(2) >= place(3)]",
        "place(1) < 1",
    ],
)
def test_a_frozen_dataclass_does_what_that_of_the_standard_library_does(use: str) -> None:
    assert outcome(use, kinds(frozen.dataclass)) == outcome(use, kinds(dataclasses.dataclass))


@pytest.mark.parametrize(
    "change", [lambda pool: setattr(pool, "name", "b"), lambda pool: delattr(pool, "name")]
)
def test_nobody_changes_a_frozen_dataclass(change: Callable[[Any], None]) -> None:
    pool = kinds(frozen.dataclass)[0]("a")
    with pytest.raises(dataclasses.FrozenInstanceError, match="name"):
        change(pool)
    assert pool.name == "a"
