"""A drill of lost tables, for people."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from cli.terminal.cluster_table import indented
from cli.text import line
from shared.app.api import schema
from shared.sentences import many, some_of

_MEANING = {
    "differs": "would wait for a person, because it differs from git",
    "takeover": "would wait for a takeover",
    "create": "would be created",
    "unknown": "could not be compared",
}
SHOWN = 8


def drill(view: schema.Drill) -> RenderableType:
    """Return what would happen to the clusters, those that need somebody first."""
    clusters = view["clusters"]
    rebuilt = sum(cluster["outcome"] == "rebuilt" for cluster in clusters)
    head = f"{rebuilt} of {many(len(clusters), 'cluster')} would be rebuilt without a write"
    parts: list[RenderableType] = [
        Text(f"{view['fleet']} at {view['commit'][:8]}: {head}. The drill took {view['seconds']} s.")
    ]
    for cluster in clusters:
        lines = list(_lines(cluster))
        if lines:
            parts += [Text(line(cluster["name"]), style="bold"), *(indented(Text(text), 2) for text in lines)]
    for orphan in view["orphans"]:
        ends = "; its delete would not continue" if orphan["deleting"] else ""
        stays = f"git does not have it, so it would be reported and stay{ends}"
        parts.append(Text(f"{line(orphan['name'])}: {stays}"))
    for name in view["invalid"]:
        parts.append(Text(f"{line(name)}: its manifest is invalid, so it would have no record"))
    for subscription in view["unread"]:
        parts.append(
            Text(
                line(f"subscription {subscription['subscription']}: {subscription['problem']}"),
                style="yellow",
            )
        )
    lost = "A loss also ends the history: events, plans, approvals and acts."
    parts.append(Text(f"{lost} What is inside the clusters was not compared.", style="dim"))
    return Group(*parts)


def _lines(cluster: schema.DrilledCluster) -> Iterator[str]:
    if cluster["outcome"] != "rebuilt":
        yield f"{_MEANING[cluster['outcome']]}: {line(cluster['reason'])}"
    if cluster["differs"]:
        yield line(some_of(cluster["differs"], SHOWN))
    yield from map(line, cluster["unlike"])
