"""What CONTRIBUTING.md names exists where it says, and a step is everywhere where it has to be."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.app.worker.steps.registry import FUNCTIONS
from shared.cluster.recipes import STEPS, Recipe, Step

ROOT = Path(__file__).parent.parent
GUIDE = (ROOT / "CONTRIBUTING.md").read_text()
CONCEPTS, ARCHITECTURE = "docs/concepts.md", "docs/architecture.md"
NAME_OF_CODE = re.compile(
    r"_?[A-Z]+(?:_[A-Z]+)+|_[A-Z]+|[A-Z]{4,}|[A-Z]\w*[a-z][A-Z]\w+|_?[a-z]+(?:_[a-z]+)+"
)
"""A constant, a class or a function, if a code span has nothing else."""
OF_NO_FILE = frozenset({"NAME"})


def items(page: str) -> Iterator[str]:
    """Yield the lines of tables, the list items and the paragraphs of a page, without its blocks of code."""
    text = re.sub(r"(?ms)^ *```.*?^ *```$", "", page)
    yield from re.split(r"\n(?=\|)|\n\s*(?=\d+\. |- )|\n\n", text)


def places(spans: list[str]) -> list[Path]:
    """Return the files and folders among code spans."""
    return [ROOT / span for span in spans if "/" in span and (ROOT / span).exists()]


def sources(place: Path) -> Iterator[Path]:
    """Yield a file, or the modules below a folder."""
    yield from place.rglob("*.py") if place.is_dir() else (place,)


def lost(item: str) -> Iterator[str]:
    """Yield what an item names and none of the files and folders that it names has."""
    spans: list[str] = re.findall(r"`([^`]+)`", " ".join(item.split()))
    named = places(spans)
    if not named:
        return
    files = [source for place in named for source in sources(place)]
    words = {word for file in files for word in re.findall(r"\w+", file.read_text())}
    for span in spans:
        beside = {file.name for source in files for file in source.parent.glob("*.py")}
        if re.fullmatch(r"[a-z_]+\.py", span) and span not in beside:
            yield f"{span} is not in {', '.join(place.relative_to(ROOT).as_posix() for place in named)}"
        if NAME_OF_CODE.fullmatch(span) and span not in words | OF_NO_FILE:
            yield f"{span} is not in {', '.join(place.relative_to(ROOT).as_posix() for place in named)}"


def test_what_the_guide_names_is_in_a_file_that_it_names_there() -> None:
    assert len([span for item in items(GUIDE) for span in places(re.findall(r"`([^`]+)`", item))]) > 50
    nowhere = [found for item in items(GUIDE) for found in lost(item)]
    assert nowhere == [], "\n".join(("CONTRIBUTING.md:", *nowhere))


def test_each_step_has_a_recipe_and_a_function() -> None:
    of_recipes = {step for steps in STEPS.values() for step in steps}
    assert set(Step) - of_recipes == set(), "shared/cluster/recipes.py: STEPS has the place of each"
    assert set(Step) - {*FUNCTIONS} == set(), "shared/app/worker/steps/registry.py: FUNCTIONS has each"


def test_each_step_of_a_cluster_is_in_the_table_of_the_concepts() -> None:
    page = (ROOT / CONCEPTS).read_text()
    lines = [
        f"| `{step}` | `{step.condition}` | {step.deadline / 60:g} min |" for step in STEPS[Recipe.PROVISION]
    ]
    missing = [line for line in lines if line not in page]
    assert missing == [], f"{CONCEPTS}: the table of conditions has no {', '.join(missing)}"
    assert "\n".join(lines) in page, f"{CONCEPTS}: the order is that of STEPS"


@pytest.mark.parametrize("recipe", list(Recipe))
def test_the_architecture_has_the_steps_of_each_recipe(recipe: Recipe) -> None:
    page = (ROOT / ARCHITECTURE).read_text()
    (shown,) = re.findall(rf"^\| {recipe} [^\n]*\| ([^|\n]+) \|$", page, re.MULTILINE)
    steps = [step.strip().lower() for step in re.sub(r" \([^)]*\)", "", shown).split(",")]
    assert steps == [step.replace("-", " ") for step in STEPS[recipe]], (
        f"{ARCHITECTURE}: the line of {recipe}"
    )
