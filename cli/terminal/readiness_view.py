"""Whether clusters are ready for an upgrade, as text for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from rich.console import Group, RenderableType
from rich.text import Text

from cli.terminal.cluster_table import indented
from cli.text import printable
from cli.times import age
from shared.app.api import schema
from shared.sentences import many

STYLES = {"blocked": "red", "unknown": "yellow", "ready": "green"}
"""The states, in the order in which clusters are shown."""
SHOWN = 10
"""So many blockers of a cluster are shown; wide shows all."""


def readiness(view: schema.ReadinessView, now: datetime, *, wide: bool = False) -> RenderableType:
    """Return the clusters with what blocks each, those that are ready last."""
    view = printable(view)
    clusters = view["clusters"]
    if not clusters:
        return Text("no cluster is selected")
    states = Counter(found["state"] for found in clusters)
    counts = ", ".join(f"{states[state]} {state}" for state in STYLES if states[state])
    ordered = sorted(clusters, key=lambda found: [*STYLES].index(found["state"]))
    parts = [part for found in ordered for part in _cluster(found, now, wide=wide)]
    note = Text(f"Deprecated APIs: {view['note']}", style="dim")
    return Group(Text(f"{many(len(clusters), 'cluster')}: {counts}"), *parts, note)


def _cluster(found: schema.ClusterReadiness, now: datetime, *, wide: bool) -> Iterator[RenderableType]:
    to = f" for Kubernetes {found['to']}" if found["to"] else ""
    read = f", read {age(found['readAt'], now)} ago" if found["readAt"] else ""
    state = Text(found["state"], style=STYLES[found["state"]])
    yield Text.assemble(f"{found['name']}: ", state, f"{to}{read}")
    shown = found["blockers"] if wide else found["blockers"][:SHOWN]
    for blocker in shown:
        yield indented(Text(f"{blocker['object']} {blocker['why']}", style="red"), 2)
        yield indented(Text(f"{blocker['who']}: {blocker['act']}"), 4)
        if wide:
            yield indented(Text(blocker["source"], style="dim"), 4)
    more = len(found["blockers"]) - len(shown)
    if more:
        yield indented(Text(f"and {many(more, 'more blocker')}: -o wide shows all", style="dim"), 2)
    for unknown in found["unknown"]:
        yield indented(Text(f"unknown: {unknown}", style="yellow"), 2)
    for note in found["notes"]:
        yield indented(Text(f"note: {note}", style="dim"), 2)
    if not found["readAt"]:
        yield indented(Text(f"roadstead ready {found['name']} --wait reads it", style="dim"), 2)
