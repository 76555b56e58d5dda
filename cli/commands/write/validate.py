"""``roadstead validate``: every problem of a fleet repository at once, with its file and line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from cli.errors import ExitCode
from cli.options import RepositoryPath, day
from cli.platform import Platform, platform_of
from cli.terminal.output import Output, console, echo, show
from cli.text import line
from cli.worktree import Worktree, open_worktree
from shared.azure.availability.announcements import AS_OF
from shared.azure.availability.retirements import retirement_warnings, stale
from shared.azure.drift.policy import exemption_warnings
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.language.resolve.problems import Problem, number_of
from shared.sentences import many

_MOST_NOTES = 10
"""How many notes are shown without ``--output wide``."""


class Format(StrEnum):
    """How to print problems: as every command, or as annotations of GitHub."""

    TABLE = Output.TABLE
    WIDE = Output.WIDE
    JSON = Output.JSON
    YAML = Output.YAML
    NAME = Output.NAME
    GITHUB = "github"


def validate(
    path: RepositoryPath = Path(),
    *,
    output: Annotated[
        Format,
        typer.Option(
            "--output",
            "-o",
            metavar="FORMAT",
            help="table, wide, json, yaml, name (of invalid clusters) or github (annotations).",
        ),
    ] = Format.TABLE,
    on: Annotated[
        str | None,
        typer.Option("--on", metavar="DAY", help="The day for which to warn (default: today, UTC)."),
    ] = None,
) -> None:
    """Check every manifest of a fleet repository, and what Flux applies from it. Needs no network.

    What Flux applies is built with kustomize or kubectl, where one of them is installed. A note is of what is
    right for some platforms, or what only a cluster can know; --output wide shows all of them.

    Warns of what AKS has retired, or will retire within 180 days, and of exemptions from drift that have
    ended, or will within 30 days; such a manifest is valid.
    """
    today = datetime.now(UTC).date() if on is None else day("--on", on)
    tree = open_worktree(path)
    desired = tree.resolve()
    retired, old = retirement_warnings(desired, desired.clusters, today), stale(today)
    ending = exemption_warnings(desired, desired.clusters, today)
    warnings = sorted([*retired, *ending])
    platform = platform_of(tree, desired)
    problems = (*desired.problems, *platform.problems)
    last = [Text(text, style="yellow") for text in (platform.note, old) if text]
    if output is Format.GITHUB:
        notes = sorted(platform.notes)[:_MOST_NOTES]
        found = (
            workflow_commands(problems, tree.shown),
            workflow_commands(warnings, tree.shown, "warning"),
            workflow_commands(notes, tree.shown, "notice"),
        )
        sys.stdout.writelines(f"{text}\n" for texts in found for text in texts)
        echo(Text(summary(desired, platform, warnings)), *last, soft_wrap=True)
    elif output in (Format.TABLE, Format.WIDE):
        print_problems(problems, tree, console())
        print_problems(warnings, tree, console(), before="warning: ")
        notes = sorted(platform.notes)
        shown = notes if output is Format.WIDE else notes[:_MOST_NOTES]
        print_problems(shown, tree, console(), before="note: ")
        if len(shown) < len(notes):
            echo(Text(f"... and {many(number_of(notes[_MOST_NOTES:]), 'more note')}; -o wide shows them"))
        echo(Text(summary(desired, platform, warnings)), *last, soft_wrap=True)
    else:
        view = _view(tree.fleet, desired, platform, warnings, old)
        names = (f"cluster/{name}" for name in sorted(desired.invalid))
        show(view, Output(output), table=lambda _: Text(), names=lambda: names)
    raise typer.Exit(ExitCode.FAILED if problems else ExitCode.OK)


def summary(desired: DesiredFleet, platform: Platform, warnings: Sequence[Problem] = ()) -> str:
    """Return the result in one line."""
    counted = (
        (len(warnings), "warning"),
        (number_of(platform.notes), "note"),
    )
    more = (many(count, what) for count, what in counted if count)
    return "; ".join((_result(desired, platform), *more))


def _result(desired: DesiredFleet, platform: Platform) -> str:
    valid, invalid = len(desired.clusters), len(desired.invalid)
    clusters = many(valid + invalid, "cluster")
    found = (*desired.problems, *platform.problems)
    if not found:
        return f"no problems: {clusters}, {many(len(desired.systems), 'system')}"
    files = len({problem.file for problem in found})
    problems = f"{many(number_of(found), 'problem')} in {many(files, 'file')}"
    if not invalid:
        good = "the manifest of every cluster" if platform.problems else "every cluster"
        return f"{problems}; {good} is valid" if valid else problems
    return f"{problems}: {invalid} of {clusters} {'is' if invalid == 1 else 'are'} invalid"


def print_problems(problems: Sequence[Problem], tree: Worktree, out: Console, before: str = "") -> None:
    """Print problems by file: a line each, or two where a terminal is too narrow for one.

    ``before`` stands before each message.
    """
    for file, found in groupby(sorted(problems), key=lambda problem: problem.file):
        for problem in found:
            _print(problem, line(tree.shown(file)), out, before)
        out.print()


def _print(problem: Problem, file: str, out: Console, before: str) -> None:
    place = Text(f"{file}:{problem.line}:{problem.column}", style="bold")
    field = Text(f"{problem.field}: " if problem.field else "", style="cyan")
    message = Text.assemble(field, (before, "yellow"), problem.message)
    whole = Text.assemble(place, " " if problem.field else ": ", message)
    if not out.is_terminal or len(whole) <= out.width:
        out.print(whole, soft_wrap=True)
    else:
        out.print(place, soft_wrap=True)
        out.print(Padding(message, (0, 0, 0, 4)))


def _view(
    fleet: str, desired: DesiredFleet, platform: Platform, warnings: Sequence[Problem], old: str
) -> dict[str, object]:
    problems = sorted((*desired.problems, *platform.problems))
    return {
        "fleet": fleet,
        "valid": not problems,
        "clusters": sorted(desired.clusters),
        "invalidClusters": sorted(desired.invalid),
        "problems": [vars(problem) for problem in problems],
        "warnings": [vars(warning) for warning in warnings],
        "retirementsOf": AS_OF.isoformat(),
        "platform": {
            "builtWith": platform.builder,
            "note": platform.note,
            "notes": [vars(note) for note in platform.notes],
        },
        "note": old,
    }


def workflow_commands(
    problems: Iterable[Problem], shown: Callable[[str], str], level: str = "error"
) -> Iterator[str]:
    """Yield a workflow command for each problem; ``level`` is error, warning or notice.

    It names a file by its path in the checked-out repository. Source: actions/toolkit docs/commands.md.
    """
    for problem in sorted(problems):
        place = f"file={_property(shown(problem.file))},line={problem.line},col={problem.column}"
        text = f"{problem.field}: {problem.message}" if problem.field else problem.message
        yield f"::{level} {place},title=Roadstead::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
