"""``roadstead notify``: the routes of notifications, and a test of one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.text import Text

from cli.options import Address, Reason
from cli.terminal.output import Output, OutputOption, show
from cli.terminal.route_table import RouteTable
from shared.app.api import schema

NO_ROUTES = "fleet.yaml has no notifications"


def notify(
    address: Address,
    *,
    test: Annotated[str, typer.Option("--test", metavar="ROUTE", help="Send a message to a route.")] = "",
    reason: Reason = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """List the routes of notifications, or test one.

    Shows for each route what waits for it, and why it does not deliver.
    """
    with address.connect() as api:
        if test:
            receipt = api.act(schema.Receipt, "notifications/test", {"route": test, "reason": reason})
            delivered = Text(f"{test}: the test message was delivered")
            show(receipt, output, table=lambda _: delivered, names=lambda: [f"route/{test}"])
            return
        routes = api.read(schema.RoutesView, "notifications")["routes"]
    show(
        {"routes": routes},
        output,
        table=lambda _: RouteTable(routes, datetime.now(UTC)) if routes else Text(NO_ROUTES),
        names=lambda: (f"route/{route['name']}" for route in routes),
    )
