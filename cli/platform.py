"""The platform of a fleet repository on disk: what Flux applies to its clusters, built by a tool at hand."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from configparser import ConfigParser
from configparser import Error as ConfigError
from dataclasses import dataclass
from pathlib import Path

from cli.worktree import ReadOnce, Worktree
from shared.adapters.kustomize import kustomize_program
from shared.language.desired import Desired
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.language.resolve.problems import Problem
from shared.platform.builds.build import Builds, NoKustomize
from shared.platform.builds.inventories import Inventories
from shared.platform.inventory import Inventory
from shared.platform.pins import roots_of
from shared.platform.source.tree import Tree, near_path
from shared.platform.validation import findings
from shared.sentences import many

_REPOSITORY = re.compile(
    r"(?:[a-z+]+://)?(?:[^@/]+@)?([^/:]+)(?::[0-9]+)?[/:](.+?)(?:\.git)?/*$", re.IGNORECASE
)


@dataclass(frozen=True)
class Platform:
    """What Flux applies to clusters from the repository, and what is to be said of it.

    ``builder`` is what built it, "" for nothing; ``note`` says what was not built, and why. ``notes`` are
    what is right for some and not for others.
    """

    inventories: Mapping[str, Inventory]
    problems: tuple[Problem, ...] = ()
    notes: tuple[Problem, ...] = ()
    builder: str = ""
    note: str = ""


def platform_of(worktree: Worktree, fleet: DesiredFleet) -> Platform:
    """Return the platform of a fleet, built with kustomize where there is one."""
    tree = Tree(worktree.files, ReadOnce(worktree.files.blobs, worktree.read))
    clusters = _following(fleet, tree, _remotes(worktree.root))
    if not clusters:
        where = "no folder that Flux applies is in this repository"
        return Platform({}, note=f"the platform was not built: {where}" if fleet.clusters else "")
    program = kustomize_program()
    if program is None:
        of = many(len(clusters), "cluster")
        return Platform(
            {}, note=f"the platform of {of} was not built: install kustomize or kubectl to check it"
        )
    every = Inventories(tree, Builds(program.build))
    try:
        inventories = {name: every.of(cluster) for name, cluster in clusters.items()}
    except NoKustomize as missing:
        return Platform({}, note=f"the platform was not built: {missing}")
    unfollowed = sorted({place for inventory in inventories.values() for place in inventory.unfollowed})
    note = f"not followed: {', '.join(unfollowed[:3])}" if unfollowed else ""
    found = findings(fleet, inventories, tree.contents.get)
    return Platform(inventories, found.problems, found.notes, program.version, note)


def _following(fleet: DesiredFleet, tree: Tree, remotes: frozenset[str]) -> Mapping[str, Desired]:
    """Return the clusters whose Flux pulls this repository.

    Where git does not say what this repository is called, it is one that has a folder that a cluster applies,
    or the beginning of its path.
    """
    by_repository: dict[str, dict[str, Desired]] = {}
    for name, cluster in fleet.clusters.items():
        by_repository.setdefault(_normal(cluster.spec.flux.repository), {})[name] = cluster
    same = remotes & by_repository.keys() or _forks(remotes, by_repository.keys())
    if same:
        return {name: cluster for repository in same for name, cluster in by_repository[repository].items()}
    found: dict[str, Desired] = {}
    for clusters in by_repository.values():
        roots = {root for cluster in clusters.values() for root in roots_of(cluster.flux_as_stored)}
        if any(tree.is_folder(root.partition("/")[0]) or near_path(tree, root) for root in roots):
            found |= clusters
    return found


def _forks(remotes: Collection[str], repositories: Collection[str]) -> frozenset[str]:
    """Return the repositories on the same hosts with the same names: a fork has another owner."""
    ours = {(remote.partition("/")[0], remote.rpartition("/")[2]) for remote in remotes}
    return frozenset(
        name for name in repositories if (name.partition("/")[0], name.rpartition("/")[2]) in ours
    )


def _remotes(root: Path) -> frozenset[str]:
    """Return what git calls this repository elsewhere, as far as its configuration says so."""
    config = ConfigParser(strict=False, interpolation=None, allow_no_value=True)
    folder = root / ".git"
    try:
        if folder.is_file():  # of a worktree, or of a submodule
            folder = root / folder.read_text().removeprefix("gitdir:").strip()
            common = folder / "commondir"
            folder = folder / common.read_text().strip() if common.is_file() else folder
        config.read_string((folder / "config").read_text(errors="replace"))
    except (OSError, UnicodeDecodeError, ConfigError):
        return frozenset()
    urls = (config[section].get("url") for section in config.sections() if section.startswith("remote "))
    return frozenset(_normal(url) for url in urls if url)


def _normal(url: str) -> str:
    """Return host and path of a repository, whichever way it is fetched."""
    found = _REPOSITORY.match(url)
    return f"{found[1]}/{found[2].strip('/')}".lower() if found else url
