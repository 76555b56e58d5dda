"""The problems of a manifest, each with its place and a way to correct it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from itertools import groupby, islice
from operator import attrgetter
from typing import TypeVar

from shared.frozen import dataclass, replace
from shared.json_tree import path_text
from shared.language.model.base import shown
from shared.language.yaml.nodes import Mark, Node, by_name
from shared.masking import cut, without_secrets

Path = tuple[str | int, ...]
T = TypeVar("T")
SHOWN_OF_FILE = 100
"""How many problems of one file are described; the others are counted."""
SHOWN_OF_PLAN = 1_000
"""How many problems a plan lists."""
CANDIDATES = 200
"""Among how many names the one that was meant is searched."""
MAX_PATH = 400


@dataclass(frozen=True, order=True)
class Problem:
    """One problem: ``file:line:column field: message``.

    ``more`` is how many other problems it stands for, which are not described; 0 for a problem itself.
    """

    file: str
    line: int
    column: int
    field: str
    message: str
    more: int = 0

    def __str__(self) -> str:
        field = f" {self.field}" if self.field else ""
        return f"{self.file}:{self.line}:{self.column}{field}: {self.message}"


def printable(text: str, limit: int) -> str:
    """Return the name of a file or folder as one line without control characters, which are escaped."""
    safe = without_secrets(text, limit)
    if not safe.isprintable():
        safe = "".join(
            letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in safe
        )
    return cut(safe, limit, "...")


def problem_at(mark: Mark, field: str, message: str) -> Problem:
    """Return a problem at a place."""
    file = printable(mark.file, MAX_PATH)
    return Problem(file, mark.line, mark.column, shown(field, 200), shown(message, 1000))


def described(places: Iterable[tuple[Mark, T]], describe: Callable[[Mark, T], Problem]) -> list[Problem]:
    """Return the problems at these places: the first ones of each file described, the others counted."""
    files: dict[str, list[tuple[Mark, T]]] = {}
    for mark, what in places:
        files.setdefault(mark.file, []).append((mark, what))
    problems: list[Problem] = []
    for found in files.values():
        found.sort(key=lambda entry: (entry[0].line, entry[0].column))
        problems += [describe(mark, what) for mark, what in found[:SHOWN_OF_FILE]]
        if len(found) > SHOWN_OF_FILE:
            problems.append(_more(problem_at(found[SHOWN_OF_FILE][0], "", ""), len(found) - SHOWN_OF_FILE))
    return sorted(problems)


def limited(problems: Iterable[Problem], noun: str = "problem") -> tuple[Problem, ...]:
    """Return each problem once, at most ``SHOWN_OF_FILE`` of a file, with the number of the others."""
    kept: list[Problem] = []
    for _, group in groupby(sorted({*problems}), attrgetter("file")):
        found = list(group)
        whole = [problem for problem in found if not problem.more]
        hidden = [*whole[SHOWN_OF_FILE:], *(problem for problem in found if problem.more)]
        kept += whole[:SHOWN_OF_FILE]
        if hidden:
            kept.append(_more(min(hidden), sum(problem.more or 1 for problem in hidden), noun))
    return tuple(kept)


def limited_plan(problems: Iterable[Problem], *, first: Callable[[Problem], bool]) -> tuple[Problem, ...]:
    """Return at most ``SHOWN_OF_PLAN`` problems, with the number of the others.

    Every file has its first problem before another has its second; of these, files that are ``first`` come
    first. So one file cannot hide the problems of the others.
    """
    files = [list(group) for _, group in groupby(sorted(problems), attrgetter("file"))]
    ranked = sorted(
        (rank, not first(problem), problem) for found in files for rank, problem in enumerate(found)
    )
    if len(ranked) <= SHOWN_OF_PLAN:
        return tuple(sorted(problem for _, _, problem in ranked))
    kept = sorted(problem for _, _, problem in ranked[:SHOWN_OF_PLAN])
    hidden = [problem for _, _, problem in ranked[SHOWN_OF_PLAN:]]
    count = number_of(hidden)
    message = f"... and {count:,} more problem{'s' * (count > 1)} of this plan; correct those above first"
    return (*kept, replace(hidden[0], field="", message=message, more=count))


def number_of(problems: Iterable[Problem]) -> int:
    """Return how many problems these are, those that are only counted included."""
    return sum(problem.more or 1 for problem in problems)


def _more(first: Problem, count: int, noun: str = "problem") -> Problem:
    message = f"... and {count:,} more {noun}{'s' * (count > 1)} in this file; correct those above first"
    return replace(first, field="", message=message, more=count)


def problem_in(root: Node, path: Path, message: str) -> Problem:
    """Return a problem with a value of a merged manifest.

    A value from a shared file may be invalid only together with the manifest's own fields. The problem then
    has the place of these, because the shared file is valid by itself.
    """
    place = above = root
    for step in path:
        below = place.child(step)
        if below is None:
            break
        place, above = below, place
    field, own = field_of(path, root), root.mark.file
    shared = place.mark.file != own and above.mark.file == own and not isinstance(place.value, dict | tuple)
    if shared:
        return problem_at(above.mark, field, f"{message} (from {place.mark.file}:{place.mark.line})")
    return problem_at(place.mark, field, message)


def field_of(path: Path, root: Node) -> str:
    """Return a path as a message shows it: items of a list by name where all names are unique."""
    steps: list[str | int] = []
    node: Node | None = root
    for step in path:
        item = node.child(step) if node else None
        named = node is not None and item is not None and bool(by_name(node))
        steps.append(f"[{item.name}]" if named and item else step)
        node = item
    return path_text(tuple(steps))


def nearest(name: str, fields: Iterable[str]) -> str:
    """Return the name that was probably meant, "" when none is similar."""
    fields = list(fields)
    same = next((field for field in fields if field.lower() == name.lower()), "")
    if len(fields) > CANDIDATES:
        alike = (field for field in fields if field[:1] == name[:1] and abs(len(field) - len(name)) <= 2)
        fields = list(islice(alike, CANDIDATES))
    return same or next(iter(difflib.get_close_matches(name, fields, n=1, cutoff=0.6)), "")
