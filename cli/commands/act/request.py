"""``roadstead request``: a pull request that adds a cluster for a time."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from cli.options import Address, NeededReason, cluster_name
from cli.terminal.output import echo
from cli.text import line
from shared.app.api import schema


def request(
    address: Address,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the new cluster.")],
    *,
    cluster_class: Annotated[str, typer.Option("--class", metavar="CLASS", help="Its class.")],
    lifetime: Annotated[
        str,
        typer.Option("--lifetime", metavar="TIME", help="How long it lasts once it is Ready, such as 8h."),
    ],
    environment: Annotated[
        str, typer.Option("--environment", metavar="ENVIRONMENT", help="Its environment.")
    ] = "",
    location: Annotated[str, typer.Option("--location", metavar="REGION", help="Its Azure region.")] = "",
    reason: NeededReason,
) -> None:
    """Ask for a cluster for a time, by a pull request that adds its folder.

    What may be asked for is selfService in fleet.yaml. Nothing exists before the merge.
    """
    asked = {"name": cluster_name(name), "class": cluster_class, "lifetime": lifetime, "reason": reason}
    places = {"environment": environment, "location": location}
    with address.connect() as api:
        body = asked | {key: value for key, value in places.items() if value}
        receipt = api.act(schema.ClusterRequestReceipt, "requests", body)
    echo(Text(line(f"{receipt['cluster']} in {receipt['environment']} for {receipt['lifetime']}:")))
    echo(Text(line(f"  {receipt['pullRequest']}")))
    echo(Text(line(f"  who merges it: {receipt['merge']}")))
