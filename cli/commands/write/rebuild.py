"""``roadstead rebuild``: writes into the files that another cluster takes the place of one.

It is deleted and created again, or another one is created next to it first.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer
import yaml
from rich.text import Text

from cli.commands.write.init import check_new
from cli.commands.write.replacement import create_beside
from cli.errors import CommandError, UsageError
from cli.options import RepositoryPath, cluster_name
from cli.terminal.output import echo
from cli.text import line
from cli.worktree import Worktree, open_worktree
from shared.language.model.kinds import REBUILD
from shared.language.resolve.problems import nearest
from shared.language.resolve.repository_layout import cluster_path
from shared.language.yaml.editing import NotEditable, with_value
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
