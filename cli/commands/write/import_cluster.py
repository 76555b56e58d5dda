"""``roadstead import``: the manifest of an AKS cluster that exists, to adopt it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from rich.padding import Padding
from rich.text import Text

from cli import templates
from cli.commands.write.init import ClassOption, EnvironmentOption, check_known, check_new, write_new
from cli.errors import CommandError, UsageError
from cli.options import DEFAULT_TIMEOUT, DEFAULT_URL, KeyFile, Timeout, Url, connect
from cli.terminal.output import echo
from cli.text import line
from cli.worktree import Worktree, open_worktree
from shared.azure.importer import minimal_spec
from shared.language.resolve.manifest_file import Placeholders
from shared.language.resolve.repository_layout import cluster_path
from shared.language.yaml.editing import ManifestDumper
from shared.language.yaml.nodes import plain_value


def import_cluster(
    resource: Annotated[str, typer.Argument(metavar="RESOURCE_ID", help="The cluster's id in Azure.")],
    path: Annotated[
        Path | None,
        typer.Argument(metavar="PATH", help="The folder of the fleet repository; without it, print."),
    ] = None,
    *,
    cluster_class: ClassOption = "",
    environment: EnvironmentOption = "",
    url: Url = DEFAULT_URL,
    key_file: KeyFile = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> None:
    """Write the manifest of a cluster in Azure: print it, or add it to a fleet repository.

    Roadstead reads the cluster with its own identity, and changes nothing in Azure.
    """
    if path is None and (cluster_class or environment):
        raise UsageError("--class and --environment need a fleet repository; give its PATH")
    tree = open_worktree(path) if path is not None else None
    if tree is not None:
        check_known(tree, {"class": cluster_class, "environment": environment})
    with connect(url, key_file, timeout) as api:
        found = api.imported(resource)
    manifest, spec, comments = (
        found["manifest"],
        found["spec"],
        _comments(found["left"], found["differences"]),
    )
    if tree is None:
        sys.stdout.write(comments + text_of(manifest))
        return
    name = str(manifest["metadata"]["name"])
    if name in tree.files.folders:
        raise CommandError(f"there is a cluster {line(name)} already, see {cluster_path(name)}")
    chosen = {"class": cluster_class, "environment": environment}
    own = {key: value for key, value in chosen.items() if value}
    own |= minimal_spec(
        spec, manifest["spec"], _layers(tree, {**chosen, "name": name, "location": spec["location"]})
    )
    _add(tree, {"metadata": manifest["metadata"], "spec": own}, comments)


def _layers(tree: Worktree, values: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the merged fields of the fleet, a class and an environment, placeholders filled in."""
    base = tree.layers().base(values["class"], values["environment"])
    merged = plain_value(base.node, Placeholders(values).fill, {})
    return merged if isinstance(merged, dict) else {}


def _add(tree: Worktree, body: Mapping[str, Any], comments: str) -> None:
    """Write the manifest of a cluster, and print what it lacks or cannot express."""
    name = body["metadata"]["name"]
    file = cluster_path(name)
    write_new(tree.root, {file: templates.head("Cluster", file) + comments + text_of(body)})
    echo(Text(f"Wrote {tree.shown(file)}."), soft_wrap=True)
    for comment in comments.splitlines():
        echo(Padding(Text(comment.removeprefix("# ")), (0, 0, 0, 2), expand=False))
    check_new(tree, name)


def _comments(left: Sequence[str], changes: Sequence[str]) -> str:
    comments = [f"# Left out: {line(name)}\n" for name in left]
    comments += [f"# Differs from the cluster: {line(change)}\n" for change in changes]
    return "".join(comments)


def text_of(document: Mapping[str, Any]) -> str:
    """Return a document as YAML, in its own order."""
    return yaml.dump(dict(document), Dumper=ManifestDumper, sort_keys=False, allow_unicode=True, width=100)
