"""Printing in the formats of ``--output``: styled and wrapped on a terminal, plain whole lines elsewhere."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.errors import CommandError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

UNWRAPPED = 100_000
"""Columns of what is no terminal: more than any line has."""


class Output(StrEnum):
    """The formats of every command that lists or shows, as in kubectl."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


OutputOption = Annotated[
    Output,
    typer.Option("--output", "-o", metavar="FORMAT", help="table, wide (more columns), json, yaml or name."),
]


def console() -> Console:
    """Return the console of standard output. Nothing is markup: most texts are from elsewhere."""
    from rich.console import Console

    out = Console(highlight=False, markup=False, emoji=False)
    if not out.is_terminal:
        out.width = UNWRAPPED
    return out


def echo(*parts: RenderableType, soft_wrap: bool = False) -> None:
    """Print for a person; a pipe gets lines without the spaces that align them."""
    out = console()
    if out.is_terminal:
        for part in parts:
            out.print(part, soft_wrap=soft_wrap, crop=False)
        return
    with out.capture() as captured:
        for part in parts:
            out.print(part, soft_wrap=soft_wrap, crop=False)
    sys.stdout.writelines(f"{text.rstrip()}\n" for text in captured.get().splitlines())


def show(
    view: Any, output: Output, *, table: Callable[[bool], RenderableType], names: Callable[[], Iterable[str]]
) -> None:
    """Print the view of a command; ``table`` returns it for a person, wide or not."""
    if output is Output.JSON:
        print_json(view)
    elif output is Output.YAML:
        print_yaml(view)
    elif output is Output.NAME:
        sys.stdout.writelines(f"{name}\n" for name in names())
    else:
        echo(table(output is Output.WIDE))


def print_json(value: Any) -> None:
    """Print JSON: indented on a terminal, else on one line."""
    sys.stdout.write(json.dumps(value, indent=2 if sys.stdout.isatty() else None) + "\n")


def print_yaml(value: Any) -> None:
    """Print a YAML document."""
    import yaml

    sys.stdout.write("---\n")
    yaml.safe_dump(value, sys.stdout, sort_keys=False, allow_unicode=True, width=UNWRAPPED)


def confirm(question: str, otherwise: str, *, yes: bool) -> None:
    """Ask on standard error, unless ``yes``; anything but yes means no, and raises CommandError."""
    if yes:
        return
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise CommandError(otherwise)
