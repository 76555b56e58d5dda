"""``roadstead output``: the facts of a cluster, for programs that set up what is around it."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import RenderableType

from cli.errors import NotFound
from cli.options import Address, ClusterArgument, cluster_name
from cli.terminal.output import Output, OutputOption, print_json, show
from cli.text import printable
from shared.app.api import schema


def output(
    address: Address,
    name: ClusterArgument,
    key: Annotated[str, typer.Argument(metavar="KEY", help="One output; its value alone is printed.")] = "",
    *,
    as_map: Annotated[
        bool,
        typer.Option("--json", help="Print one JSON object with the outputs alone, as Terraform reads it."),
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show the outputs of a cluster, or one of them.

    The outputs are what the ConfigMap cluster-facts has: where the cluster is in Azure, its API server, its
    OIDC issuer, its identities, and its labels. The command fails while they are not known.
    """
    name = cluster_name(name)
    with address.connect() as api:
        view = api.read(schema.Outputs, f"clusters/{name}/output")
    outputs = view["outputs"]
    if not view["known"]:
        raise NotFound(f"{name} has no outputs yet: no job has read it in Azure ({view['phase']})")
    if key and key not in outputs:
        raise NotFound(f"{name} has no output {key}; it has {', '.join(outputs)}")
    if key:
        sys.stdout.write(f"{printable(outputs[key])}\n")
        return
    if as_map:
        print_json(outputs)
        return
    show(view, output, table=lambda _: _table(outputs), names=lambda: [f"output/{name}" for name in outputs])


def _table(outputs: dict[str, str]) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    found = Table(box=None, show_header=False, pad_edge=False)
    found.add_column(no_wrap=True)
    found.add_column(overflow="fold")
    for key, value in printable(outputs).items():
        found.add_row(Text(key), Text(value))
    return found
