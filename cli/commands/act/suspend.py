"""``roadstead suspend``: one pull request that suspends some clusters until a time."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from cli.options import Address, NeededReason, cluster_name
from cli.terminal.output import echo
from cli.text import line
from shared.app.api import schema
from shared.sentences import some_of

SHOWN = 5


def suspend(
    address: Address,
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="The clusters.")],
    *,
    lasts: Annotated[
        str, typer.Option("--for", metavar="TIME", help="For how long, such as 4h or 7d; 365d at most.")
    ],
    owner: Annotated[
        str, typer.Option("--owner", metavar="OWNER", help="Who is responsible; you, without it.")
    ] = "",
    reason: NeededReason,
) -> None:
    """Propose to suspend clusters until a time, by one pull request that changes their manifests.

    Nothing changes before the merge. Then Roadstead writes nothing to them until the end.
    """
    clusters = list(dict.fromkeys(map(cluster_name, names)))
    with address.connect() as api:
        body = {"clusters": clusters, "for": lasts, "owner": owner, "reason": reason}
        receipt = api.act(schema.SuspensionReceipt, "suspensions", body)
    text = f"{some_of(receipt['clusters'], SHOWN)}: a pull request is open, for a suspension until"
    echo(Text(line(f"{text} {receipt['until']}") + "\n  " + line(receipt["pullRequest"])))
