"""``roadstead rebuild NAME --as NEW``: another cluster is created next to the old one, which goes afterwards.

The manifest is copied under the new name, and the old file is removed. What cannot exist next to the old
cluster is found by resolving both, before anything of the old one is changed.
"""

from __future__ import annotations

import re

import typer
import yaml
from rich.text import Text

from cli.commands.write.validate import print_problems
from cli.errors import CommandError, ExitCode, UsageError
from cli.options import check
from cli.terminal.output import console, echo
from cli.text import line
from cli.worktree import Worktree, open_worktree
from shared.language.model.base import ClusterName, Location
from shared.language.model.kinds import ADOPT, REBUILD, REPLACES
from shared.language.resolve.repository_layout import CLUSTERS, cluster_path
from shared.language.yaml.editing import NotEditable, with_value, without
from shared.language.yaml.nodes import Root
from shared.language.yaml.parser import YamlError, parse

_ANNOTATIONS = ("metadata", "annotations")
_NAMED_AFTER_IT = ("resourceGroup", "nodeResourceGroup", "dnsPrefix", "fqdnSubdomain")


def create_beside(tree: Worktree, name: str, new: str, location: str, *, attached: bool) -> None:
    """Write the manifest of a cluster that replaces another one, and remove that one's.

    ``attached``: they are outside Azure.
    """
    check("--as", ClusterName, new)
    if location:
        check("--location", Location, location)
    if new == name:
        raise UsageError("--as is the name of another cluster; without it, the cluster itself is rebuilt")
    file, target = cluster_path(name), cluster_path(new)
    if new in tree.files.folders:
        raise CommandError(f"there is a cluster {new} already: choose another name")
    inside = {path for path in (*tree.files.blobs, *tree.files.other) if path.startswith(_folder(name))}
    if inside != {file}:
        other = line(min(inside - {file}))
        raise CommandError(f"{other} is in the folder of {name}, which has to go: move the file first")
    content = _content(tree, file, name, new, location)
    _write(tree, target, content)
    problems = open_worktree(tree.root).resolve().invalid.get(new, ())
    if problems:
        echo(f"Nothing is changed: {new} cannot be created next to {name}.")
        print_problems(problems, tree, console())
        _remove(tree, target)
        raise typer.Exit(ExitCode.FAILED)
    _remove(tree, file)
    done = f"Wrote {tree.shown(target)}, which replaces {name}, and removed {tree.shown(file)}."
    effect = f"Once that is merged, {new} is created. {name} is deleted when {new} is Ready."
    if attached:
        gone = f"{name} is released when {new} is Ready; what runs there stays"
        effect = f"Once that is merged, {new} is attached. {gone}."
    echo(Text(f"{done}\n{effect}\nSee it first: roadstead plan"), soft_wrap=True)


def _folder(name: str) -> str:
    return f"{CLUSTERS}/{name}/"


def _content(tree: Worktree, file: str, name: str, new: str, location: str) -> str:
    """Return the manifest under the new name; the names in Azure that have the old one get the new one."""
    try:
        text = tree.read(file).decode()
        before = parse(text.encode(), file)
        for annotation in (ADOPT, REBUILD):
            if _has(before, annotation):
                text = without(text, (*_ANNOTATIONS, annotation))
        text = with_value(text, ("metadata", "name"), new)
        text = with_value(text, (*_ANNOTATIONS, REPLACES), name)
        for field in _NAMED_AFTER_IT:
            given = _given(before, field)
            renamed = re.sub(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", new, given)
            text = with_value(text, ("spec", field), renamed) if renamed != given else text
        return with_value(text, ("spec", "location"), location) if location else text
    except (YamlError, NotEditable, UnicodeDecodeError, yaml.YAMLError) as error:
        hint = f"write the manifest of {new} with the annotation {REPLACES}: {name} by hand"
        raise CommandError(line(f"{tree.shown(file)}: {error}; {hint}")) from error


def _has(manifest: Root, annotation: str) -> bool:
    node = manifest.child("metadata")
    node = node.child("annotations") if node else None
    return node is not None and node.child(annotation) is not None


def _given(manifest: Root, field: str) -> str:
    spec = manifest.child("spec")
    node = spec.child(field) if spec else None
    return node.value if node is not None and isinstance(node.value, str) else ""


def _write(tree: Worktree, file: str, content: str) -> None:
    path = tree.root / file
    try:
        path.parent.mkdir(parents=True)
        path.write_bytes(content.encode())
    except OSError as error:
        raise CommandError(f"{error.filename} cannot be written: {error.strerror}") from error


def _remove(tree: Worktree, file: str) -> None:
    path = tree.root / file
    try:
        path.unlink()
        path.parent.rmdir()
    except OSError as error:
        raise CommandError(f"{error.filename} cannot be removed: {error.strerror}") from error
