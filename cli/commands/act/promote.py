"""``roadstead promote``: a pull request that gives an environment what is proven in another one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from cli.errors import UsageError
from cli.options import Address, Reason
from cli.terminal.output import Output, OutputOption, show
from cli.terminal.promotions_view import promotions_view, receipt_view
from shared.app.api import schema
from shared.promotions import What


def promote(
    address: Address,
    source: Annotated[str, typer.Argument(metavar="FROM", help="An environment with Ready clusters.")] = "",
    target: Annotated[str, typer.Argument(metavar="TO", help="The environment that is to get it.")] = "",
    *,
    what: Annotated[
        list[What] | None,
        typer.Option(
            "--what",
            metavar="KIND",
            help="version, images, components or platform, more than once (default: all).",
        ),
    ] = None,
    reason: Reason = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """Give an environment what is proven in another one: open a pull request, or list them.

    Every cluster of FROM must be Ready with the same value. Nothing changes before the merge.
    """
    if bool(source) != bool(target):
        raise UsageError("give two environments, or none to list the promotions")
    with address.connect() as api:
        if source:
            kinds = [promoted.value for promoted in what or ()]
            body = {"from": source, "to": target, "what": kinds, "reason": reason}
            receipt = api.act(schema.PromotionReceipt, "promotions", body)
            show(
                receipt,
                output,
                table=lambda _: receipt_view(receipt),
                names=lambda: [f"environment/{receipt['target']}"],
            )
            return
        found = api.read(schema.PromotionsView, "promotions")
    show(
        found,
        output,
        table=lambda _: promotions_view(found["promotions"], datetime.now(UTC)),
        names=lambda: (f"environment/{promotion['target']}" for promotion in found["promotions"]),
    )
