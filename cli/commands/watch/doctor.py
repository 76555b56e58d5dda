"""``roadstead doctor``: each app examines itself; what is wrong, since when, and what mends it."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import RenderableType

from cli.commands.watch.polling import polled
from cli.errors import ExitCode, NoAnswer
from cli.options import DEFAULT_TIMEOUT, DEFAULT_URL, KeyFile, Reason, Timeout, Url, connect, seconds
from cli.terminal.doctor_view import doctor as rendered
from cli.terminal.output import Output, OutputOption, show

if TYPE_CHECKING:
    from cli.fleet_api.client import Api


def doctor(
    *,
    wait: Annotated[
        str,
        typer.Option("--wait", metavar="TIME", help="How long an app has to answer: it starts from zero."),
    ] = "2m",
    reason: Reason = "",
    output: OutputOption = Output.TABLE,
    url: Url = DEFAULT_URL,
    key_file: KeyFile = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> None:
    """Have each app examine itself, and show what is wrong and what mends it.

    Settings, versions, clocks, credentials, and what each identity may do. Ends with 1 if anything is wrong.
    """
    with connect(url, key_file, timeout) as api:
        view = answered(api, reason, seconds(wait))
    now = datetime.now(UTC)

    def table(wide: bool) -> RenderableType:  # noqa: ARG001
        return rendered(view, now)

    names = [f"problem/{finding['app']}/{finding['what']}" for finding in view["findings"]]
    show(view, output, table=table, names=lambda: names)
    raise typer.Exit(ExitCode.FAILED if view["findings"] else ExitCode.OK)


def answered(api: Api, reason: str, longest: float) -> Any:
    """Return the findings once each app has answered; one that does not in time is a finding itself."""
    asked = api.examine(reason)["at"]
    view: Any = api.doctor(asked)
    for found in polled(lambda: api.doctor(asked), time.monotonic() + longest):
        if isinstance(found, NoAnswer):
            continue
        view = found
        if not any(finding["what"] == "app" for finding in view["findings"]):
            break
    return view
