"""``roadstead import``: the manifest of an AKS cluster that exists, or of many, to adopt them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.padding import Padding
from rich.text import Text

from cli import templates
from cli.commands.write.import_many import ImportChoice, import_many, target
from cli.commands.write.imported_file import comments_of, own_part, text_of
from cli.commands.write.init import ClassOption, EnvironmentOption, check_known, check_new, write_new
from cli.errors import CommandError, UsageError
from cli.options import Address
from cli.terminal.output import echo
from cli.text import line
from cli.worktree import Worktree, open_worktree
from shared.app.api import schema
from shared.language.resolve.repository_layout import cluster_path


def import_cluster(
    address: Address,
    resource: Annotated[
        str | None,
        typer.Argument(metavar="RESOURCE_ID", help="The cluster's id in Azure; for many clusters, none."),
    ] = None,
    path: Annotated[
        Path | None,
        typer.Argument(metavar="PATH", help="The folder of the fleet repository; without it, print."),
    ] = None,
    *,
    cluster_class: ClassOption = "",
    environment: EnvironmentOption = "",
    subscriptions: Annotated[
        list[str] | None,
        typer.Option(
            "--subscription",
            metavar="ID",
            help="Import all clusters of a subscription that no fleet manages; may be repeated.",
        ),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            "--from-terraform",
            metavar="FILE",
            help="Import the clusters of a state of Terraform alone: what terraform state pull prints.",
        ),
    ] = None,
    pull: Annotated[
        bool,
        typer.Option(
            "--pull-request",
            help="For many clusters: write no file; open one pull request with your token in GITHUB_TOKEN.",
        ),
    ] = False,
    base: Annotated[
        str, typer.Option("--base", metavar="BRANCH", help="With --pull-request: the branch of the fleet.")
    ] = "main",
) -> None:
    """Write the manifest of a cluster in Azure: print it, or add it to a fleet repository.

    Roadstead reads the cluster with its own identity, and changes nothing in Azure. Without --class, many
    clusters get classes of what most of a similar shape share.
    """
    chosen = {"class": cluster_class, "environment": environment}
    if subscriptions or state is not None:
        wanted = ImportChoice(subscriptions or (), state, chosen, base if pull else "")
        with address.connect() as api:
            import_many(target(resource, path), wanted, api)
        return
    if pull:
        raise UsageError("--pull-request goes with --subscription or --from-terraform")
    if resource is None:
        raise UsageError("give the RESOURCE_ID of a cluster, or --subscription or --from-terraform for many")
    if path is None and (cluster_class or environment):
        raise UsageError("--class and --environment need a fleet repository; give its PATH")
    tree = open_worktree(path) if path is not None else None
    if tree is not None:
        check_known(tree, chosen)
    with address.connect() as api:
        found = api.read(schema.Import, "import", resource=resource)
    manifest, comments = found["manifest"], comments_of(found["left"], found["differences"])
    if tree is None:
        sys.stdout.write(comments + text_of(manifest))
        return
    name = str(manifest["metadata"]["name"])
    if name in tree.files.folders:
        raise CommandError(f"there is a cluster {line(name)} already, see {cluster_path(name)}")
    body = {"metadata": manifest["metadata"], "spec": own_part(tree, found, chosen)}
    _add(tree, body, comments)


def _add(tree: Worktree, body: Mapping[str, Any], comments: str) -> None:
    """Write the manifest of a cluster, and print what it lacks or cannot express."""
    name = body["metadata"]["name"]
    file = cluster_path(name)
    write_new(tree.root, {file: templates.head("Cluster", file) + comments + text_of(body)})
    echo(Text(f"Wrote {tree.shown(file)}."), soft_wrap=True)
    for comment in comments.splitlines():
        echo(Padding(Text(comment.removeprefix("# ")), (0, 0, 0, 2), expand=False))
    check_new(tree, name)
