"""``roadstead why``: what a cluster does or waits for, and what an operator can do."""

from __future__ import annotations

from datetime import UTC, datetime

from rich.console import RenderableType

from cli.options import (
    DEFAULT_TIMEOUT,
    DEFAULT_URL,
    ClusterArgument,
    KeyFile,
    Timeout,
    Url,
    cluster_name,
    connect,
)
from cli.terminal.output import Output, OutputOption, show
from cli.terminal.render_cluster import why as rendered


def why(
    name: ClusterArgument,
    *,
    output: OutputOption = Output.TABLE,
    url: Url = DEFAULT_URL,
    key_file: KeyFile = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> None:
    """Explain what a cluster waits for, and what to do.

    Shows what the cluster does, since when, what was tried, what happens next and when, and what the
    newest plan does not carry out.
    """
    name = cluster_name(name)
    with connect(url, key_file, timeout) as api:
        view = api.why(name)

    def table(wide: bool) -> RenderableType:  # noqa: ARG001
        return rendered(view, datetime.now(UTC))

    show(view, output, table=table, names=lambda: [f"cluster/{view['name']}"])
