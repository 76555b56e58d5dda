"""``roadstead validate``: every problem of a fleet repository at once, with its place."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from cli.annotations import commands, sarif
from cli.output import console, line, print_json
from cli.worktree import Worktree, open_worktree
from shared.fleet.resolve.desired_fleet import DesiredFleet
from shared.fleet.resolve.problems import Problem


class Format(StrEnum):
    """How to print problems."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    GITHUB = "github"


Repository = Annotated[Path, typer.Argument(help="The folder of the fleet repository.", metavar="PATH")]


def validate(
    path: Repository = Path(),
    *,
    output: Annotated[
        Format,
        typer.Option(
            "--output",
            "-o",
            help="text; json; sarif for code scanning; github for annotations in a workflow.",
        ),
    ] = Format.TEXT,
) -> None:
    """Check every manifest of a fleet repository, and tell all problems with their places."""
    tree = open_worktree(path)
    desired = tree.resolve()
    if output is Format.TEXT:
        show(desired.problems, tree, console())
        console().print(Text(summary(desired)), soft_wrap=True)
    elif output is Format.JSON:
        print_json(_view(tree.fleet, desired))
    elif output is Format.SARIF:
        print_json(sarif(desired.problems, tree.shown))
    else:
        sys.stdout.writelines(f"{text}\n" for text in commands(desired.problems, tree.shown))
        sys.stdout.write(f"{summary(desired)}\n")
    raise typer.Exit(1 if desired.problems else 0)


def summary(desired: DesiredFleet) -> str:
    """Return the result in one line."""
    valid, invalid = len(desired.clusters), len(desired.invalid)
    clusters = _count(valid + invalid, "cluster")
    if not desired.problems:
        return f"no problems: {clusters}, {_count(len(desired.systems), 'system')}"
    files = len({problem.file for problem in desired.problems})
    told = f"{_count(len(desired.problems), 'problem')} in {_count(files, 'file')}"
    return f"{told}: {invalid} of {clusters} cannot be used"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def show(problems: Sequence[Problem], tree: Worktree, out: Console) -> None:
    """Print problems by file; a line each, which a terminal shows as two where it is too narrow."""
    for file, found in groupby(sorted(problems), key=lambda problem: problem.file):
        for problem in found:
            _show(problem, line(tree.shown(file)), out)
        out.print()


def _show(problem: Problem, file: str, out: Console) -> None:
    place = Text(f"{file}:{problem.line}:{problem.column}", style="bold")
    field = Text(f"{problem.field}: " if problem.field else "", style="cyan")
    words = Text.assemble(field, problem.message)
    whole = Text.assemble(place, " " if problem.field else ": ", words)
    if not out.is_terminal or len(whole) <= out.width:
        out.print(whole, soft_wrap=True)
    else:
        out.print(place, soft_wrap=True)
        out.print(Padding(words, (0, 0, 0, 4)))


def _view(fleet: str, desired: DesiredFleet) -> dict[str, object]:
    return {
        "fleet": fleet,
        "valid": not desired.problems,
        "clusters": sorted(desired.clusters),
        "invalidClusters": sorted(desired.invalid),
        "problems": [vars(problem) for problem in sorted(desired.problems)],
    }
