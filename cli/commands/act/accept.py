"""``roadstead accept``: shows what somebody added to a cluster, asks, and accepts exactly that."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from cli.errors import ApiError
from cli.options import Address, Reason, Yes, cluster_name
from cli.terminal.output import confirm, echo
from shared.app.api import schema
from shared.sentences import many


def accept(
    address: Address,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A cluster to which somebody added something.")],
    fields: Annotated[
        list[str] | None,
        typer.Argument(metavar="FIELD", help="A field as roadstead drift names it; else all of them."),
    ] = None,
    *,
    reason: Reason = "",
    yes: Yes = False,
) -> None:
    """Accept what somebody added to a cluster in Azure: exactly what is shown.

    It is reported again once Azure has another value.
    """
    from cli.terminal.drift_view import drift

    name = cluster_name(name)
    with address.connect() as api:
        view = api.drift(name)
        shown = {field["path"]: field for cluster in view["clusters"] for field in cluster["fields"]}
        chosen = fields or [path for path, field in shown.items() if field["acceptable"]]
        if not chosen:
            raise ApiError(f"nothing that somebody added to {name} is reported; see roadstead drift {name}")
        missing = next((path for path in chosen if path not in shown), None)
        if missing is not None:
            raise ApiError(f"{missing} of {name} does not differ; roadstead drift {name} shows what does")
        echo(drift(view, name, datetime.now(UTC)))
        confirm(f"Accept {', '.join(chosen)}?", "nothing was accepted", yes=yes)
        values = {path: shown[path]["live"] for path in chosen}
        api.act(schema.Receipt, f"clusters/{name}/accept", {"fields": values, "reason": reason})
    echo(f"{many(len(chosen), 'field')} accepted. See roadstead drift {name}")
