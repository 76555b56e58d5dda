"""``roadstead why``: what a cluster does or waits for, and what an operator can do."""

from __future__ import annotations

from datetime import UTC, datetime

from cli.options import Address, ClusterArgument, cluster_name
from cli.terminal.output import Output, OutputOption, show
from cli.terminal.render_cluster import why as rendered


def why(address: Address, name: ClusterArgument, *, output: OutputOption = Output.TABLE) -> None:
    """Explain what a cluster waits for, and what to do.

    Shows what the cluster does, since when, what was tried, what happens next and when, and what the
    newest plan does not carry out.
    """
    name = cluster_name(name)
    with address.connect() as api:
        view = api.why(name)
    show(
        view,
        output,
        table=lambda _: rendered(view, datetime.now(UTC)),
        names=lambda: [f"cluster/{view['name']}"],
    )
