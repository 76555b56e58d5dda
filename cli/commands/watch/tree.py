"""``roadstead tree``: what a cluster consists of, and what of it is unhealthy."""

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
from cli.terminal.cluster_tree import cluster_tree
from cli.terminal.output import Output, OutputOption, show


def tree(
    name: ClusterArgument,
    *,
    output: OutputOption = Output.TABLE,
    url: Url = DEFAULT_URL,
    key_file: KeyFile = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> None:
    """Show what a cluster consists of, and what is unhealthy.

    Shows its conditions, node pools, sources, Kustomizations, Helm releases and workloads, as the last check
    read them. What is healthy is counted; what is not is named, with the reason and since when.
    """
    name = cluster_name(name)
    with connect(url, key_file, timeout) as api:
        view = api.tree(name)

    def table(wide: bool) -> RenderableType:  # noqa: ARG001
        return cluster_tree(view, datetime.now(UTC))

    show(view, output, table=table, names=lambda: [f"cluster/{view['name']}"])
