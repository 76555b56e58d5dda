"""``roadstead import``: the manifest of a cluster that exists in Azure, to be adopted."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer
import yaml
from rich.padding import Padding
from rich.text import Text

from cli import templates
from cli.client import Api, ApiError
from cli.errors import UsageError
from cli.options import DEFAULT_URL, Key, Url
from cli.output import console, line
from cli.scaffold import check_known, write_new
from cli.validate import show
from cli.worktree import Worktree, open_worktree
from shared.fleet.importing.minimal_manifest import minimal_spec
from shared.fleet.resolve.placeholders import Placeholders
from shared.fleet.resolve.repository_layout import cluster_path
from shared.fleet.resolve.yaml_tree import plain_value


def import_cluster(
    resource: Annotated[str, typer.Argument(metavar="RESOURCE_ID", help="The cluster's id in Azure.")],
    *,
    cluster_class: Annotated[str, typer.Option("--class", help="A file of classes/, without .yaml.")] = "",
    environment: Annotated[
        str, typer.Option("--environment", help="A file of environments/, without .yaml.")
    ] = "",
    path: Annotated[
        Path | None, typer.Option("--path", help="A fleet repository to write the manifest into.")
    ] = None,
    url: Url = DEFAULT_URL,
    key: Key = "",
) -> None:
    """Write down a cluster that exists: print its manifest, or add it to a fleet repository."""
    if path is None and (cluster_class or environment):
        raise UsageError("--class and --environment are of a fleet repository; give it with --path")
    tree = open_worktree(path) if path is not None else None
    if tree is not None:
        check_known(tree, {"class": cluster_class, "environment": environment})
    with Api(url, key) as api:
        found = api.get(f"import?resource={quote(resource, safe='')}")
    try:
        manifest, spec = found["manifest"], found["spec"]
        name, left, changes = manifest["metadata"]["name"], found["left"], found["differences"]
    except (KeyError, TypeError) as error:
        raise ApiError(f"{url} answered with something else than a manifest") from error
    if tree is None:
        sys.stdout.write(_comments(left, changes) + text_of(manifest))
        return
    if name in tree.files.folders:
        raise UsageError(f"there is a cluster {line(name)} already, see {cluster_path(name)}")
    chosen = {"class": cluster_class, "environment": environment}
    own = {key: value for key, value in chosen.items() if value}
    own |= minimal_spec(
        spec, manifest["spec"], _layers(tree, {**chosen, "name": name, "location": spec["location"]})
    )
    _add(tree, {"metadata": manifest["metadata"], "spec": own}, _comments(left, changes))


def _layers(tree: Worktree, values: Mapping[str, str]) -> Mapping[str, Any]:
    """Return what the fleet, a class and an environment say, with its texts filled in."""
    base = tree.layers().base(values["class"], values["environment"])
    spec = plain_value(base.node, Placeholders(values).fill, {})
    return spec if isinstance(spec, dict) else {}


def _add(tree: Worktree, body: Mapping[str, Any], comments: str) -> None:
    """Write a cluster's manifest, and tell what it lacks or cannot say."""
    name = body["metadata"]["name"]
    file = cluster_path(name)
    write_new(tree.root, {file: templates.head("Cluster", file) + comments + text_of(body)})
    out = console()
    out.print(Text(f"{tree.shown(file)} is written."), soft_wrap=True)
    for said in comments.splitlines():
        out.print(Padding(Text(said.removeprefix("# ")), (0, 0, 0, 2)))
    problems = open_worktree(tree.root).resolve().cluster_problems.get(name, ())
    if problems:
        out.print("It needs more:")
        show(problems, tree, out)
        raise typer.Exit(1)


def _comments(left: Sequence[str], changes: Sequence[str]) -> str:
    said = [f"# Left out: {line(each)}\n" for each in left]
    said += [f"# Differs from what is there: {line(each)}\n" for each in changes]
    return "".join(said)


class _Dumper(yaml.SafeDumper):
    """Writes YAML that is read the same by YAML 1.1 and 1.2: text that may be a number is quoted."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        """Indent the items of lists too."""
        super().increase_indent(flow, False)

    def ignore_aliases(self, _data: Any) -> bool:
        """Write everything out: a manifest has no aliases."""
        return True


_NUMBERLIKE = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|0o[0-7]+")


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = '"' if not value.isprintable() else "'" if _NUMBERLIKE.fullmatch(value) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def text_of(document: Mapping[str, Any]) -> str:
    """Return a document as YAML, in its own order."""
    return yaml.dump(dict(document), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
