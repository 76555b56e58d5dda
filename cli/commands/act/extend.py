"""``roadstead extend``: a cluster lasts longer, or nothing removes it while somebody debugs."""

from __future__ import annotations

import re
from typing import Annotated

import typer
from rich.text import Text

from cli.errors import UsageError
from cli.options import Address, NeededReason, cluster_name
from cli.terminal.output import echo
from cli.text import line
from cli.times import whole


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
    if not re.fullmatch(r"[1-9][0-9]{0,4}[mhd]", lasts):
        raise UsageError("--for takes a number with a unit, such as 8h or 2d")
    with address.connect() as api:
        receipt = api.extend(cluster_name(name), lasts, reason, hold=hold)
    until = receipt["heldUntil"]
    what = f"is on hold until {whole(until)}" if until else f"ends {whole(receipt['ends'])}"
    echo(Text(line(f"{receipt['cluster']} {what}")))
