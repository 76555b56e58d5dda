"""What the API shows, as text for a terminal of 80 columns or more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cli.output import printable
from shared.fleet.manifests.base import shown

View = Mapping[str, Any]

NAMES_TOLD = 5
NAME_WIDTH = 30
"""A longer name has a line of its own, so that the rest fits into 80 columns."""
_STOPPED = ("held", "refused", "invalid")
_COLOURS = {
    "Ready": "green",
    "Failed": "bold red",
    "Stalled": "red",
    "Deleting": "magenta",
    "Deleted": "dim",
}


def fleet(view: View, now: datetime) -> RenderableType:
    """Return the table of all clusters, with a line about the fleet above it."""
    view = printable(view)
    clusters: Sequence[View] = view["clusters"]
    ready = sum(1 for cluster in clusters if cluster["phase"] == "Ready")
    commit = (view["commit"] or "none yet")[:8]
    head = Text(f"{view['fleet']}: {ready} of {len(clusters)} clusters Ready, commit {commit}")
    if view["problem"]:
        head.append(f"\n{view['problem']}", style="red")
        head.append(f"\n{view['fleetNeeds']}", style="dim")
    if view["waiting"]:
        head.append(f"\n{view['waiting']}", style="yellow")
    held = [cluster["name"] for cluster in clusters if (cluster["plan"] or {}).get("heldDelete")]
    if held:
        head.append(f"\n{released(commit, held)}", style="yellow")
    if view["absent"]:
        names = few(view["absent"], view["absentCount"])
        head.append(f"\nnot made, for a mistake: {names}: see roadstead why NAME", style="yellow")
    if view.get("deadLetters"):
        letters = many(view["deadLetters"], "dead letter")
        head.append(f"\n{letters}, see roadstead dead-letters", style="red")
    if not clusters:
        return head
    return Group(head, *_lines_of(clusters, now))


def released(commit: str, held: Sequence[str]) -> str:
    """Return what a commit holds, and how that is released."""
    return f"{commit[:8]} holds the delete of {few(held)}: roadstead approve {commit[:8]} releases it"


def few(names: Sequence[str], total: int = 0) -> str:
    """Return the first names, and how many there are beside them; ``total`` if more than these."""
    beside = max(total, len(names)) - NAMES_TOLD
    more = f" and {beside} more" if beside > 0 else ""
    return ", ".join(names[:NAMES_TOLD]) + more


def _lines_of(clusters: Sequence[View], now: datetime) -> Iterator[RenderableType]:
    """Yield a line per cluster, and its reason on a line of its own so that narrow terminals can show it."""
    width = min(NAME_WIDTH, max(len("CLUSTER"), *(len(cluster["name"]) for cluster in clusters)))

    def line(name: str, shown: Text, step: str, generation: str, since: str) -> Text:
        shown.pad_right(max(0, 12 - len(shown)))
        first = f"{name}\n{'':<{width}}" if len(name) > width else f"{name:<{width}}"
        return Text.assemble(f"{first}  ", shown, f"  {step:<21}  {generation:>5}  {since:>4}")

    head = line("CLUSTER", Text("PHASE"), "STEP", "GEN", "FOR")
    head.stylize("bold")
    yield head
    for cluster in clusters:
        generation = f"{cluster['observedGeneration']}/{cluster['generation']}"
        since = age(cluster["since"], now)
        yield line(cluster["name"], phase(cluster["phase"]), cluster["step"], generation, since)
        if cluster["waitingFor"]:
            yield Padding(Text(cluster["waitingFor"], style="dim"), (0, 0, 0, 4))
        if stopped(cluster):
            # The first words of why; the way out is told above, and of the cluster alone.
            yield Padding(Text(stopped(cluster).partition("; ")[0], style="yellow"), (0, 0, 0, 4))


def stopped(cluster: View) -> str:
    """Return what the newest plan does not do to a cluster, and why; "" when it stops nothing."""
    plan = cluster.get("plan") or {}
    return f"{plan['action']}: {plan['reason']}" if plan.get("action") in _STOPPED else ""


def plans(found: Sequence[View], now: datetime) -> RenderableType:
    """Return a line or two per plan."""
    if not found:
        return Text("no plan was made in the last days")
    lines: list[RenderableType] = []
    for plan in printable(found):
        head = Text(f"{plan['commit'][:8]}  {age(plan['plannedAt'], now):>4}  {plan['summary']}")
        if plan["heldDeleteCount"]:
            deletes = many(plan["heldDeleteCount"], "delete")
            approve = f"holds {deletes}: roadstead approve {plan['commit'][:8]}"
            over = f"held {deletes}; a newer commit was planned"
            head.append(f"\n{'':16}{approve if plan['release'] else over}", style="yellow")
        lines.append(head)
        if plan["status"]:
            lines.append(Padding(Text(plan["status"], style="dim"), (0, 0, 0, 16)))
    return Group(*lines)


def cluster(view: View, now: datetime) -> RenderableType:
    """Return everything about one cluster."""
    view = printable(view)
    parts: list[RenderableType] = [_facts(view, now)]
    if view.get("conditions"):
        parts += [Text("\nConditions", style="bold"), _conditions(view["conditions"], now)]
    if view.get("events"):
        parts += [Text("\nEvents, newest first", style="bold"), events(view["events"], now)]
    return Group(*parts)


def _facts(view: View, now: datetime) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("cluster", Text(view["name"]))
    table.add_row("phase", phase(view["phase"]))
    _fleet_rows(table, view)
    if "generation" not in view:
        if stopped(view):
            table.add_row("newest plan", Text(stopped(view), style="yellow"))
        return table
    table.add_row("generation", Text(f"{view['generation']}, observed {view['observedGeneration']}"))
    table.add_row("commit", Text(view["commit"][:8]))
    table.add_row("where", Text(f"{view['location']}, {view['resourceGroup']}, {view['subscriptionId']}"))
    table.add_row("kubernetes", Text(view["kubernetesVersion"]))
    if stopped(view):
        table.add_row("newest plan", Text(stopped(view), style="yellow"))
    if view["step"]:
        table.add_row("step", Text(f"{view['step']}, for {age(view['since'], now)}"))
    if view["waitingFor"]:
        table.add_row("waiting for" if view["nextLook"] else "reason", Text(view["waitingFor"]))
    if view["youCan"]:
        table.add_row("you", Text(view["youCan"]))
    if view["nextLook"]:
        table.add_row("next look", Text(_until(view["nextLook"], now)))
    failure = view.get("failure")
    if failure:
        words = f"{failure['class']}, {age(failure['since'], now)} ago, tried {times(view['attempts'])}"
        table.add_row("failure", Text(words, style="red"))
        if failure["requestId"]:
            table.add_row("request id", failure["requestId"])
    return table


def _fleet_rows(table: Table, view: View) -> None:
    """Add what keeps the fleet from its newest commit."""
    if view["problem"]:
        table.add_row("fleet", Text(view["problem"], style="red"))
    if view["waiting"]:
        table.add_row("fleet", Text(view["waiting"], style="yellow"))


def _conditions(conditions: Sequence[View], now: datetime) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 1))
    for name in ("type", "status", "age"):
        table.add_column(name, no_wrap=True)
    table.add_column("message", overflow="fold")
    for condition in conditions:
        good = condition["status"] == "True"
        words = condition["message"] or ("" if good else condition["reason"])
        table.add_row(
            condition["type"],
            Text(condition["status"], style="green" if good else "yellow"),
            age(condition["lastTransitionTime"], now),
            Text(words),
        )
    return table


def events(found: Sequence[View], now: datetime) -> Table:
    """Return a line per event, newest first."""
    table = Table(box=None, show_header=False, padding=(0, 1))
    table.add_column("age", no_wrap=True, justify="right")
    table.add_column("time", no_wrap=True)
    table.add_column("reason", no_wrap=True)
    table.add_column("message", overflow="fold")
    for event in printable(found):
        style = "yellow" if event["type"] == "Warning" else ""
        where = f"{event['step']}: " if event["step"] else ""
        asked = f" (request {', '.join(event['requestIds'])})" if event["requestIds"] else ""
        table.add_row(
            age(event["at"], now),
            Text(f"{datetime.fromisoformat(event['at']):%m-%d %H:%M:%SZ}", style="dim"),
            Text(event["reason"], style=style),
            Text(f"{where}{event['message']}{asked}"),
        )
    return table


def why(view: View, now: datetime) -> RenderableType:
    """Return what a cluster does, since when, what was tried, what comes next and what a person can do."""
    view = printable(view)
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("cluster", Text.assemble(view["name"], ", ", phase(view["phase"])))
    table.add_row("it", Text(view["doing"]))
    table.add_row("since", Text(f"{view['since']} ({age(view['since'], now)} ago)"))
    if stopped(view):
        table.add_row("newest plan", Text(stopped(view), style="yellow"))
    _fleet_rows(table, view)
    error = view["lastError"]
    if error:
        table.add_row("tried", Text(f"{times(view['attempts'])} since {error['since']}"))
        kinds = dict.fromkeys(filter(None, (error["class"], error["code"])))
        table.add_row("last error", Text(": ".join(kinds)))
        table.add_row("", Text(error["message"]))
        if error["requestId"]:
            table.add_row("request id", Text(error["requestId"]))
    when = f", {_until(view['nextAt'], now)}" if view["nextAt"] else ""
    table.add_row("next", Text(view["next"] + when))
    if view["youCan"]:
        table.add_row("you", Text(view["youCan"]))
    return table


def dead_letters(found: Sequence[View], now: datetime) -> RenderableType:
    """Return a head and the text of each dead letter."""
    if not found:
        return Text("there are no dead letters")
    parts: list[RenderableType] = []
    for letter in printable(found):
        size = many(letter["size"], "byte")
        words = f"{age(letter['at'], now):>4}  {letter['queue']}  {letter['id']}  {size}"
        parts.append(Text(words, style="bold"))
        why = ": ".join(word for word in (letter["reason"], letter["description"]) if word)
        body = shown(letter["body"], 2000)
        parts.append(Padding(Group(Text(why, style="yellow"), Text(body, style="dim")), (0, 0, 0, 6)))
    return Group(*parts)


def phase(name: str) -> Text:
    """Return a phase in its colour."""
    return Text(name, style=_COLOURS.get(name, "yellow"))


def times(number: int) -> str:
    """Return how often, in words."""
    return "once" if number == 1 else f"{number} times"


def many(number: int, thing: str) -> str:
    """Return how many, in words."""
    return f"{number} {thing}{'s' * (number != 1)}"


def age(moment: str | None, now: datetime) -> str:
    """Return how long ago a moment is, as Kubernetes writes it: 12s, 5m, 3h, 2d."""
    if not moment:
        return ""
    seconds = max(0, int((now - datetime.fromisoformat(moment)).total_seconds()))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def _until(moment: str, now: datetime) -> str:
    """Return how far off a moment is, as "in 5m 20s"; with its date from an hour on."""
    left = max(timedelta(), datetime.fromisoformat(moment) - now)
    minutes, seconds = divmod(left.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    if left.days:
        return f"in {left.days}d {hours}h ({moment})"
    if hours:
        return f"in {hours}h {minutes}m ({moment})"
    return f"in {minutes}m {seconds}s" if minutes else f"in {seconds}s"
