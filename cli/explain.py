"""``roadstead explain``: a cluster as it is resolved, each value with the place that it comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from cli.errors import UsageError
from cli.options import Output, OutputOption
from cli.output import console, line, print_json, scalar
from cli.validate import Repository, show
from cli.worktree import Worktree, open_worktree
from shared.fleet.resolve.desired_fleet import DesiredFleet, Resolved
from shared.fleet.resolve.problems import nearest
from shared.fleet.resolve.yaml_tree import Node, without_nulls

DEFAULT = "default"
"""The source of a value that no file says."""


@dataclass(frozen=True)
class Line:
    """A line of YAML; ``source`` is "" where only the lines below it have one."""

    text: str
    source: str = ""


def explain(
    name: Annotated[str, typer.Argument(help="A cluster of the repository.")],
    path: Repository = Path(),
    *,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show a cluster as it is resolved: each value with the file and line that it comes from."""
    tree = open_worktree(path)
    desired = tree.resolve()
    if name in desired.invalid:
        if output is Output.JSON:
            print_json(
                {"name": name, "problems": [vars(problem) for problem in desired.cluster_problems[name]]}
            )
        else:
            show(desired.cluster_problems[name], tree, console())
        raise typer.Exit(1)
    found = desired.explained(name)
    if found is None:
        raise UsageError(unknown_cluster(name, desired))
    if output is Output.JSON:
        print_json(as_json(found, tree))
        return
    out = console()
    for shown in (*_head(found, tree), *laid_out(list(lines(found)), out.width)):
        out.print(shown, soft_wrap=True)


def unknown_cluster(name: str, desired: DesiredFleet) -> str:
    """Return the words for a cluster that is not there."""
    names = sorted({*desired.clusters, *desired.invalid})
    near = nearest(name, names)
    right = f"did you mean {near}?" if near else "roadstead new cluster adds one"
    return f"there is no cluster {line(name)} in the repository; {right}"


def _head(found: Resolved, tree: Worktree) -> Iterator[Text]:
    cluster = found.desired
    of = [("class", cluster.cluster_class), ("environment", cluster.environment)]
    words = ", ".join(f"{kind} {name}" for kind, name in of if name) or "no class, no environment"
    yield Text(f"# {cluster.name}: {words}; fleet {tree.fleet}", style="dim")


def as_json(found: Resolved, tree: Worktree) -> dict[str, Any]:
    """Return the resolved cluster for scripts; ``sources`` tells "file:line" by the path of each value."""
    cluster, spec = found.desired, found.desired.document()["spec"]
    return {
        "fleet": tree.fleet,
        "name": cluster.name,
        "class": cluster.cluster_class,
        "environment": cluster.environment,
        "spec": spec,
        "sources": dict(_sources(spec, without_nulls(found.node).child("spec"), "spec")),
    }


def _sources(value: Any, node: Node | None, path: str) -> Iterator[tuple[str, str]]:
    """Yield the path of each value, written as in a plan, and its place."""
    if value and isinstance(value, dict):
        for key, inner in value.items():
            yield from _sources(inner, node.child(key) if node else None, f"{path}.{key}")
    elif value and isinstance(value, list):
        for number, inner in enumerate(value):
            name = inner.get("name", number) if isinstance(inner, dict) else number
            yield from _sources(inner, node.child(number) if node else None, f"{path}[{name}]")
    else:
        yield path, _source(node)


def lines(found: Resolved) -> Iterator[Line]:
    """Yield the resolved spec as YAML; what is empty and nobody wrote is left out."""
    spec = found.desired.document()["spec"]
    yield Line("spec:")
    yield from _map(spec, without_nulls(found.node).child("spec"), "  ")


def _map(value: Mapping[str, Any], node: Node | None, indent: str) -> Iterator[Line]:
    for key, inner in value.items():
        below = node.child(key) if node else None
        if inner or below is not None or inner is False or inner == 0:
            yield from _entry(f"{indent}{scalar(key)}:", inner, below, indent)


def _entry(head: str, value: Any, node: Node | None, indent: str) -> Iterator[Line]:
    if not value or not isinstance(value, dict | list):
        yield Line(f"{head} {scalar(value)}", _source(node))
        return
    yield Line(head)
    if isinstance(value, dict):
        yield from _map(value, node, f"{indent}  ")
        return
    for number, item in enumerate(value):
        yield from _item(item, node.child(number) if node else None, f"{indent}  ")


def _item(value: Any, node: Node | None, indent: str) -> Iterator[Line]:
    """Yield an item of a list: its first line begins with the dash, and is its name where it has one."""
    named = {"name": value["name"], **value} if isinstance(value, dict) and "name" in value else value
    found = list(_map(named, node, f"{indent}  ")) if isinstance(named, dict) else []
    if not found:
        yield Line(f"{indent}- {scalar(value)}", _source(node))
        return
    yield Line(f"{indent}- {found[0].text.lstrip()}", found[0].source)
    yield from found[1:]


def _source(node: Node | None) -> str:
    return f"{node.mark.file}:{node.mark.line}" if node else DEFAULT


def laid_out(found: list[Line], width: int) -> Iterator[Text]:
    """Yield lines with their sources as aligned comments, or above where both do not fit the width."""
    room = width - max((len(each.source) for each in found), default=0) - 4
    column = max((len(each.text) for each in found if each.source and len(each.text) <= room), default=0)
    for each in found:
        if not each.source:
            yield Text(each.text)
        elif len(each.text) <= room:
            yield Text.assemble(each.text.ljust(column), (f"  # {each.source}", "dim"))
        else:
            indent = " " * (len(each.text) - len(each.text.lstrip()))
            yield Text(f"{indent}# {each.source}", style="dim")
            yield Text(each.text)
