"""Drift as text for a terminal: a diff of YAML for each cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from rich.console import Group, RenderableType
from rich.text import Text

from cli.terminal.cluster_table import indented
from cli.text import printable
from cli.times import age
from shared.app.api import schema
from shared.azure.drift.yaml_diff import Sides, yaml_diff
from shared.cluster.divergence.drift import change_text
from shared.cluster.history import by_whom
from shared.kubernetes_versions import is_version
from shared.plan.holds import Closure
from shared.sentences import many

_STYLES = {"-": "red", "+": "green", "@": "dim"}
_LEFT_ALONE = "no job changes it: put it into the manifest, or undo it in Azure"
_NEWER = "a version is never lowered, so no job changes it: put it into the manifest"


def drift(view: schema.DriftView, name: str, now: datetime) -> RenderableType:
    """Return the diff of each cluster; ``name`` is the only one, "" for the fleet."""
    view = printable(view)
    parts = [part for cluster in view["clusters"] for part in _cluster(cluster, now)]
    parts += _accepted(view, now)
    parts += _inside(view, now)
    if not parts:
        return Text(f"{_nothing(view, name)}{_compared(view['comparedAt'], now)}")
    said = bool(view["inside"] or view["outside"] or not view["clusters"])
    own = "" if view["clusters"] else "; no field is reported to differ"
    remarks = {
        "Last comparison": f"{age(view['comparedAt'], now)} ago" if said and view["comparedAt"] else "",
        "Compared": f"what Azure shows{own}" if said else "",
        "Not compared": _not_compared(view) if said else "",
        "Who changed what": view["activityLog"] if view["clusters"] else "",
        "Pull requests": view["proposals"] if view["clusters"] else "",
    }
    lines = [Text(f"{what}: {text}", style="dim") for what, text in remarks.items() if text]
    return Group(*parts, *lines) if lines else Group(*parts[:-1])


def _compared(at: str | None, now: datetime) -> str:
    """Return how old a comparison is, "" where there is none."""
    return f"; compared {age(at, now)} ago" if at else ""


def _nothing(view: schema.DriftView, name: str) -> str:
    """Return that nothing is reported, and what was not compared."""
    if name and view["outside"]:
        return f"{name} is not in Azure: nothing of it is compared, and no check reports anything inside"
    when = f"; roadstead status {name} shows InSync once it was compared" if name else ""
    rest = f"; {_outside(view)}" if view["outside"] else ""
    return f"{name or 'The fleet'}: no difference from git is reported{when}{rest}"


def _outside(view: schema.DriftView) -> str:
    return f"nothing is compared of {many(view['outside'], 'cluster')} outside Azure"


def _not_compared(view: schema.DriftView) -> str:
    elsewhere = f", and {many(view['outside'], 'cluster')} outside Azure" if view["outside"] else ""
    return f"what is inside clusters, which checks read{elsewhere}"


def _accepted(view: schema.DriftView, now: datetime) -> Iterator[RenderableType]:
    """Yield what somebody added and somebody accepted."""
    for field in view["accepted"]:
        by = by_whom(field["by"], field["reason"])
        what = f"{field['name']}: {field['path']} may be {field['live']}"
        yield Text(f"{what}: accepted {age(field['at'], now)} ago by {by}", style="dim")
    if view["accepted"]:
        yield Text("")


def _inside(view: schema.DriftView, now: datetime) -> Iterator[RenderableType]:
    """Yield what checks found inside clusters."""
    for finding in view["inside"]:
        yield Text(f"{finding['name']}: {finding['finding']}", style="red")
        read = f"inside the cluster, by the check {age(finding['at'], now)} ago"
        yield indented(Text(f"{read}; roadstead tree {finding['name']} has the objects", style="dim"), 2)
    more = view["insideCount"] - len(view["inside"])
    if more > 0:
        yield Text(f"and checks found something inside {many(more, 'more cluster')}", style="dim")
    if view["inside"]:
        yield Text("")


def left_alone(path: str) -> str:
    """Return why no job changes a field, and what ends the difference."""
    return _NEWER if is_version(path) else _LEFT_ALONE


def changed(field: schema.DriftedFieldView) -> str:
    """Return who may have changed a field, and when, "" where the activity log does not say."""
    at = field["changedAt"]
    return change_text(field["changedBy"], datetime.fromisoformat(at) if at else None)


def _cluster(cluster: schema.DriftedCluster, now: datetime) -> Iterator[RenderableType]:
    fields, compared = cluster["fields"], _compared(cluster["comparedAt"], now)
    if cluster["finding"]:
        yield Text(f"{cluster['name']}: {cluster['finding']}{compared}", style="red")
    if not fields:
        yield from _held(cluster["held"])
        yield Text("")
        return
    yield from diff_lines(cluster["name"], (Sides(e["path"], e["git"], e["live"]) for e in fields))
    for field in fields:
        source = f"set in {field['source']}" if field["source"] else ""
        waits = f"the correction needs an approval: {field['effect']}" if field["effect"] else ""
        proposed = f"proposed in {field['pullRequest']}" if field["pullRequest"] else ""
        left = left_alone(field["path"]) if field["leftAlone"] and not proposed else ""
        notes = (changed(field), source, waits, field["note"], proposed, left)
        note = "".join(f"; {text}" for text in notes if text)
        yield indented(Text(f"{field['path']}: for {age(field['since'], now)}{note}", style="dim"), 2)
    if cluster["more"]:
        yield indented(Text(f"and {many(cluster['more'], 'more field')}", style="dim"), 2)
    if compared:
        yield indented(Text(compared.removeprefix("; "), style="dim"), 2)
    yield from _held(cluster["held"])
    if cluster["needsApproval"]:
        command = f"roadstead approve --cluster {cluster['name']}"
        yield indented(Text(f"An Approver has git's values written: {command}", style="yellow"), 2)
    if any(field["acceptable"] for field in fields):
        command = f"roadstead accept {cluster['name']}"
        yield indented(Text(f"An Operator accepts what somebody added: {command}", style="yellow"), 2)
    approval = cluster["approval"]
    if approval:
        by = by_whom(approval["by"], approval["reason"])
        then = "the next comparison starts the job"
        yield indented(Text(f"approved {age(approval['at'], now)} ago by {by}; {then}"), 2)
    yield Text("")


def _held(held: schema.HeldCorrection | None) -> Iterator[RenderableType]:
    """Yield which freeze or change window keeps the job of a cluster from starting."""
    if held is not None:
        since, until = held["since"], held["until"]
        start = Closure(
            held["name"],
            datetime.fromisoformat(until) if until else None,
            datetime.fromisoformat(since),
            held["owner"],
            held["because"],
        )
        yield indented(Text(str(start), style="yellow"), 2)


def diff_lines(name: str, sides: Iterable[Sides]) -> Iterator[Text]:
    """Yield the lines of the diff of a cluster, in colours."""
    for text in yaml_diff(name, sides).split("\n"):
        yield Text(printable(text), style=_STYLES.get(text[:1], ""))
