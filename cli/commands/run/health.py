"""``roadstead health``: whether the app can work."""

from __future__ import annotations

from datetime import UTC, datetime

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cli.errors import ExitCode
from cli.options import Address
from cli.terminal.output import Output, OutputOption, show
from cli.text import printable
from cli.times import age, until
from shared.app.api import schema


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


def rendered(view: schema.HealthView, now: datetime) -> RenderableType:
    """Return a line for each service, timer and credential, with what is wrong."""
    view = printable(view)
    ready = Text("ready", style="green") if view["ready"] else Text("not ready", style="bold red")
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for service in view["services"]:
        table.add_row(service["name"], _state(service, "answers"))
    for timer in view["timers"]:
        table.add_row(timer["name"], _state(timer, _last_run(timer, now)))
    for credential in view["credentials"]:
        ends = until(credential["expiresAt"], now) if credential["expiresAt"] else ""
        table.add_row(credential["name"], _state(credential, f"ends {ends}"))
    if view["paused"]:
        table.add_row("the fleet", Text(view["paused"], style="yellow"))
    for lack in view["lacks"]:
        table.add_row("without", Text(lack, style="dim"))
    for record in view["unreadable"] or ():
        table.add_row(f"{record['kind']} {record['key']}", Text(record["problem"], style="red"))
    return Group(Text.assemble("The app is ", ready, f", {age(view['checkedAt'], now)} ago"), table)


def _last_run(timer: schema.TimerHealth, now: datetime) -> str:
    if timer["lastRunAt"]:
        return f"ran {age(timer['lastRunAt'], now)} ago"
    due = timer["dueAt"]
    return f"has not run yet, due at {datetime.fromisoformat(due):%Y-%m-%d %H:%M:%S} UTC" if due else ""


def _state(part: schema.ServiceHealth, good: str) -> Text:
    return Text(good, style="green") if part["ok"] else Text(part["problem"], style="red")
