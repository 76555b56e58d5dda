"""A cluster as a tree for a terminal of 80 columns or more."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rich.text import Text
from rich.tree import Tree

from cli.terminal.cluster_table import applied, phase
from cli.text import printable
from cli.times import age
from shared.app.api import schema
from shared.language.pin import short_revision
from shared.sentences import many

_BAD_WHEN_TRUE = "Stalled"
_OF_OBJECTS = ("FluxHealthy", "PlatformHealthy")
"""The conditions whose messages repeat, when they are false, what the tree shows of objects."""
_COMPONENT = "Component"


def cluster_tree(view: schema.TreeView, now: datetime) -> Tree:
    """Return a cluster with its parts: conditions, node pools, Flux, workloads, and what is unhealthy."""
    view = printable(view)
    root = Tree(Text.assemble(view["name"], ", ", phase(view["phase"]), f", {_versions(view)}"))
    if view["reason"] and view["phase"] != "Ready":
        root.add(Text(view["reason"], style="yellow"))
    conditions = root.add(Text("conditions"))
    for condition in view["conditions"]:
        conditions.add(_condition(condition, now))
    read = f", read {age(view['checkedAt'], now)} ago" if view["checkedAt"] else ", not read yet"
    pools = root.add(Text(f"node pools{read}"))
    for pool in view["nodePools"]:
        _add_objects(pools.add(_pool(pool, view["checkedAt"])), pool["notReady"], pool["failed"], now)
    for title, groups in (("Flux", view["flux"]), ("workloads", view["workloads"])):
        branch = root.add(Text(f"{title}{read}"))
        if title == "Flux" and view["fluxReadAt"]:
            branch.add(Text(applied(view, now)))
        for group in groups:
            _add_objects(branch.add(_group(group)), group["unhealthy"], group["failed"], now)
    if view["systems"]:
        branch = root.add(Text(f"systems{read}"))
        for system in view["systems"]:
            _add_objects(branch.add(_system(system)), system["unhealthy"], 0, now)
    if not view["checkedAt"]:
        root.add(Text(f"roadstead refresh {view['name']} reads the cluster from inside", style="dim"))
    return root


def _system(system: schema.SystemOnCluster) -> Text:
    bad = len(system["unhealthy"])
    title = Text(f"{system['name']} of {', '.join(system['owners'])}: {', '.join(system['namespaces'])}")
    if system["revision"] is not None:
        title.append(f", applied {short_revision(system['revision']) or 'nothing yet'}")
    return title.append(f", {bad} unhealthy", style="red") if bad else title


def _versions(view: schema.TreeView) -> str:
    return f"Kubernetes {_wanted(view['kubernetesVersion'], [view['runningVersion']])}"


def _wanted(wanted: str, running: Sequence[str]) -> str:
    """Return the version that git asks for, and those that run where they are others."""
    runs = ", ".join(version for version in running if version and version != wanted)
    return f"{wanted or 'not in git'}{f' (runs {runs})' if runs else ''}"


def _condition(condition: schema.ConditionView, now: datetime) -> Text:
    good = condition["status"] == ("False" if condition["type"] == _BAD_WHEN_TRUE else "True")
    text = Text.assemble(
        f"{condition['type']} ", (condition["status"], "green" if good else "yellow"), " for "
    )
    text.append(age(condition["lastTransitionTime"], now))
    if condition["lastVerifiedTime"]:
        text.append(f", verified {age(condition['lastVerifiedTime'], now)} ago", style="dim")
    if not good:
        repeated = condition["type"] in _OF_OBJECTS and condition["status"] == "False"
        message = "" if repeated else condition["message"]
        text.append(": ".join(filter(None, (f"; {condition['reason']}", message))))
    return text


def _pool(pool: schema.NodePoolView, read_at: str | None) -> Text:
    title = Text(f"{pool['name'] or 'no node pool'}: {_wanted(pool['wantedVersion'], pool['versions'])}, ")
    if not read_at:
        return title.append("not read yet", style="dim")
    return title.append(
        _ready(pool["ready"], pool["nodes"], "node"), style=_style(pool["ready"], pool["nodes"])
    )


def _group(group: schema.ObjectGroup) -> Text:
    kind, total, ready = group["kind"], group["total"], group["ready"]
    title = Text("what Roadstead applied: " if kind == _COMPONENT else f"{kind}: ")
    title.append(_ready(ready, total, "object"), style=_style(ready + group["suspended"], total))
    working = total - ready - group["suspended"] - group["failed"]
    for number, word in (
        (group["suspended"], "suspended"),
        (group["failed"], "failed"),
        (working, "at work"),
    ):
        if number > 0:
            title.append(f", {number} {word}", style="red" if word == "failed" else "yellow")
    return title


def _ready(ready: int, total: int, noun: str) -> str:
    return f"{ready} of {many(total, noun)} ready" if total else f"no {noun}s"


def _style(good: int, total: int) -> str:
    return "green" if good == total else "yellow"


def _add_objects(
    branch: Tree, objects: Sequence[schema.UnhealthyObjectView], failed: int, now: datetime
) -> None:
    for unhealthy in objects:
        place = f"{unhealthy['namespace']}/" if unhealthy["namespace"] else ""
        text = Text.assemble(
            f"{unhealthy['kind']} {place}{unhealthy['name']}: ", (unhealthy["reason"], "red")
        )
        text.append(f" for {age(unhealthy['since'], now)}", style="dim")
        branch.add(text.append(f": {unhealthy['message']}" if unhealthy["message"] else ""))
    if failed > len(objects):
        branch.add(Text(f"and {failed - len(objects)} more", style="dim"))
