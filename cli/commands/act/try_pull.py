"""``roadstead try``: a cluster gets the head of a pull request for some hours, and goes back by itself."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from cli.options import Address, Reason, cluster_name
from cli.terminal.output import echo
from cli.text import line
from shared.app.api import schema


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
    name = cluster_name(cluster)
    with address.connect() as api:
        if end:
            api.act(schema.Receipt, f"clusters/{name}/try/end", {"pull": pull, "reason": reason})
            text = f"{name} goes back from pull request {pull}; roadstead why {name} says how far it is"
        else:
            body = {"pull": pull, "for": lasts, "reason": reason}
            receipt = api.act(schema.TryReceipt, f"clusters/{name}/try", body)
            text = f"{name} tries pull request {pull} at {receipt['commit'][:8]} until {receipt['until']}"
            text = f"{text}; the pull request says what becomes of it"
    echo(Text(line(text)))
