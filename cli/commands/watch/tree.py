"""``roadstead tree``: what a cluster consists of, and what of it is unhealthy."""

from __future__ import annotations

from datetime import UTC, datetime

from cli.options import Address, ClusterArgument, cluster_name
from cli.terminal.cluster_tree import cluster_tree
from cli.terminal.output import Output, OutputOption, show
from shared.app.api import schema


def tree(address: Address, name: ClusterArgument, *, output: OutputOption = Output.TABLE) -> None:
    """Show what a cluster consists of, and what is unhealthy.

    Shows its conditions, node pools, sources, Kustomizations, Helm releases and workloads, as the last check
    read them. What is healthy is counted; what is not is named, with the reason and since when.
    """
    name = cluster_name(name)
    with address.connect() as api:
        view = api.read(schema.TreeView, f"clusters/{name}/tree")
    show(
        view,
        output,
        table=lambda _: cluster_tree(view, datetime.now(UTC)),
        names=lambda: [f"cluster/{view['name']}"],
    )
