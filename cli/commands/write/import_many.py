"""``roadstead import --subscription``: the manifests of many clusters, with the classes that they share."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.padding import Padding
from rich.text import Text

from cli import templates
from cli.commands.write import import_pull
from cli.commands.write.imported_file import comments_of, inferred_classes, own_part, text_of
from cli.commands.write.init import check_known, write_new
from cli.commands.write.validate import print_problems
from cli.errors import CommandError, ExitCode, NotFound, RequestRefused, UsageError
from cli.options import check
from cli.terminal.output import console, echo
from cli.terraform_state import TerraformCluster, read_state
from cli.text import line
from cli.worktree import Worktree, open_worktree
from shared.app.api import schema
from shared.language.model.base import Uuid
from shared.language.resolve.repository_layout import CLASSES, Files, cluster_path
from shared.sentences import many

if TYPE_CHECKING:
    from cli.fleet_api.client import Api

CLASS = "imported"
"""The name of the first class that is inferred."""


@dataclass
class Found:
    """What was read of Azure: manifests by name, why others have none, and how many a fleet manages."""

    manifests: dict[str, schema.Import] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    managed: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class ImportChoice:
    """Which clusters are imported: of subscriptions, or of a state; ``base`` of a pull request, or ""."""

    subscriptions: Sequence[str]
    state: Path | None
    chosen: Mapping[str, str]
    base: str = ""


def import_many(path: Path, wanted: ImportChoice, api: Api) -> None:
    """Write the manifests of many clusters, and classes for them where none is given."""
    subscriptions, state, chosen = wanted.subscriptions, wanted.state, wanted.chosen
    for subscription in subscriptions:
        check("--subscription", Uuid, subscription)
    goal = import_pull.find_target(path, wanted.base) if wanted.base else None
    tree = import_pull.tree_of(goal, path) if goal else open_worktree(path)
    check_known(tree, chosen)
    terraform = read_state(state) if state is not None else None
    found = _read(api, tree, {name.lower() for name in subscriptions}, terraform)
    if not found.manifests:
        _say_skipped(found)
        raise CommandError("there is no cluster to import")
    classes, members = ({}, {}) if chosen["class"] else _inferred(tree, found, chosen["environment"])
    files = dict(classes)
    over = _with(tree, classes)
    for name, manifest in found.manifests.items():
        own = own_part(over, manifest, {**chosen, "class": members.get(name, chosen["class"])})
        body = {"metadata": manifest["manifest"]["metadata"], "spec": own}
        comments = comments_of(manifest["left"], manifest["differences"])
        file = cluster_path(name)
        files[file] = templates.head("Cluster", file) + comments + text_of(body)
    if goal is None:
        write_new(tree.root, files)
    _say(tree, found, classes, members, "Proposes" if goal else "Wrote")
    if terraform:
        _say_terraform([terraform[manifest["resource"].lower()] for manifest in found.manifests.values()])
    _check(_with(tree, files) if goal else open_worktree(tree.root), found)
    if goal is not None:
        address = import_pull.propose(goal, path, files, _body(found))
        echo(Text(f"Opened, or found open: {line(address)}"), soft_wrap=True)


def _body(found: Found) -> str:
    """Return what the pull request says: what is imported, and what a manifest cannot express."""
    lines = [
        f"{many(len(found.manifests), 'cluster')} that exist in Azure. Roadstead reads them, and writes "
        "nothing until each is adopted: docs/how-to/import-a-cluster.md.",
        "",
    ]
    for name, manifest in found.manifests.items():
        lines.append(f"- `{name}`: `{line(manifest['resource'])}`")
        comments = comments_of(manifest["left"], manifest["differences"]).splitlines()
        lines += [f"  - {line(comment.removeprefix('# '))}" for comment in comments]
    return "\n".join(lines)


def _read(
    api: Api, tree: Worktree, subscriptions: set[str], terraform: Mapping[str, TerraformCluster] | None
) -> Found:
    found, names = Found(), set(tree.files.folders)
    wanted = {
        cluster: entry
        for cluster, entry in (terraform or {}).items()
        if not subscriptions or entry.subscription in subscriptions
    }
    listed = {
        cluster["resource"].lower(): cluster
        for subscription in sorted(subscriptions or {entry.subscription for entry in wanted.values()})
        for cluster in api.read(schema.Importable, "importable", subscription=subscription)["clusters"]
    }
    for missing in sorted(wanted.keys() - listed.keys()):
        found.skipped[missing] = "the state has it, and Azure does not, or Roadstead may not see it"
    for place, cluster in sorted(listed.items()):
        if terraform is not None and place not in wanted:
            continue
        resource = cluster["resource"]
        if cluster["fleet"]:
            found.managed[cluster["fleet"]] += 1
            continue
        try:
            manifest = api.read(schema.Import, "import", resource=resource)
        except (NotFound, RequestRefused) as error:
            found.skipped[resource] = str(error)
            continue
        name = str(manifest["manifest"]["metadata"]["name"])
        if name in names:
            found.skipped[resource] = f"there is another cluster {name}, and a name is that of one cluster"
            continue
        names.add(name)
        found.manifests[name] = manifest
    return found


def _inferred(tree: Worktree, found: Found, environment: str) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return the files of the classes that clusters share, and the class of each cluster that has one."""
    chosen = {"class": "", "environment": environment}
    specs = {name: own_part(tree, manifest, chosen) for name, manifest in found.manifests.items()}
    known, files, members = tree.layers().classes, dict[str, str](), dict[str, str]()
    names = (name for name in _numbered(CLASS) if name not in known)
    for kind, name in zip(inferred_classes(specs), names, strict=False):
        file = f"{CLASSES}/{name}.yaml"
        comment = f"# What most of {many(len(kind.clusters), 'imported cluster')} have.\n"
        body = {"metadata": {"name": name}, "spec": kind.spec}
        files[file] = templates.head("ClusterClass", file) + comment + text_of(body)
        members |= dict.fromkeys(kind.clusters, name)
    return files, members


def _numbered(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        yield f"{name}-{number}"
        number += 1


def _with(tree: Worktree, files: Mapping[str, str]) -> Worktree:
    """Return a repository as if it had more files."""
    blobs = {**tree.files.blobs, **dict.fromkeys(files, "")}
    more = {path: text.encode() for path, text in files.items()}
    return replace(
        tree,
        files=Files(blobs, tree.files.other),
        read=lambda path: more[path] if path in more else tree.read(path),
    )


def _say(
    tree: Worktree, found: Found, classes: Mapping[str, str], members: Mapping[str, str], did: str
) -> None:
    echo(Text(f"{did} {many(len(found.manifests), 'manifest')} in {tree.shown('clusters/')}."))
    for file in classes:
        name = Path(file).stem
        own = [cluster for cluster, kind in members.items() if kind == name]
        echo(Text(f"{did} {tree.shown(file)}, for {', '.join(own)}."))
    for name, manifest in found.manifests.items():
        for comment in comments_of(manifest["left"], manifest["differences"]).splitlines():
            echo(Padding(Text(f"{name}: {comment.removeprefix('# ')}"), (0, 0, 0, 2), expand=False))
    _say_skipped(found)


def _say_skipped(found: Found) -> None:
    for fleet, number in sorted(found.managed.items()):
        echo(Text(f"Not imported: {many(number, 'cluster')} that the fleet {line(fleet)} manages."))
    for resource, reason in found.skipped.items():
        echo(Text(f"Not imported: {line(resource)}: {line(reason)}"), soft_wrap=True)


def _say_terraform(clusters: Sequence[TerraformCluster]) -> None:
    """Print how what was imported leaves the state of Terraform, and what stays in it."""
    taken = [shlex.quote(address) for cluster in clusters for address in cluster.taken]
    command = " \\\n  ".join(("terraform state rm", *taken))
    echo(
        Text(
            f"When they are adopted, remove them from the state and their blocks from the files:\n{command}"
        ),
        soft_wrap=True,
    )
    others = dict.fromkeys(address for cluster in clusters for address in cluster.others)
    if others:
        echo(Text("These name an imported cluster, and stay in Terraform:"))
        for address in others:
            echo(Text(f"  {address}"), soft_wrap=True)


def _check(after: Worktree, found: Found) -> None:
    """Print what the new manifests lack, and fail if they lack anything."""
    problems = after.resolve().invalid
    lacking = [problem for name in found.manifests for problem in problems.get(name, ())]
    if lacking:
        echo("The manifests are not valid yet:")
        print_problems(list(dict.fromkeys(lacking)), after, console())
        raise typer.Exit(ExitCode.FAILED)


def target(resource: str | None, path: Path | None) -> Path:
    """Return the folder of many clusters: their only argument."""
    if resource is not None and path is not None:
        raise UsageError("--subscription and --from-terraform take no RESOURCE_ID; give PATH alone")
    return path or Path(resource or "")
