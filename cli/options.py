"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer
from pydantic import TypeAdapter, ValidationError

from cli.errors import UsageError
from cli.output import line
from shared.fleet.manifests.base import ClusterName

DEFAULT_URL = "http://127.0.0.1:7071"


class Output(StrEnum):
    """How to print."""

    TABLE = "table"
    JSON = "json"


Url = Annotated[
    str, typer.Option("--url", envvar="ROADSTEAD_URL", help="Address of the function app.", show_default=True)
]
Key = Annotated[str, typer.Option("--key", envvar="ROADSTEAD_KEY", help="A function key of the app.")]
OutputOption = Annotated[Output, typer.Option("--output", "-o", help="table for people, json for scripts.")]


def check(option: str, rule: Any, value: str) -> None:
    """Refuse a value that a field of that type would refuse; raise UsageError."""
    try:
        TypeAdapter(rule).validate_python(value)
    except ValidationError as error:
        reason = error.errors()[0].get("ctx", {}).get("error") or error.errors()[0]["msg"]
        raise UsageError(f"{option} {line(str(reason))}") from error


def cluster_at(name: str) -> str:
    """Return the place of a cluster in the API; raise UsageError for what no cluster can be called."""
    check("NAME", ClusterName, name)
    return f"clusters/{name}"
