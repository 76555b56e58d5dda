"""``roadstead drift``: what differs between git and Azure."""

from __future__ import annotations

from datetime import UTC, datetime

from cli.options import Address, FleetOrCluster, cluster_name
from cli.terminal.drift_view import drift as rendered
from cli.terminal.output import Output, OutputOption, show


def drift(
    address: Address,
    name: FleetOrCluster = "",
    *,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show what differs between git and Azure, as the last sweep found it.

    Each cluster is a diff of YAML: a line with - is what git has, one with + is what Azure has.
    """
    name = cluster_name(name) if name else ""
    with address.connect() as api:
        view = api.drift(name)
    show(
        view,
        output,
        table=lambda _: rendered(view, name, datetime.now(UTC)),
        names=lambda: (f"cluster/{cluster['name']}" for cluster in view["clusters"]),
    )
