"""``roadstead contexts``: the fleets that the command knows by name."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from cli.fleet_api.contexts import CONTEXT, FleetContext, path, read_contexts
from cli.terminal.output import Output, OutputOption, show


def contexts(*, output: OutputOption = Output.TABLE) -> None:
    """List the contexts of the file: fleets by name, each with its address.

    The marked one is used where no other is named.
    """
    default, known = read_contexts()
    current = os.environ.get(CONTEXT, "").removeprefix("context/") or default
    view = {"current": current, "contexts": [_view(context) for context in known.values()]}
    show(
        view,
        output,
        table=lambda wide: _rendered(list(known.values()), current, wide=wide),
        names=lambda: (f"context/{name}" for name in known),
    )


def _view(context: FleetContext) -> Mapping[str, str]:
    return {
        "name": context.name,
        "url": context.url,
        "scope": context.scope,
        "signIn": context.sign_in,
        "tenant": context.tenant,
    }


def _rendered(known: Sequence[FleetContext], current: str, *, wide: bool) -> RenderableType:
    if not known:
        return Text(f"there are no contexts; {path()} may have some")
    table = Table(box=None, show_header=False, padding=(0, 1))
    for context in known:
        more = [context.scope, context.sign_in, context.tenant] if wide else []
        table.add_row("*" if context.name == current else "", context.name, context.url, *more)
    return table
