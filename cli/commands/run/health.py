"""``roadstead health``: whether the app can work."""

from __future__ import annotations

from datetime import UTC, datetime

import typer

from cli.errors import ExitCode
from cli.options import Address
from cli.terminal.health_view import health as rendered
from cli.terminal.output import Output, OutputOption, show


def health(address: Address, *, output: OutputOption = Output.TABLE) -> None:
    """Show whether the app can work: its services, timers and credentials.

    Ends with 1 if a service does not answer or a timer is late.
    """
    with address.connect() as api:
        view = api.health()
    parts = (*view["services"], *view["timers"], *view["credentials"])
    wrong = [f"problem/{part['name']}" for part in parts if not part["ok"]]
    show(view, output, table=lambda _: rendered(view, datetime.now(UTC)), names=lambda: wrong)
    raise typer.Exit(ExitCode.OK if view["ready"] else ExitCode.FAILED)
