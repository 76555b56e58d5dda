"""The table of clusters: as many columns as fit, and what each cluster waits for below its line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.text import Text

from cli.times import age
from shared.app.api import schema
from shared.language.pin import short_revision

BELOW = 4
"""Columns by which the lines below a cluster's first line are indented."""
_COLOURS = {
    "Ready": "green",
    "Failed": "bold red",
    "Stalled": "red",
    "Deleting": "magenta",
    "Deleted": "dim",
    "Releasing": "magenta",
    "Released": "dim",
}


@dataclass(frozen=True)
class ClusterTable:
    """A line for each cluster of a page.

    Without ``wide``, the columns that a narrow terminal has no room for are left out; a long name has a line
    of its own, and so has what a cluster waits for. With it, whole columns move to lines below.
    """

    clusters: Sequence[schema.ClusterSummaryView]
    now: datetime
    wide: bool = False

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield the lines."""
        yield from self._wide_lines(options.max_width) if self.wide else self._lines(options.max_width)

    def _cells(self, cluster: schema.ClusterSummaryView, heads: Sequence[str]) -> list[Text]:
        own: Mapping[str, Callable[[], str | Text]] = {
            "PHASE": lambda: phase(cluster["phase"]),
            "STEP": lambda: step(cluster),
            "GEN": lambda: f"{cluster['observedGeneration']}/{cluster['generation']}",
            "SINCE": lambda: age(cluster["since"], self.now),
            "TOTAL": lambda: age(cluster["jobStartedAt"], self.now) if cluster["nextCheckAt"] else "",
            "VERSION": lambda: cluster["kubernetesVersion"],
            "RUNNING": lambda: cluster["runningVersion"],
            "NODES": lambda: str(cluster["nodes"] or ""),
            "LOCATION": lambda: cluster["location"],
            "ENVIRONMENT": lambda: cluster["environment"],
            "CLASS": lambda: cluster["clusterClass"],
            "FLUX": lambda: _revision(cluster, self.now),
            "RESOURCE-GROUP": lambda: cluster["resourceGroup"],
            "COMMIT": lambda: cluster["commit"][:8],
            "MESSAGE": lambda: _message(cluster),
        }
        return [cell if isinstance(cell := own[head](), Text) else Text(cell) for head in heads]

    def _heads(self) -> list[str]:
        """Return the columns, without those that are empty for every cluster."""
        cells = [self._cells(cluster, _IF_THERE_IS_ROOM) for cluster in self.clusters]
        used = [head for number, head in enumerate(_IF_THERE_IS_ROOM) if any(row[number] for row in cells)]
        return [*_HEADS, *used]

    def _lines(self, width: int) -> Iterator[RenderableType]:
        heads = self._heads()
        rows = [(cluster["name"], self._cells(cluster, heads)) for cluster in self.clusters]
        lines, _ = fitted([("NAME", [Text(head) for head in heads]), *rows], len(_HEADS), width)
        yield lines[0]
        for cluster, row in zip(self.clusters, lines[1:], strict=True):
            yield row
            yield from self._below(cluster)

    def _below(self, cluster: schema.ClusterSummaryView) -> Iterator[RenderableType]:
        """Yield what a cluster waits for, on lines of its own, so that narrow terminals can show it."""
        if cluster["reason"]:
            yield indented(Text(cluster["reason"], style="dim"), BELOW)
        plan = cluster["plan"]
        if plan and plan["notCarriedOut"]:
            # Without the remedy: the header says how to approve, and roadstead why says everything.
            yield indented(Text(f"{action(plan)}: {plan['cause']}", style="yellow"), BELOW)

    def _wide_lines(self, width: int) -> Iterator[RenderableType]:
        heads = [*self._heads(), *_WIDE_HEADS]
        rows = [[Text(head) for head in ("NAME", *heads)]]
        rows += [[Text(cluster["name"]), *self._cells(cluster, heads)] for cluster in self.clusters]
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        for number, row in enumerate(rows):
            for columns in _columns_by_line(widths, width):
                cells = [row[column] for column in columns]
                for column, cell in zip(columns, cells[:-1], strict=False):
                    cell.pad_right(widths[column] - len(cell))
                joined = Text("  ").join(cells)
                joined.rstrip()
                joined.style = "bold" if number == 0 else ""
                if joined:
                    yield indented(joined, 0 if columns[0] == 0 else BELOW)


_HEADS = ("PHASE", "STEP", "GEN", "SINCE")
_IF_THERE_IS_ROOM = ("TOTAL", "VERSION", "RUNNING", "NODES", "LOCATION", "ENVIRONMENT", "CLASS", "FLUX")
"""In this order: what comes last is left out first."""
_WIDE_HEADS = ("RESOURCE-GROUP", "COMMIT", "MESSAGE")


def _columns_by_line(widths: Sequence[int], width: int) -> list[list[int]]:
    """Return as many columns for each line as fit into a width; a wider column has its own."""
    by_line: list[list[int]] = []
    free = 0
    for column, needed in enumerate(widths):
        if column == 0 or needed + GAP > free:
            by_line.append([])
            free = width + GAP - (BELOW if column else 0)
        by_line[-1].append(column)
        free -= needed + GAP
    return by_line


def _message(cluster: schema.ClusterSummaryView) -> str:
    message = "; ".join(filter(None, (cluster["reason"], not_carried_out(cluster["plan"]))))
    return message.replace("\n", " ")


def step(cluster: schema.ClusterSummaryView) -> str:
    """Return the step of a job with its place, such as "cluster 2/8"; "" for no step."""
    return f"{cluster['step']} {cluster['stepNumber']}/{cluster['stepCount']}" if cluster["step"] else ""


def applied(view: schema.ClusterSummaryView | schema.TreeView, now: datetime, *, wide: bool = False) -> str:
    """Return what Flux said that it applied last, and how long ago that was read."""
    text = view["fluxRevision"] if wide else short_revision(view["fluxRevision"])
    return f"applied {text or 'nothing'}, read {age(view['fluxReadAt'], now)} ago"


def _revision(cluster: schema.ClusterSummaryView, now: datetime) -> str:
    text = short_revision(cluster["fluxRevision"])
    return f"{text}, {age(cluster['fluxReadAt'], now)} ago" if text else ""


def not_carried_out(plan: schema.PlanPart | None) -> str:
    """Return what the newest plan does not carry out, and why; "" when it carries out everything."""
    if plan is None or not plan["notCarriedOut"]:
        return ""
    return f"{action(plan)}: {plan['reason']}"


def action(plan: schema.PlanPart) -> str:
    """Return what a plan does to a cluster as people read it."""
    return "needs approval" if plan["needsApproval"] else plan["action"].replace("-", " ")


def phase(name: str) -> Text:
    """Return a phase in its colour."""
    return Text(name, style=_COLOURS.get(name, "yellow"))


def indented(part: RenderableType, by: int) -> Padding:
    """Return a part below its line."""
    return Padding(part, (0, 0, 0, by), expand=False)


GAP = 2
"""Spaces between two columns."""


def fitted(rows: Sequence[tuple[str, Sequence[Text]]], least: int, width: int) -> tuple[list[Text], int]:
    """Return a line for each item, and how many of the cells next to its name there was room for.

    Each item is a name and its cells; the first one has the heads, and ``least`` cells are always shown. A
    name that is too long for its column has a line of its own.
    """
    names, cells = [name for name, _ in rows], [row for _, row in rows]
    widths = [max(len(row[column]) for row in cells) + GAP for column in range(len(cells[0]))]
    longest, shown = max(map(len, names)), least
    while shown < len(widths) and longest + sum(widths[: shown + 1]) <= width:
        shown += 1
    room = max(len(names[0]), min(longest, width - sum(widths[:shown])))
    lines = [
        _line(name, row[:shown], room, widths, bold=number == 0)
        for number, (name, row) in enumerate(zip(names, cells, strict=True))
    ]
    return lines, shown


def _line(name: str, cells: Sequence[Text], room: int, widths: Sequence[int], *, bold: bool) -> Text:
    line = Text(f"{name}\n{'':<{room}}" if len(name) > room else f"{name:<{room}}")
    for cell, width in zip(cells, widths, strict=False):
        line.append(" " * GAP)
        cell.pad_right(width - GAP - len(cell))
        line.append(cell)
    line.rstrip()
    if bold:
        line.stylize("bold")
    return line
