"""``roadstead audit``: who did what, when, from where and why."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from rich.console import Group, RenderableType
from rich.text import Text

from cli.options import Address, Before, Limit, before_time
from cli.terminal.cluster_table import indented
from cli.terminal.output import Output, OutputOption, show
from cli.terminal.render import few
from cli.text import printable
from cli.times import age
from shared.app.api import schema
from shared.cluster.history import LIVE


def audit(
    address: Address,
    *,
    limit: Limit = 50,
    before: Before = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """List who did what: every act that changes something or reads Azure, and changed settings.

    Newest first.
    """
    moment = before_time(before)
    with address.connect() as api:
        view = api.read(schema.Audit, "audit", limit=str(limit), before=moment)

    def table(wide: bool) -> RenderableType:
        listed = _rendered(view["acts"], datetime.now(UTC), wide=wide)
        older = Text(f"older acts: --before {view['next']}", style="dim")
        return Group(listed, older) if view["next"] else listed

    show(view, output, table=table, names=lambda: (f"act/{act['id']}" for act in view["acts"]))


def _rendered(acts: Sequence[schema.ActView], now: datetime, *, wide: bool) -> RenderableType:
    """Return a few lines for each act; ``wide`` adds where it came from."""
    if not acts:
        return Text("there are no acts")
    parts: list[RenderableType] = []
    for act in printable(acts):
        head = Text.assemble(
            f"{age(act['at'], now):>4}  {act['at']}  ", (act["by"], "bold"), f"  {_action(act)}"
        )
        parts.append(head.append(f" {act['target']}"))
        if act["clusters"] and ", ".join(act["clusters"]) != act["target"]:
            parts.append(indented(Text(few(act["clusters"])), 6))
        if act["reason"]:
            parts.append(indented(Text(f"reason: {act['reason']}"), 6))
        parts.append(
            indented(Text(act["result"] or "no result: it was interrupted, or runs", style="dim"), 6)
        )
        if wide:
            where = ", ".join(filter(None, (act["byId"], act["address"], act["client"])))
            parts.append(indented(Text(f"from {where}", style="dim"), 6))
    return Group(*parts)


def _action(act: schema.ActView) -> str:
    return "compared with Azure:" if act["action"] == LIVE else act["action"]
