"""The layout of a fleet repository, and its entries that cannot be read.

A link, a submodule or a file in the place of a cluster's folder does not count as its removal: every such
entry is a problem, which keeps the cluster at its last valid spec.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from shared.frozen import dataclass
from shared.language.resolve.problems import Problem, printable, problem_at
from shared.language.yaml.nodes import Mark

FLEET_FILE = "fleet.yaml"
CLUSTERS = "clusters"
CLUSTER_FILE = "cluster.yaml"
ENVIRONMENTS, CLASSES, SYSTEMS = "environments", "classes", "systems"
VERSIONS = ".versions"
"""How the name of the file ends that has the versions of an environment, next to that of the environment."""

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z")
_NAME_RULE = "1 to 63 lowercase letters, digits and hyphens, with a letter or digit at both ends"
MAX_SHOWN = 100
"""Characters of a folder's name; a cluster's name has at most 63."""
_WELL_PLACED = re.compile(rf"{CLUSTERS}/([a-z0-9-]{{1,63}})/{CLUSTER_FILE}\Z")
"""The path of a manifest whose folder may be shown as it is called."""
_MANIFEST = re.compile(r"(.+)\.ya?ml\Z")
_LIKE_CLUSTERS = re.compile(r"clusters?", re.IGNORECASE)
_LIKE_MANIFEST = re.compile(r"cluster\.(ya?ml(\.txt)?|json)", re.IGNORECASE)
NOT_PLAIN = "{} is a symlink or submodule; Roadstead reads plain files: put the file itself there"


@dataclass(frozen=True)
class Files:
    """Every entry of a commit: plain files with their blob ids, and the paths of all others."""

    blobs: Mapping[str, str]
    other: frozenset[str] = frozenset()

    @cached_property
    def ordered(self) -> tuple[str, ...]:
        """The paths of all plain files, sorted."""
        return tuple(sorted(self.blobs))

    @cached_property
    def folders(self) -> tuple[str, ...]:
        """The names of the cluster folders, also of those without a readable file, as they may be shown."""
        others = (path for path in (*self.others, *self.other) if _inside(path))
        names = {_shown(path.split("/")[1]) for path in others}
        return tuple(sorted({*self._well_placed.values(), *names, *self.misplaced}))

    @cached_property
    def _well_placed(self) -> Mapping[str, str]:
        """The manifests that are where they belong, each with its cluster: nearly all files of a fleet."""
        match = _WELL_PLACED.match
        return {path: found[1] for path in self.blobs if (found := match(path))}

    @cached_property
    def others(self) -> frozenset[str]:
        """The plain files that are no cluster's manifest."""
        return frozenset(self.blobs.keys() - self._well_placed.keys())

    @cached_property
    def misplaced(self) -> Mapping[str, tuple[Problem, ...]]:
        """The problems of misplaced entries below ``clusters/``, by cluster."""
        problems: dict[str, dict[Problem, None]] = {}
        for path in sorted(self.others | self.other):
            for name, place, message in self._misplaced(path):
                problem = problem_at(Mark(place, 1, 1), "", message)
                problems.setdefault(_shown(name), {})[problem] = None
        return {name: tuple(found) for name, found in problems.items()}

    def like_manifest(self, cluster: str) -> str:
        """Return the file of a cluster's folder that its manifest may be meant with, "" for none."""
        folder = f"{CLUSTERS}/{cluster}/"
        names = (path.removeprefix(folder) for path in sorted(self.others) if path.startswith(folder))
        return next((printable(name, MAX_SHOWN) for name in names if _LIKE_MANIFEST.fullmatch(name)), "")

    def _misplaced(self, path: str) -> Iterator[tuple[str, str, str]]:
        parts = path.split("/")
        if len(parts) == 3 and parts[0] != CLUSTERS and _LIKE_CLUSTERS.fullmatch(parts[0]):
            if _LIKE_MANIFEST.fullmatch(parts[2]) and _NAME.match(parts[1]):
                what = f"only {CLUSTERS}/ is read, and git keeps capitals apart"
                yield parts[1], path, f"{what}; move it to {CLUSTERS}/{parts[1]}/{CLUSTER_FILE}"
            return
        if parts[0] != CLUSTERS or len(parts) == 1:
            return
        right = f"{CLUSTERS}/{{}}/{CLUSTER_FILE}"
        unnamed = parts[2:] == [CLUSTER_FILE] and not _NAME.match(parts[1])
        if unnamed or (len(parts) > 2 and _shown(parts[1]) != parts[1]):
            yield parts[1], f"{CLUSTERS}/{parts[1]}", f"the folder's name must be {_NAME_RULE}"
        elif path in self.other and (len(parts) == 2 or parts[2:] == [CLUSTER_FILE]):
            yield parts[1], path, NOT_PLAIN.format(path)
        elif len(parts) == 2:
            manifest = _MANIFEST.match(parts[1])
            name = manifest[1] if manifest else parts[1]
            if _NAME.match(name):
                yield name, path, f"a cluster is a folder; write its manifest to {right.format(name)}"
        elif len(parts) > 3 and parts[-1] == CLUSTER_FILE and _NAME.match(parts[-2]):
            yield parts[-2], path, f"is too deep to be read; move it to {right.format(parts[-2])}"

    def of(self, folder: str) -> tuple[Mapping[str, str], Mapping[str, Problem]]:
        """Return the paths of the manifests ``<folder>/<name>.yaml``, and the problems there, by name.

        ``VERSIONS`` are the files with versions, by environment.
        """
        return self._manifests[folder]

    @cached_property
    def _manifests(self) -> Mapping[str, tuple[Mapping[str, str], Mapping[str, Problem]]]:
        found = {folder: self._read_folder(folder) for folder in (ENVIRONMENTS, CLASSES, SYSTEMS)}
        return {**found, VERSIONS: self._read_folder(ENVIRONMENTS, VERSIONS)}

    def _read_folder(self, folder: str, end: str = "") -> tuple[Mapping[str, str], Mapping[str, Problem]]:
        """Return the manifests of a folder; of that of environments, those whose names end so, or do not."""
        paths: dict[str, str] = {}
        problems: dict[str, Problem] = {}
        for path in sorted(path for path in (*self.others, *self.other) if path.startswith(f"{folder}/")):
            name = path.removeprefix(f"{folder}/").removesuffix(".yaml").removesuffix(".yml")
            if folder == ENVIRONMENTS and name.endswith(VERSIONS) != bool(end):
                continue
            name = name.removesuffix(end)
            message = self._unreadable(path, folder, name, end)
            if message:
                problems[name] = problem_at(Mark(path, 1, 1), "", message)
            elif path.endswith(".yaml"):
                paths[name] = path
        if (folder in self.other or folder in self.blobs) and not end:
            message = f"must be a folder of files {folder}/<name>.yaml"
            problems[""] = problem_at(Mark(folder, 1, 1), "", message)
        return paths, problems

    def _unreadable(self, path: str, folder: str, name: str, end: str) -> str:
        if path in self.other:
            return NOT_PLAIN.format(path)
        if not path.endswith((".yaml", ".yml")):
            return ""
        if "/" in name:
            return f"is too deep to be read; move it to {folder}/{path.rpartition('/')[2]}"
        if not _NAME.match(name):
            return f"the file's name must be {_NAME_RULE}"
        return f"must be called {folder}/{name}{end}.yaml" if path.endswith(".yml") else ""

    @cached_property
    def unreadable(self) -> tuple[Problem, ...]:
        """The problems that make the whole repository unreadable: then nothing missing counts as removed."""
        linked = [path for path in (FLEET_FILE, CLUSTERS) if path in self.other]
        problems = [problem_at(Mark(path, 1, 1), "", NOT_PLAIN.format(path)) for path in linked]
        if CLUSTERS in self.blobs:
            message = f"is a file; it must be the folder with {CLUSTERS}/<name>/{CLUSTER_FILE}"
            problems.append(problem_at(Mark(CLUSTERS, 1, 1), "", message))
        return tuple(problems)


def blob_id(content: bytes) -> str:
    """Return the id that git gives to a file's content: 40 hexadecimal digits."""
    return hashlib.sha1(b"blob %d\0%b" % (len(content), content), usedforsecurity=False).hexdigest()


def _shown(name: str) -> str:
    return printable(name, MAX_SHOWN)


def _inside(path: str) -> bool:
    return path.startswith(f"{CLUSTERS}/") and path.count("/") >= 2


def cluster_path(name: str) -> str:
    """Return the path of a cluster's manifest."""
    return f"{CLUSTERS}/{name}/{CLUSTER_FILE}"


def environment_path(name: str) -> str:
    """Return the path of an environment's manifest."""
    return f"{ENVIRONMENTS}/{name}.yaml"


def versions_path(environment: str) -> str:
    """Return the path of the file with the versions of an environment."""
    return f"{ENVIRONMENTS}/{environment}{VERSIONS}.yaml"


def cluster_paths(files: Files, names: Iterable[str]) -> list[str]:
    """Return the paths of the manifests of these clusters that can be read."""
    return [path for path in map(cluster_path, names) if path in files.blobs]


def shared_paths(files: Files) -> list[str]:
    """Return the paths of the manifests of all kinds but Cluster."""
    kinds = (ENVIRONMENTS, VERSIONS, CLASSES, SYSTEMS)
    paths = [path for kind in kinds for path in files.of(kind)[0].values()]
    return [path for path in (FLEET_FILE, *paths) if path in files.blobs]


def manifest_paths(files: Files) -> tuple[str, ...]:
    """Return the files that have to be read to resolve the fleet."""
    return (*shared_paths(files), *cluster_paths(files, files.folders))
