"""Promotions as text: for each environment what it is to get, or why it gets nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from rich.console import Group, RenderableType
from rich.text import Text

from cli.terminal.cluster_table import indented
from cli.text import line, printable
from cli.times import age
from shared.app.api import schema
from shared.sentences import many

_HOLDS = {
    "withdrawn": "on hold: a commit took it back; roadstead promote gives it again",
    "declined": "on hold: its pull request was closed; roadstead promote opens another",
}


def receipt_view(receipt: schema.PromotionReceipt) -> Text:
    """Return what a promotion that was asked for will change."""
    clusters = many(len(receipt["clusters"]), "cluster")
    head = f"{receipt['source']} to {receipt['target']}: a pull request for {clusters} is queued"
    values = "".join(f"\n  {promoted['field']}: {promoted['value']}" for promoted in receipt["values"])
    return Text(f"{line(head)}{printable(values)}\nroadstead promote shows its address")


def promotions_view(found: Sequence[schema.PromotionView], now: datetime) -> RenderableType:
    """Return some lines for each environment."""
    if not found:
        return Text("nothing was promoted yet, and fleet.yaml has no promotions")
    return Group(*(part for promotion in printable(found) for part in _promotion(promotion, now)))


def _promotion(promotion: schema.PromotionView, now: datetime) -> Iterator[RenderableType]:
    how = "by a rule" if promotion["rule"] else "when somebody asks"
    yield Text(f"{promotion['source']} to {promotion['target']}, {how}", style="bold")
    if promotion["values"]:
        by = promotion["by"] or "a rule"
        asked = f"asked {age(promotion['askedAt'], now)} ago by {by}"
        yield indented(Text(f"{promotion['state']}  {promotion['pullRequest']}  {asked}"), 2)
    for promoted in promotion["values"]:
        yield indented(Text(f"{promoted['field']}: {promoted['value']}"), 4)
    if promotion["problem"]:
        yield indented(Text(promotion["problem"], style="yellow"), 2)
    for hold in promotion["holds"]:
        yield indented(Text(f"{hold['field']}: {hold['value']}  {_HOLDS[hold['reason']]}", style="dim"), 2)
