"""``roadstead extend``: a cluster lasts longer, or nothing removes it while somebody debugs."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from cli.options import Address, NeededReason, cluster_name
from cli.terminal.output import echo
from cli.text import line
from cli.times import whole
from shared.app.api import schema


def extend(
    address: Address,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A cluster.")],
    *,
    lasts: Annotated[
        str, typer.Option("--for", metavar="TIME", help="For how long, such as 24h; 7d at most.")
    ] = "24h",
    hold: Annotated[
        bool, typer.Option("--hold", help="Hold the cluster from now on: also no commit deletes it.")
    ] = False,
    reason: NeededReason,
) -> None:
    """Put the end of a cluster off, or hold the cluster.

    An end is put off once for each that git gives the cluster. With --hold nothing removes the cluster for a
    time, also no commit without an approval. A hold can be set again, and replaces the one before. Both need
    a reason.
    """
    with address.connect() as api:
        body = {"for": lasts, "hold": hold, "reason": reason}
        receipt = api.act(schema.LifetimeReceipt, f"clusters/{cluster_name(name)}/extend", body)
    until = receipt["heldUntil"]
    what = f"is on hold until {whole(until)}" if until else f"ends {whole(receipt['ends'])}"
    echo(Text(line(f"{receipt['cluster']} {what}")))
