"""``roadstead drill``: what a loss of the tables would cost."""

from __future__ import annotations

import typer

from cli.errors import ExitCode
from cli.options import DEFAULT_TIMEOUT, DEFAULT_URL, KeyFile, Reason, Timeout, Url, connect
from cli.terminal.drill_view import drill as rendered
from cli.terminal.output import Output, OutputOption, show


def drill(
    *,
    reason: Reason = "",
    output: OutputOption = Output.TABLE,
    url: Url = DEFAULT_URL,
    key_file: KeyFile = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> None:
    """Rebuild the records from git and Azure next to the live ones, and compare them; write nothing.

    Ends with 1 if a cluster would not be rebuilt by itself.
    """
    with connect(url, key_file, timeout) as api:
        view = api.drill(reason)
    waiting = [each["name"] for each in view["clusters"] if each["outcome"] != "rebuilt"]
    names = [f"cluster/{name}" for name in waiting]
    show(view, output, table=lambda _: rendered(view), names=lambda: names)
    raise typer.Exit(ExitCode.FAILED if waiting or view["unread"] else ExitCode.OK)
