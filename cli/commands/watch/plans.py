"""``roadstead plans``: what the newest commits do."""

from __future__ import annotations

from datetime import UTC, datetime

from cli.options import Address
from cli.terminal import render
from cli.terminal.output import Output, OutputOption, show


def plans(address: Address, *, output: OutputOption = Output.TABLE) -> None:
    """List the newest plans: at most 50 of the last 30 days, each with its changes and its commit status."""
    with address.connect() as api:
        view = api.plans()
    show(
        view,
        output,
        table=lambda wide: render.plans(view, datetime.now(UTC), wide=wide),
        names=lambda: (f"plan/{plan['commit']}" for plan in view["plans"]),
    )
