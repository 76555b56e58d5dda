"""``roadstead drill``: what a loss of the tables would cost."""

from __future__ import annotations

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
    """Show what a loss of the tables would cost.

    Rebuilds the records from git and Azure next to the live ones, compares them, and writes nothing.
    """
    with connect(url, key_file, timeout) as api:
        view = api.drill(reason)
    waiting = [cluster["name"] for cluster in view["clusters"] if cluster["outcome"] != "rebuilt"]
    names = [f"cluster/{name}" for name in waiting]
    show(view, output, table=lambda _: rendered(view), names=lambda: names)
