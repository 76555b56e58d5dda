"""Lists from the API as text for a terminal of 80 columns or more: the fleet, plans and dead letters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime

from rich.console import Group, RenderableType
from rich.text import Text

from cli.fleet_api.followed import followed_of
from cli.terminal.cluster_table import ClusterTable, indented
from cli.text import line, printable
from cli.times import age
from shared.app.api import schema
from shared.cluster.history import by_whom
from shared.sentences import many, removals, some_of

NAMES_SHOWN = 5
PROBLEMS_SHOWN = 3
BODY_SHOWN = 2000


def fleet(view: schema.FleetView, now: datetime, *, wide: bool = False) -> RenderableType:
    """Return the table of all clusters, below what is to be known of the fleet."""
    view = printable(view)
    clusters = view["clusters"]
    head, rest = _head(view, now), _rest(view)
    if not clusters:
        return Group(head, *rest)
    return Group(head, ClusterTable(clusters, now, wide=wide), *rest)


def _rest(view: schema.FleetView) -> Iterator[Text]:
    """Yield what AKS retires, how many clusters the page does not show, and how to see them."""
    certificates = sum(bool(cluster.get("certificates")) for cluster in view["clusters"])
    if certificates:
        verb = "has" if certificates == 1 else "have"
        note = f"{many(certificates, 'cluster')} {verb} a certificate that ends soon: roadstead why NAME"
        yield Text(note, style="red")
    counts, shown = view["counts"], len(view["clusters"])
    retiring = sum(bool(cluster["retirements"]) for cluster in view["clusters"])
    if retiring:
        part = view["next"] or (counts and shown < counts["total"])
        verb = f"{' shown here' if part else ''} run{'s' if retiring == 1 else ''}"
        note = f"{many(retiring, 'cluster')}{verb} what AKS retires: roadstead why NAME"
        yield Text(note, style="yellow")
    matching = counts["matching"] if counts else None
    if matching is not None and counts and matching < counts["total"]:
        yield Text(f"{matching:,} of {counts['total']:,} clusters match", style="dim")
    if view["next"]:
        of = f" of {matching:,}" if matching is not None else ""
        text = f"{shown:,}{of} clusters shown. More: --after {view['next']}, or --all. "
        yield Text(f"{text}Fewer: --phase, --environment, --label, --condition.", style="dim")


def _head(view: schema.FleetView, now: datetime) -> Text:
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
    if view["paused"]:
        head.append(f"\n{view['paused']}", style="bold yellow")
    if view["waiting"]:
        head.append(f"\n{view['waiting']}", style="yellow")
    if view["rollout"]:
        head.append(f"\n{view['rollout']}", style="yellow")
    for source in view["followed"]:
        head.append(f"\n{followed_of(source)}", style="yellow" if source["problem"] else "dim")
    if view["needsApproval"]:
        count, releases = view["needsApprovalCount"], view["needsReleaseCount"]
        deletes = to_approve(commit, view["needsApproval"], count, releases)
        head.append(f"\n{deletes}", style="yellow")
    if view["corrections"]:
        head.append(f"\n{to_correct(view['corrections'], view['correctionCount'])}", style="yellow")
    if view["notCreated"]:
        names = few(view["notCreated"], view["notCreatedCount"])
        head.append(f"\nnot created, manifest invalid: {names}; see roadstead why NAME", style="yellow")
    if view["sweep"]:
        _sweep(view["sweep"], head)
    for route in view["failingRoutes"][:PROBLEMS_SHOWN]:
        head.append(f"\nnotifications to {route['route']} fail: {route['problem']}", style="red")
    if view["repairedGaps"]["last"]:
        head.append(
            f"\n{_gaps(view['repairedGaps']['count'], view['repairedGaps']['last'], now)}", style="dim"
        )
    for record in view["unreadable"][:PROBLEMS_SHOWN]:
        head.append(f"\n{record['problem']}", style="red")
        head.append(f"\n{record['suggestedAction']}", style="dim")
    if view["deadLetterCount"]:
        letters = many(view["deadLetterCount"], "dead letter")
        head.append(f"\n{letters}; see roadstead dead-letters", style="red")
    return head


def _gaps(count: int, last: schema.GapView, now: datetime) -> str:
    """Return how many commits were planned although their webhooks were lost."""
    by = "the timer" if last["foundBy"] == "timer" else f"roadstead {last['foundBy']}"
    found = f"{last['commit'][:8]}, {age(last['foundAt'], now)} ago by {by}"
    return f"{many(count, 'lost webhook')} repaired, the last one of {found}"


def _sweep(sweep: schema.Sweep, head: Text) -> None:
    """Add what the sweeps found that no cluster shows."""
    for problem in sweep["problems"][:PROBLEMS_SHOWN]:
        head.append(f"\nsweep of {problem['subscription']}: {problem['problem']}", style="red")
    if sweep["problemCount"] > PROBLEMS_SHOWN:
        more = many(sweep["problemCount"] - PROBLEMS_SHOWN, "more subscription")
        head.append(f"\nand {more}", style="red")
    if sweep["orphans"]:
        names = few([orphan["resource"] for orphan in sweep["orphans"]], sweep["orphanCount"])
        orphans = many(sweep["orphanCount"], "cluster")
        head.append(f"\n{orphans} with this fleet's tags that git does not have: {names}", style="yellow")


def to_approve(commit: str, names: Sequence[str], total: int = 0, releases: int = 0) -> str:
    """Return the command that approves the deletes of a commit, and which they are, or the first of more.

    ``releases`` of them are those of clusters outside Azure.
    """
    number = max(total, len(names))
    verb = "needs" if number == 1 else "need"
    command = f"roadstead approve {commit[:8]}"
    return f"{removals(number, releases)} {verb} approval ({command}): {few(names, total)}"


def to_correct(names: Sequence[str], total: int = 0) -> str:
    """Return the command that approves corrections, and of which clusters, or of the first of more."""
    number = max(total, len(names))
    verb = "needs" if number == 1 else "need"
    command = "roadstead approve --cluster NAME"
    return f"the correction of {many(number, 'cluster')} {verb} approval ({command}): {few(names, total)}"


def few(names: Sequence[str], total: int = 0) -> str:
    """Return the first names and how many more there are; ``total`` if more than these."""
    return some_of(names, NAMES_SHOWN, total=total)


def plans(view: schema.PlansView, now: datetime, *, wide: bool = False) -> RenderableType:
    """Return a line or two for each plan, below the corrections to approve.

    ``wide`` shows whole commit ids and approvals.
    """
    view = printable(view)
    lines: list[RenderableType] = []
    if view["corrections"]:
        lines.append(Text(to_correct(view["corrections"]), style="yellow"))
    if not view["plans"]:
        return Group(*lines, Text("there is no plan of the last 30 days"))
    for plan in view["plans"]:
        commit = plan["commit"] if wide else plan["commit"][:8]
        head = Text(f"{commit}  {age(plan['plannedAt'], now):>4}  {plan['summary']}")
        margin = len(commit) + 8
        if plan["needsApprovalCount"]:
            deletes = removals(plan["needsApprovalCount"], plan["needsReleaseCount"])
            verb = "needs" if plan["needsApprovalCount"] == 1 else "need"
            open_ = f"{deletes} {verb} approval: roadstead approve {plan['commit'][:8]}"
            closed = f"{deletes} never approved; a newer commit was planned"
            head.append(f"\n{'':{margin}}{open_ if plan['howToApprove'] else closed}", style="yellow")
        lines.append(head)
        if plan["reviews"] and (wide or plan["howToApprove"]):
            lines.append(indented(Text(f"reviews: {line(plan['reviews'])}", style="yellow"), margin))
        approval = plan["approval"]
        if wide and approval:
            deletes = removals(approval["clusterCount"], plan["approvedReleaseCount"])
            lines.append(
                indented(Text(f"{deletes} approved by {by_whom(approval['by'], approval['reason'])}"), margin)
            )
        if plan["status"]:
            lines.append(indented(Text(plan["status"], style="dim"), margin))
    return Group(*lines)


def dead_letters(
    found: Sequence[schema.DeadLetterView], now: datetime, *, wide: bool = False
) -> RenderableType:
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
