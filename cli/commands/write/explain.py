"""``roadstead explain``: a resolved cluster, each value with the file and line that it comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from cli.commands.write.validate import print_problems
from cli.errors import CommandError, ExitCode
from cli.options import RepositoryPath, cluster_name
from cli.terminal.output import Output, OutputOption, console, echo, show
from cli.text import line, scalar
from cli.worktree import Worktree, open_worktree
from shared.language.resolve.desired_fleet import DesiredFleet, ResolvedCluster
from shared.language.resolve.problems import nearest
from shared.language.yaml.nodes import Node, without_nulls

MOST = 60
"""Columns of the longest line that has its source behind it."""
DEFAULT = "default"
"""The source of a value that no file sets."""


@dataclass(frozen=True)
class ManifestLine:
    """A line of YAML; ``source`` is "" where only the lines below it have one."""

    text: str
    source: str = ""


def explain(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A cluster of the repository.")],
    path: RepositoryPath = Path(),
    *,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show a cluster with the source of each value: its file and line."""
    name = name.removeprefix("cluster/")
    tree = open_worktree(path)
    desired = tree.resolve()
    if name in desired.invalid:
        _print_invalid(name, desired, tree, output)
        raise typer.Exit(ExitCode.FAILED)
    found = desired.explained(name)
    if found is None:
        raise CommandError(_unknown(cluster_name(name), desired))
    if output in (Output.TABLE, Output.WIDE):
        width = console().width
        echo(*_head(found, tree), *laid_out(list(lines(found)), width), soft_wrap=True)
    else:
        show(_view(found, tree), output, table=lambda _: Text(), names=lambda: [f"cluster/{name}"])


def _print_invalid(name: str, desired: DesiredFleet, tree: Worktree, output: Output) -> None:
    """Print the problems of a cluster that cannot be resolved."""
    problems = desired.invalid[name]
    if output in (Output.TABLE, Output.WIDE):
        print_problems(problems, tree, console())
    else:
        view = {"name": name, "problems": [vars(problem) for problem in problems]}
        show(view, output, table=lambda _: Text(), names=lambda: [f"cluster/{name}"])


def _unknown(name: str, desired: DesiredFleet) -> str:
    """Return the error for a cluster that is not in the repository."""
    names = sorted({*desired.clusters, *desired.invalid})
    near = nearest(name, names)
    hint = f"did you mean {near}?" if near else "roadstead new cluster adds one"
    return f"there is no cluster {line(name)} in the repository; {hint}"


def _head(found: ResolvedCluster, tree: Worktree) -> Iterator[Text]:
    cluster = found.desired
    of = [("class", cluster.cluster_class), ("environment", cluster.environment)]
    layers = ", ".join(f"{kind} {name}" for kind, name in of if name) or "no class, no environment"
    yield Text(f"# {cluster.name}: {layers}; fleet {tree.fleet}", style="dim")


def _view(found: ResolvedCluster, tree: Worktree) -> dict[str, Any]:
    """Return the resolved cluster for scripts; ``sources`` has "file:line" by the path of each value."""
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


def lines(found: ResolvedCluster) -> Iterator[ManifestLine]:
    """Yield the resolved spec as YAML, without the empty values that no file sets."""
    spec = found.desired.document()["spec"]
    yield ManifestLine("spec:")
    yield from _map(spec, without_nulls(found.node).child("spec"), "  ")


def _map(value: Mapping[str, Any], node: Node | None, indent: str) -> Iterator[ManifestLine]:
    for key, inner in value.items():
        below = node.child(key) if node else None
        if inner or below is not None or inner is False or inner == 0:
            yield from _entry(f"{indent}{scalar(key)}:", inner, below, indent)


def _entry(head: str, value: Any, node: Node | None, indent: str) -> Iterator[ManifestLine]:
    if not value or not isinstance(value, dict | list):
        yield ManifestLine(f"{head} {scalar(value)}", _source(node))
        return
    yield ManifestLine(head)
    if isinstance(value, dict):
        yield from _map(value, node, f"{indent}  ")
        return
    for number, item in enumerate(value):
        yield from _item(item, node.child(number) if node else None, f"{indent}  ")


def _item(value: Any, node: Node | None, indent: str) -> Iterator[ManifestLine]:
    """Yield an item of a list: the dash, then its name first if it has one."""
    named = {"name": value["name"], **value} if isinstance(value, dict) and "name" in value else value
    found = list(_map(named, node, f"{indent}  ")) if isinstance(named, dict) else []
    if not found:
        yield ManifestLine(f"{indent}- {scalar(value)}", _source(node))
        return
    yield ManifestLine(f"{indent}- {found[0].text.lstrip()}", found[0].source)
    yield from found[1:]


def _source(node: Node | None) -> str:
    return f"{node.mark.file}:{node.mark.line}" if node else DEFAULT


def laid_out(found: list[ManifestLine], width: int) -> Iterator[Text]:
    """Yield lines with their sources as aligned comments, or above lines that are too long for one."""
    room = min(MOST, width - max((len(entry.source) for entry in found), default=0) - 4)
    column = max((len(entry.text) for entry in found if entry.source and len(entry.text) <= room), default=0)
    for entry in found:
        if not entry.source:
            yield Text(entry.text)
        elif len(entry.text) <= room:
            yield Text.assemble(entry.text.ljust(column), (f"  # {entry.source}", "dim"))
        else:
            indent = " " * (len(entry.text) - len(entry.text.lstrip()))
            yield Text(f"{indent}# {entry.source}", style="dim")
            yield Text(entry.text)
