"""Lists from the API as text for a terminal of 80 columns or more: the fleet, plans and dead letters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from cli.text import line, printable
from cli.times import age, many
from shared.jobs.acts import by_whom
from shared.pipeline.api import schema

NAMES_SHOWN = 5
PROBLEMS_SHOWN = 3
NAME_WIDTH = 30
"""A longer name has a line of its own, so that the rest fits into 80 columns."""
BODY_SHOWN = 2000
_BELOW = 4
"""Columns by which the lines below a cluster's first line are indented."""
_HEADS = ("NAME", "PHASE", "STEP", "GEN", "SINCE")
_WIDE_HEADS = ("LOCATION", "VERSION", "RESOURCE-GROUP", "COMMIT", "MESSAGE")
_COLOURS = {
    "Ready": "green",
    "Failed": "bold red",
    "Stalled": "red",
    "Deleting": "magenta",
    "Deleted": "dim",
}


def fleet(view: schema.Fleet, now: datetime, *, wide: bool = False) -> RenderableType:
    """Return the table of all clusters, below what is to be known of the fleet."""
    view = printable(view)
    clusters = view["clusters"]
    head, rest = _head(view), _rest(view)
    if not clusters:
        return Group(head, *rest)
    return Group(head, *([_Wide(clusters, now)] if wide else _lines(clusters, now)), *rest)


def _rest(view: schema.Fleet) -> Iterator[Text]:
    """Yield how many clusters the page does not show, and how to see them."""
    counts, shown = view["counts"], len(view["clusters"])
    matching = counts["matching"] if counts else None
    if matching is not None and counts and matching < counts["total"]:
        yield Text(f"{matching:,} of {counts['total']:,} clusters match", style="dim")
    if view["next"]:
        of = f" of {matching:,}" if matching is not None else ""
        text = f"{shown:,}{of} clusters shown. More: --after {view['next']}, or --all. "
        yield Text(f"{text}Fewer: --phase, --environment, --location, --prefix.", style="dim")


def _head(view: schema.Fleet) -> Text:
    clusters, counts = view["clusters"], view["counts"]
    commit = (view["commit"] or "none yet")[:8]
    phases = counts["phases"] if counts else Counter(cluster["phase"] for cluster in clusters)
    ready, total = phases.get("Ready", 0), counts["total"] if counts else len(clusters)
    head = Text(f"{view['fleet']}: {ready} of {total} clusters Ready, commit {commit}")
    others = ", ".join(f"{number} {phase}" for phase, number in phases.items() if phase != "Ready")
    if total > len(clusters) and others:
        head.append(f"\n{others}", style="dim")
    if view["problem"]:
        head.append(f"\n{view['problem']}", style="red")
        head.append(f"\n{view['fleetSuggestedAction']}", style="dim")
    if view["waiting"]:
        head.append(f"\n{view['waiting']}", style="yellow")
    if view["needsApproval"]:
        deletes = to_approve(commit, view["needsApproval"], view["needsApprovalCount"])
        head.append(f"\n{deletes}", style="yellow")
    if view["notCreated"]:
        names = few(view["notCreated"], view["notCreatedCount"])
        head.append(f"\nnot created, manifest invalid: {names}; see roadstead why NAME", style="yellow")
    if view["sweep"]:
        _sweep(view["sweep"], head)
    for each in view["failingChannels"][:PROBLEMS_SHOWN]:
        head.append(f"\nnotifications to {each['route']} fail: {each['problem']}", style="red")
    if view["deadLetterCount"]:
        letters = many(view["deadLetterCount"], "dead letter")
        head.append(f"\n{letters}; see roadstead dead-letters", style="red")
    return head


def _sweep(sweep: schema.Sweep, head: Text) -> None:
    """Add what the sweeps found that no cluster shows."""
    for each in sweep["problems"][:PROBLEMS_SHOWN]:
        head.append(f"\nsweep of {each['subscription']}: {each['problem']}", style="red")
    if sweep["problemCount"] > PROBLEMS_SHOWN:
        head.append(f"\nand {sweep['problemCount'] - PROBLEMS_SHOWN} more subscriptions", style="red")
    if sweep["orphans"]:
        names = few([each["resource"] for each in sweep["orphans"]], sweep["orphanCount"])
        orphans = many(sweep["orphanCount"], "cluster")
        head.append(f"\n{orphans} with this fleet's tags that git does not have: {names}", style="yellow")


def to_approve(commit: str, names: Sequence[str], total: int = 0) -> str:
    """Return the command that approves the deletes of a commit, and which they are, or the first of more."""
    number = max(total, len(names))
    verb = "needs" if number == 1 else "need"
    command = f"roadstead approve {commit[:8]}"
    return f"{many(number, 'delete')} {verb} approval ({command}): {few(names, total)}"


def few(names: Sequence[str], total: int = 0) -> str:
    """Return the first names and how many more there are; ``total`` if more than these."""
    rest = max(total, len(names)) - NAMES_SHOWN
    more = f" and {rest} more" if rest > 0 else ""
    return ", ".join(names[:NAMES_SHOWN]) + more


def _lines(clusters: Sequence[schema.ClusterSummary], now: datetime) -> Iterator[RenderableType]:
    """Yield a line for each cluster; what it waits for has its own, so that narrow terminals can show it."""
    width = min(NAME_WIDTH, max(len("NAME"), *(len(cluster["name"]) for cluster in clusters)))

    def row(name: str, shown: Text, step: str, generation: str, since: str) -> Text:
        shown.pad_right(max(0, 12 - len(shown)))
        first = f"{name}\n{'':<{width}}" if len(name) > width else f"{name:<{width}}"
        return Text.assemble(f"{first}  ", shown, f"  {step:<21}  {generation:>5}  {since:>5}")

    name, phase_, *others = _HEADS
    head = row(name, Text(phase_), *others)
    head.stylize("bold")
    yield head
    for cluster in clusters:
        since = age(cluster["since"], now)
        yield row(cluster["name"], phase(cluster["phase"]), cluster["step"], generations(cluster), since)
        if cluster["reason"]:
            yield indented(Text(cluster["reason"], style="dim"), 4)
        plan = cluster["plan"]
        if plan and plan["notCarriedOut"]:
            # Without the remedy: the header says how to approve, and roadstead why says everything.
            yield indented(Text(f"{action(plan)}: {plan['cause']}", style="yellow"), 4)


@dataclass(frozen=True)
class _Wide:
    """A table with a line for each cluster; on a narrow terminal, whole columns move to lines below it."""

    clusters: Sequence[schema.ClusterSummary]
    now: datetime

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield the lines."""
        rows = [[Text(head) for head in (*_HEADS, *_WIDE_HEADS)], *map(self._row, self.clusters)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        for number, row in enumerate(rows):
            for columns in _columns_by_line(widths, options.max_width):
                cells = [row[column] for column in columns]
                for column, cell in zip(columns, cells[:-1], strict=False):
                    cell.pad_right(widths[column] - len(cell))
                joined = Text("  ").join(cells)
                joined.rstrip()
                joined.style = "bold" if number == 0 else ""
                if joined:
                    yield indented(joined, 0 if columns[0] == 0 else _BELOW)

    def _row(self, cluster: schema.ClusterSummary) -> list[Text]:
        message = "; ".join(filter(None, (cluster["reason"], not_carried_out(cluster["plan"]))))
        cells = [
            *(cluster["step"], generations(cluster), age(cluster["since"], self.now)),
            *(cluster["location"], cluster["kubernetesVersion"], cluster["resourceGroup"]),
            *(cluster["commit"][:8], message.replace("\n", " ")),
        ]
        return [Text(cluster["name"]), phase(cluster["phase"]), *map(Text, cells)]


def _columns_by_line(widths: Sequence[int], width: int) -> list[list[int]]:
    """Return as many columns for each line as fit into a width; a wider column has its own."""
    by_line: list[list[int]] = []
    free = 0
    for column, needed in enumerate(widths):
        if column == 0 or needed + 2 > free:
            by_line.append([])
            free = width + 2 - (_BELOW if column else 0)
        by_line[-1].append(column)
        free -= needed + 2
    return by_line


def generations(cluster: schema.ClusterSummary) -> str:
    """Return the observed generation and the accepted one."""
    return f"{cluster['observedGeneration']}/{cluster['generation']}"


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


def plans(found: Sequence[schema.PlanSummary], now: datetime, *, wide: bool = False) -> RenderableType:
    """Return a line or two for each plan; ``wide`` shows whole commit ids and approvals."""
    if not found:
        return Text("there is no plan of the last 30 days")
    lines: list[RenderableType] = []
    for plan in printable(found):
        commit = plan["commit"] if wide else plan["commit"][:8]
        head = Text(f"{commit}  {age(plan['plannedAt'], now):>4}  {plan['summary']}")
        margin = len(commit) + 8
        if plan["needsApprovalCount"]:
            deletes = many(plan["needsApprovalCount"], "delete")
            verb = "needs" if plan["needsApprovalCount"] == 1 else "need"
            open_ = f"{deletes} {verb} approval: roadstead approve {plan['commit'][:8]}"
            closed = f"{deletes} never approved; a newer commit was planned"
            head.append(f"\n{'':{margin}}{open_ if plan['howToApprove'] else closed}", style="yellow")
        lines.append(head)
        if plan["reviews"] and (wide or plan["howToApprove"]):
            lines.append(indented(Text(f"reviews: {line(plan['reviews'])}", style="yellow"), margin))
        approval = plan["approval"]
        if wide and approval:
            deletes = many(approval["clusterCount"], "delete")
            lines.append(
                indented(Text(f"{deletes} approved by {by_whom(approval['by'], approval['reason'])}"), margin)
            )
        if plan["status"]:
            lines.append(indented(Text(plan["status"], style="dim"), margin))
    return Group(*lines)


def dead_letters(found: Sequence[schema.DeadLetter], now: datetime, *, wide: bool = False) -> RenderableType:
    """Return a head, the reason and the beginning of each dead letter; ``wide`` its time too."""
    if not found:
        return Text("there are no dead letters")
    parts: list[RenderableType] = []
    for letter in printable(found):
        since = f"{age(letter['at'], now):>4}  {letter['at']}" if wide else f"{age(letter['at'], now):>4}"
        size = many(letter["size"], "byte")
        parts.append(Text(f"{since}  {letter['queue']}  {letter['id']}  {size}", style="bold"))
        reason = ": ".join(part for part in (letter["reason"], letter["description"]) if part)
        body = Text(line(letter["body"], BODY_SHOWN), style="dim")
        parts.append(indented(Group(Text(reason, style="yellow"), body), 6))
    return Group(*parts)


def routes(found: Sequence[schema.Route], now: datetime) -> RenderableType:
    """Return each route with what it takes and what waits for it, and the problem of its channel."""
    if not found:
        return Text("fleet.yaml has no notifications")
    parts: list[RenderableType] = []
    for route in printable(found):
        takes = ", ".join(route["events"]) or f"{route['severity']} and above"
        parts.append(Text(f"{route['name']}  {route['type']}", style="bold"))
        waiting = f"; {many(route['pending'], 'fact')} waiting" if route["pending"] else ""
        parts.append(indented(Text(f"{takes}: {many(route['sent'], 'message')} sent{waiting}"), 2))
        if route["problem"]:
            since = age(route["failingSince"], now)
            parts.append(indented(Text(f"failing for {since}: {route['problem']}", style="red"), 2))
    return Group(*parts)
