"""``roadstead init`` and ``roadstead new cluster``: files to start from. Nothing is ever overwritten."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from cli import schemas, templates
from cli.errors import CommandFailed, UsageError
from cli.options import check
from cli.output import console, line
from cli.validate import Repository, show
from cli.worktree import Worktree, open_worktree
from shared.fleet.manifests.base import ClusterName, GitUrl, Location, Uuid
from shared.fleet.resolve.repository_layout import cluster_path

new = typer.Typer(no_args_is_help=True, help="Add a manifest to a fleet repository.")


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that is new or empty.")],
    *,
    name: Annotated[str, typer.Option("--name", help="The fleet's name; by default the folder's.")] = "",
    subscription: Annotated[str, typer.Option("--subscription", help="An Azure subscription's id.")] = "",
    repository: Annotated[str, typer.Option("--repository", help="The https address that Flux reads.")] = "",
) -> None:
    """Write a fleet repository to start from: defaults, two environments, a class, and the schemas."""
    fleet = name or _name_of(folder)
    check("--name", ClusterName, fleet)
    check("--subscription", Uuid, subscription or templates.SUBSCRIPTION)
    check("--repository", GitUrl, repository or templates.REPOSITORY)
    if folder.exists() and (not folder.is_dir() or _occupied(folder)):
        raise UsageError(f"{folder} is not an empty folder; give a new one, nothing is overwritten")
    files = templates.repository(fleet, subscription, repository)
    write_new(folder, files | {f"{schemas.FOLDER}/{file}": text for file, text in schemas.texts().items()})
    console().print(Text(f"The fleet {fleet} is in {folder}.\n{templates.NEXT}"), end="", soft_wrap=True)


@new.command("cluster")
def new_cluster(
    name: Annotated[str, typer.Argument(help="The cluster's name.")],
    path: Repository = Path(),
    *,
    cluster_class: Annotated[str, typer.Option("--class", help="A file of classes/, without .yaml.")] = "",
    environment: Annotated[
        str, typer.Option("--environment", help="A file of environments/, without .yaml.")
    ] = "",
    location: Annotated[str, typer.Option("--location", help="An Azure region such as westeurope.")] = "",
) -> None:
    """Add a cluster, and tell at once what its manifest lacks."""
    check("NAME", ClusterName, name)
    if location:
        check("--location", Location, location)
    tree = open_worktree(path)
    if name in tree.files.folders:
        raise UsageError(f"there is a cluster {name} already, see {cluster_path(name)}")
    check_known(tree, {"class": cluster_class, "environment": environment})
    chosen = {"class": cluster_class, "environment": environment, "location": location}
    file, text = templates.cluster(name, chosen)
    write_new(tree.root, {file: text})
    console().print(Text(f"{tree.shown(file)} is written."), soft_wrap=True)
    problems = open_worktree(path).resolve().cluster_problems.get(name, ())
    if problems:
        console().print("It needs more:")
        show(problems, tree, console())
        raise typer.Exit(1)


def _name_of(folder: Path) -> str:
    """Return a fleet's name made of its folder's."""
    return re.sub(r"[^a-z0-9]+", "-", folder.resolve().name.lower())[:63].strip("-") or "fleet"


def _occupied(folder: Path) -> bool:
    """Tell whether there is anything in a folder but git's own."""
    return any(entry.name != ".git" for entry in folder.iterdir())


def check_known(tree: Worktree, chosen: Mapping[str, str]) -> None:
    """Refuse a class or environment that does not exist, before anything is written."""
    layers = tree.layers()
    for kind, name in chosen.items():
        message = layers.unknown(kind, name)
        if message:
            raise UsageError(line(message))


def write_new(root: Path, files: Mapping[str, str]) -> None:
    """Write files that do not exist yet; raise CommandFailed."""
    try:
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            with (root / path).open("x", encoding="utf-8", newline="\n") as file:
                file.write(text)
    except OSError as error:
        raise CommandFailed(f"{error.filename} cannot be written: {error.strerror}") from error
