"""``roadstead try``: a cluster gets the head of a pull request for some hours, and goes back by itself."""

from __future__ import annotations

import re
from typing import Annotated

import typer
from rich.text import Text

from cli.errors import UsageError
from cli.options import Address, Reason, cluster_name
from cli.terminal.output import echo
from cli.text import line


def try_pull(
    address: Address,
    pull: Annotated[int, typer.Argument(metavar="PULL", min=1, help="The number of a pull request.")],
    *,
    cluster: Annotated[str, typer.Option("--on", metavar="NAME", help="The cluster.")],
    lasts: Annotated[
        str, typer.Option("--for", metavar="TIME", help="For how long, such as 30m; 24h at most.")
    ] = "4h",
    end: Annotated[bool, typer.Option("--end", help="Go back now.")] = False,
    reason: Reason = "",
) -> None:
    """Try a pull request on a cluster for some hours.

    Flux on it then pulls the newest commit of the pull request. It goes back by itself, also once the pull
    request is merged or closed. The pull request says what became of it.
    """
    if not re.fullmatch(r"[1-9][0-9]{0,4}[mh]", lasts):
        raise UsageError("--for takes a number with a unit, such as 30m or 4h")
    name = cluster_name(cluster)
    with address.connect() as api:
        if end:
            api.end_try(name, pull, reason)
            text = f"{name} goes back from pull request {pull}; roadstead why {name} says how far it is"
        else:
            receipt = api.begin_try(name, pull, lasts, reason)
            text = f"{name} tries pull request {pull} at {receipt['commit'][:8]} until {receipt['until']}"
            text = f"{text}; the pull request says what becomes of it"
    echo(Text(line(text)))
