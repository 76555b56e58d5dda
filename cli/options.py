"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

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
