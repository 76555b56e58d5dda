"""What one cluster is asked: ``roadstead why``, ``events``, ``tree`` and ``output``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from cli.errors import NotFound
from cli.options import Address, Before, ClusterArgument, Limit, before_time, cluster_name
from cli.terminal.cluster_table import applied, phase
from cli.terminal.output import Output, OutputOption, print_json, show
from cli.terminal.render_cluster import events as event_table
from cli.terminal.render_cluster import why as why_table
from cli.text import printable
from cli.times import age
from shared.app.api import schema
from shared.language.pin import short_revision
from shared.sentences import many


def why(address: Address, name: ClusterArgument, *, output: OutputOption = Output.TABLE) -> None:
    """Explain what a cluster waits for, and what to do.

    Shows what the cluster does, since when, what was tried, what happens next and when, and what the
    newest plan does not carry out.
    """
    name = cluster_name(name)
    with address.connect() as api:
        view = api.why(name)
    show(
        view,
        output,
        table=lambda _: why_table(view, datetime.now(UTC)),
        names=lambda: [f"cluster/{view['name']}"],
    )


def events(
    address: Address,
    name: ClusterArgument,
    *,
    limit: Limit = 50,
    before: Before = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """List the events of a cluster, newest first, also after it was deleted."""
    name = cluster_name(name)
    moment = before_time(before)
    with address.connect() as api:
        view = api.events(name, limit=limit, before=moment)

    def table(wide: bool) -> RenderableType:
        listed = event_table(view["events"], datetime.now(UTC), wide=wide)
        older = Text(f"older events: --before {view['next']}", style="dim")
        return Group(listed, older) if view["next"] else listed

    show(view, output, table=table, names=lambda: (f"event/{name}/{event['at']}" for event in view["events"]))


def tree(address: Address, name: ClusterArgument, *, output: OutputOption = Output.TABLE) -> None:
    """Show what a cluster consists of, and what is unhealthy.

    Shows its conditions, node pools, sources, Kustomizations, Helm releases and workloads, as the last check
    read them. What is healthy is counted; what is not is named, with the reason and since when.
    """
    name = cluster_name(name)
    with address.connect() as api:
        view = api.read(schema.TreeView, f"clusters/{name}/tree")
    show(
        view,
        output,
        table=lambda _: cluster_tree(view, datetime.now(UTC)),
        names=lambda: [f"cluster/{view['name']}"],
    )


def output(
    address: Address,
    name: ClusterArgument,
    key: Annotated[str, typer.Argument(metavar="KEY", help="One output; its value alone is printed.")] = "",
    *,
    as_map: Annotated[
        bool,
        typer.Option("--json", help="Print one JSON object with the outputs alone, as Terraform reads it."),
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show the outputs of a cluster, or one of them.

    The outputs are what the ConfigMap cluster-facts has: where the cluster is in Azure, its API server, its
    OIDC issuer, its identities, and its labels. The command fails while they are not known.
    """
    name = cluster_name(name)
    with address.connect() as api:
        view = api.read(schema.Outputs, f"clusters/{name}/output")
    outputs = view["outputs"]
    if not view["known"]:
        raise NotFound(f"{name} has no outputs yet: no job has read it in Azure ({view['phase']})")
    if key and key not in outputs:
        raise NotFound(f"{name} has no output {key}; it has {', '.join(outputs)}")
    if key:
        sys.stdout.write(f"{printable(outputs[key])}\n")
        return
    if as_map:
        print_json(outputs)
        return
    show(
        view,
        output,
        table=lambda _: _output_table(outputs),
        names=lambda: [f"output/{name}" for name in outputs],
    )


def _output_table(outputs: dict[str, str]) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    found = Table(box=None, show_header=False, pad_edge=False)
    found.add_column(no_wrap=True)
    found.add_column(overflow="fold")
    for key, value in printable(outputs).items():
        found.add_row(Text(key), Text(value))
    return found


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
