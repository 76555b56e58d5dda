"""``roadstead log``: the commits between what an environment pulls and the head of the branch."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.options import Address
from cli.terminal.log_view import log_view
from cli.terminal.output import Output, OutputOption, show
from shared.app.api import schema


def log(
    address: Address,
    *,
    environment: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="ENVIRONMENT",
            help="The environment; an empty one has the clusters without any.",
        ),
    ],
    output: OutputOption = Output.TABLE,
) -> None:
    """List the commits after those that an environment has, up to the head of the branch.

    Newest first, each with the files that it changes, and with the clusters that pull it.
    """
    with address.connect() as api:
        found = api.read(schema.Log, "log", environment=environment.removeprefix("environment/"))
    show(
        found,
        output,
        table=lambda wide: log_view(found, wide=wide),
        names=lambda: (f"commit/{commit['commit']}" for commit in found["commits"]),
    )
