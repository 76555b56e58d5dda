"""``roadstead rebuild``: writes into the files that another cluster takes the place of one.

It is deleted and created again, or, with ``--as``, another one is created next to it first. What cannot
exist next to the old cluster is found by resolving both, before anything of the old one is changed.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer
import yaml
from rich.text import Text

from cli.commands.write.init import check_new
from cli.commands.write.validate import print_problems
from cli.errors import CommandError, ExitCode, UsageError
from cli.options import RepositoryPath, check, cluster_name
from cli.terminal.output import console, echo
from cli.text import line
from cli.worktree import Worktree, open_worktree
from shared.language.model.base import ClusterName, Location
from shared.language.model.kinds import ADOPT, REBUILD, REPLACES
from shared.language.resolve.problems import nearest
from shared.language.resolve.repository_layout import CLUSTERS, cluster_path
from shared.language.yaml.editing import NotEditable, with_value, without
from shared.language.yaml.nodes import Root
from shared.language.yaml.parser import YamlError, parse

ANNOTATION = ("metadata", "annotations", REBUILD)


def rebuild(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The cluster's name.")],
    path: RepositoryPath = Path(),
    *,
    new: Annotated[
        str,
        typer.Option(
            "--as",
            metavar="NEW",
            help="Create it next to the old one, under this name, and delete that then.",
        ),
    ] = "",
    location: Annotated[
        str, typer.Option("--location", metavar="REGION", help="With --as: the region of the new one.")
    ] = "",
) -> None:
    """Ask for a rebuild in a manifest: the merge deletes the cluster and creates it again.

    With --as, the merge creates another cluster from the same manifest, and deletes the old one once that is
    Ready. The files alone change. The merge has the guards of a delete.
    """
    name = cluster_name(name)
    tree, file = open_worktree(path), cluster_path(name)
    if file not in tree.files.blobs:
        near = nearest(name, tree.files.folders)
        hint = f"; did you mean {near}?" if near else ""
        raise CommandError(f"there is no cluster {name}: {file} does not exist{hint}")
    if location and not new:
        raise UsageError("--location is for --as; otherwise change the manifest of the cluster itself")
    cluster = tree.resolve().clusters.get(name)
    attached = cluster is not None and cluster.is_attached
    if new:
        create_beside(tree, name, new, location, attached=attached)
        return
    if attached:
        raise CommandError(f"{name} is outside Azure, and only a cluster in Azure is rebuilt; see --as")
    moment = _write(tree, file, datetime.now(UTC))
    done = f"Wrote {REBUILD}: {moment} into {tree.shown(file)}."
    effect = f"Once that is merged, {name} is deleted with everything that runs there, and created again."
    echo(Text(f"{done}\n{effect}\nSee it first: roadstead plan"), soft_wrap=True)
    check_new(tree, name)


def _write(tree: Worktree, file: str, now: datetime) -> str:
    """Write a time that is later than the one in the file, and return it."""
    content = tree.read(file)
    try:
        before = parse(content, file).find(ANNOTATION).value
        moment = f"{max(now, _after(before)):%Y-%m-%dT%H:%M:%SZ}"
        changed = with_value(content.decode(), ANNOTATION, moment)
    except (YamlError, NotEditable, UnicodeDecodeError, yaml.YAMLError) as error:
        hint = f"write the annotation {REBUILD} into its metadata by hand"
        raise CommandError(line(f"{tree.shown(file)}: {error}; {hint}")) from error
    try:
        (tree.root / file).write_bytes(changed.encode())
    except OSError as error:
        raise CommandError(f"{error.filename} cannot be written: {error.strerror}") from error
    return moment


def _after(before: object) -> datetime:
    """Return the first second after the time of an annotation, or long ago for none."""
    try:
        given = datetime.fromisoformat(before) if isinstance(before, str) else None
    except ValueError:
        given = None
    if given is None or given.tzinfo is None:
        return datetime.min.replace(tzinfo=UTC)
    return given.astimezone(UTC) + timedelta(seconds=1)


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
    _write_new(tree, target, content)
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


def _write_new(tree: Worktree, file: str, content: str) -> None:
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
