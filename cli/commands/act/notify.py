"""``roadstead notify``: the routes of notifications, and a test of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.text import Text

from cli.options import Address, Reason
from cli.terminal.cluster_table import BELOW, fitted, indented
from cli.terminal.output import Output, OutputOption, show
from cli.text import printable
from cli.times import age, until
from shared.app.api import schema
from shared.sentences import many

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


_HEADS = ("TYPE", "SENT", "WAITING", "STATE", "TAKES")
_LEAST = 4
"""What a route takes has a line of its own where it does not fit."""


@dataclass(frozen=True)
class RouteTable:
    """A line for each route, and why it does not deliver on lines of its own."""

    routes: Sequence[schema.RouteView]
    now: datetime

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield the lines."""
        routes: Sequence[schema.RouteView] = printable(self.routes)
        failing = sum(bool(route["problem"]) for route in routes)
        head = Text(f"{many(len(routes), 'route')} of notifications")
        if failing:
            head.append(f", {failing} {'fails' if failing == 1 else 'fail'}", style="red")
        yield head
        rows = [(route["name"], self._cells(route)) for route in routes]
        lines, shown = fitted([("ROUTE", [Text(head) for head in _HEADS]), *rows], _LEAST, options.max_width)
        yield lines[0]
        for route, row in zip(routes, lines[1:], strict=True):
            yield row
            if shown == _LEAST:
                yield indented(Text(f"takes {_takes(route)}", style="dim"), BELOW)
            if route["problem"]:
                yield indented(Text(self._problem(route), style="red"), BELOW)

    def _cells(self, route: schema.RouteView) -> list[Text]:
        fails = Text(f"fails for {age(route['failingSince'], self.now)}", style="red")
        good = Text("delivers", style="green") if route["sent"] else Text("not used yet", style="dim")
        return [
            Text(route["type"]),
            Text(str(route["sent"])),
            Text(str(route["pending"] or "")),
            fails if route["problem"] else good,
            Text(_takes(route)),
        ]

    def _problem(self, route: schema.RouteView) -> str:
        again = f"; tried again {until(route['nextAt'], self.now)}" if route["nextAt"] else ""
        return f"{route['problem']}{again}"


def _takes(route: schema.RouteView) -> str:
    """Return what a route is sent: by severity or kind, and of which clusters."""
    above = "" if route["severity"] == "critical" else " and above"
    notifications = ", ".join(route["events"]) or f"{route['severity']}{above}"
    environments = f", of {' or '.join(route['environments'])}" if route["environments"] else ""
    labels = ",".join(f"{key}={value}" for key, value in route["labels"].items())
    return f"{notifications}{environments}{f', with {labels}' if labels else ''}"
