"""``roadstead schema``: the JSON Schemas of the manifests, for editors."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from cli.errors import UsageError
from cli.schemas import KINDS, texts, write
from cli.terminal.output import echo


def schema(
    kind: Annotated[str, typer.Argument(metavar="KIND", help=f"One of {', '.join(KINDS)}.")] = "",
    *,
    into: Annotated[
        Path | None, typer.Option("--write", metavar="PATH", help="Write all schemas into this folder.")
    ] = None,
) -> None:
    """Print the JSON Schema of a kind, or write all schemas for editors."""
    if into is not None:
        write(into)
        echo(f"Wrote the schemas to {into}.")
    elif kind.lower() in KINDS:
        sys.stdout.write(texts()[f"{kind.lower()}.json"])
    else:
        raise UsageError(f"give a kind ({', '.join(KINDS)}), or --write PATH for all of them")
