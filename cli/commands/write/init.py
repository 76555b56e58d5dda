"""``roadstead init`` and ``roadstead new cluster`` write initial files. They overwrite no file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from cli import schemas, templates
from cli.commands.write.validate import print_problems
from cli.errors import CommandError, ExitCode, UsageError
from cli.options import RepositoryPath, check
from cli.terminal.output import console, echo
from cli.text import line
from cli.worktree import Worktree, open_worktree
from shared.language.model.base import ClusterName, Location, Uuid
from shared.language.model.git_addresses import GitUrl
from shared.language.resolve.repository_layout import cluster_path

ClassOption = Annotated[
    str, typer.Option("--class", metavar="CLASS", help="A file of classes/, without .yaml.")
]
EnvironmentOption = Annotated[
    str,
    typer.Option("--environment", metavar="ENVIRONMENT", help="A file of environments/, without .yaml."),
]


def init(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="A new or empty folder.", show_default="the current folder")
    ] = Path(),
    *,
    name: Annotated[
        str, typer.Option("--name", metavar="NAME", help="The fleet's name; by default the folder's.")
    ] = "",
    subscription: Annotated[
        str, typer.Option("--subscription", metavar="ID", help="The id of an Azure subscription.")
    ] = "",
    repository: Annotated[
        str, typer.Option("--repository", metavar="URL", help="The https address that Flux reads.")
    ] = "",
) -> None:
    """Create a fleet repository: defaults, two environments, a class, a platform, and schemas for editors."""
    fleet = name or _name_of(path)
    check("--name", ClusterName, fleet)
    if subscription:
        check("--subscription", Uuid, subscription)
    if repository:
        check("--repository", GitUrl, repository)
    if path.exists() and (not path.is_dir() or _occupied(path)):
        raise UsageError(f"{path} is not an empty folder; give a new one, because no file is overwritten")
    files = templates.repository(fleet, subscription, repository)
    write_new(path, files | {f"{schemas.FOLDER}/{file}": text for file, text in schemas.texts().items()})
    where = "" if _shown(path) == fleet else f" in {_shown(path)}"
    steps = templates.next_steps(str(path), subscription, repository)
    echo(Text(f"Created the fleet repository {fleet}{where}.\n{steps}"), soft_wrap=True)


def new_cluster(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The cluster's name.")],
    path: RepositoryPath = Path(),
    *,
    cluster_class: ClassOption = "",
    environment: EnvironmentOption = "",
    location: Annotated[
        str, typer.Option("--location", metavar="REGION", help="An Azure region such as westeurope.")
    ] = "",
) -> None:
    """Add the manifest of a cluster, and show at once which fields it still needs."""
    check("NAME", ClusterName, name)
    if location:
        check("--location", Location, location)
    tree = open_worktree(path)
    if name in tree.files.folders:
        raise CommandError(f"there is a cluster {name} already, see {cluster_path(name)}")
    check_known(tree, {"class": cluster_class, "environment": environment})
    chosen = {"class": cluster_class, "environment": environment, "location": location}
    file, text = templates.cluster(name, chosen)
    write_new(tree.root, {file: text})
    echo(Text(f"Wrote {tree.shown(file)}."), soft_wrap=True)
    check_new(tree, name)


def new_request_form(path: RepositoryPath = Path()) -> None:
    """Add the issue form for clusters by request.

    It asks what selfService in fleet.yaml allows people of GitHub.
    """
    tree = open_worktree(path)
    manifest = tree.layers().manifest
    rules = [rule for rule in manifest.spec.self_service if rule.github] if manifest else []
    if not rules:
        raise CommandError(
            "no rule of spec.selfService in fleet.yaml has github: write there which logins and teams may ask"
        )
    write_new(tree.root, {templates.REQUEST_FORM: templates.request_form(rules)})
    echo(Text(f"Wrote {tree.shown(templates.REQUEST_FORM)}."), soft_wrap=True)


def check_new(tree: Worktree, name: str) -> None:
    """Print what the new manifest of a cluster lacks, and fail if it lacks anything."""
    problems = open_worktree(tree.root).resolve().invalid.get(name, ())
    if problems:
        echo("The manifest is not valid yet:")
        print_problems(problems, tree, console())
        raise typer.Exit(ExitCode.FAILED)


def _shown(folder: Path) -> str:
    """Return a folder for a message: its own name for the current one."""
    return str(folder.resolve()) if folder.name in ("", "..") else str(folder)


def _name_of(folder: Path) -> str:
    """Return the name of a fleet, from that of its folder."""
    return re.sub(r"[^a-z0-9]+", "-", folder.resolve().name.lower())[:63].strip("-") or "fleet"


def _occupied(folder: Path) -> bool:
    """Return whether a folder has anything but git's own files."""
    return any(entry.name != ".git" for entry in folder.iterdir())


def check_known(tree: Worktree, chosen: Mapping[str, str]) -> None:
    """Refuse a class or environment that does not exist, before anything is written."""
    layers = tree.layers()
    for kind, name in chosen.items():
        message = layers.unknown(kind, name)
        if message:
            raise CommandError(line(message))


def write_new(root: Path, files: Mapping[str, str]) -> None:
    """Write files that do not exist yet; raise CommandError."""
    try:
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            with (root / path).open("x", encoding="utf-8", newline="\n") as file:
                file.write(text)
    except OSError as error:
        raise CommandError(f"{error.filename} cannot be written: {error.strerror}") from error
