"""What git asks for: the clusters of a fleet repository, each with its spec fully resolved.

A mistake in one manifest never hides another, and never blocks a neighbour: every cluster folder gives
either a ``Desired`` or problems.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from shared.fleet.ids import ClusterId
from shared.fleet.manifests import Cluster, ClusterSpec, Fleet, Guards
from shared.fleet.nodes import Mark, Node, YamlError, merge, parse, without_nulls
from shared.fleet.problems import Problem, problem_at, problems_of

FLEET_FILE = "fleet.yaml"
CLUSTERS = "clusters/"
CLUSTER_FILE = "cluster.yaml"


@dataclass(frozen=True)
class Desired:
    """A cluster as a commit asks for it; ``components`` is the blob id of its Flux components file."""

    name: str
    spec: ClusterSpec
    components: str

    @property
    def id(self) -> ClusterId:
        """Where the cluster lives in Azure."""
        return ClusterId(self.spec.subscription_id, self.spec.resource_group, self.name)

    def document(self) -> dict[str, Any]:
        """Return the stored form: JSON, with every default filled in."""
        spec = self.spec.model_dump(by_alias=True, mode="json", exclude_none=True)
        return {"name": self.name, "spec": spec, "components": self.components}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Desired:
        """Read the stored form."""
        return cls(document["name"], ClusterSpec.model_validate(document["spec"]), document["components"])

    @property
    def digest(self) -> str:
        """A hash of the stored form: equal digests ask for the same cluster."""
        return digest_of(self.document())


def digest_of(document: Mapping[str, Any]) -> str:
    """Return 16 hexadecimal digits of a SHA-256 over canonical JSON."""
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class DesiredFleet:
    """Everything a commit says; ``invalid`` holds the problems of the clusters that cannot be resolved."""

    clusters: Mapping[str, Desired] = field(default_factory=dict)
    invalid: Mapping[str, tuple[Problem, ...]] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    guards: Guards = field(default_factory=Guards)


Files = Mapping[str, str]
"""Every plain file of a commit: path -> blob id."""


def manifest_paths(files: Files) -> tuple[str, ...]:
    """Return the files that have to be read to resolve the fleet."""
    clusters = (f"{CLUSTERS}{name}/{CLUSTER_FILE}" for name in cluster_folders(files))
    return tuple(path for path in (FLEET_FILE, *clusters) if path in files)


def cluster_folders(files: Files) -> tuple[str, ...]:
    """Return the names of the folders below ``clusters/``."""
    names = {path.split("/")[1] for path in files if path.startswith(CLUSTERS) and path.count("/") >= 2}
    return tuple(sorted(names))


def resolve(fleet: str, files: Files, read: Callable[[str], bytes]) -> DesiredFleet:
    """Return what the files ask for; ``read`` gives a file's content by its path, ``fleet`` our name."""
    shared, fleet_problems = _fleet(fleet, files, read)
    folders = cluster_folders(files)
    if shared is None:
        return DesiredFleet(
            invalid=dict.fromkeys(folders, tuple(fleet_problems)), problems=tuple(fleet_problems)
        )
    node, manifest = shared
    clusters: dict[str, Desired] = {}
    invalid: dict[str, tuple[Problem, ...]] = {}
    for name in folders:
        result = _cluster(name, files, read, node)
        if isinstance(result, Desired):
            clusters[name] = result
        else:
            invalid[name] = tuple(result)
    found = {problem for problems in invalid.values() for problem in problems}
    return DesiredFleet(clusters, invalid, tuple(sorted(found)), manifest.spec.guards)


def _fleet(
    name: str, files: Files, read: Callable[[str], bytes]
) -> tuple[tuple[Node, Fleet] | None, list[Problem]]:
    start = Mark(FLEET_FILE, 1, 1)
    if FLEET_FILE not in files:
        message = "the repository has no fleet.yaml; add one with kind: Fleet"
        return None, [problem_at(start, "", message)]
    try:
        node = parse(read(FLEET_FILE), FLEET_FILE)
        manifest = Fleet.model_validate(node.plain())
    except YamlError as error:
        return None, [problem_at(error.mark, "", error.message)]
    except ValidationError as error:
        return None, problems_of(error, node, Fleet)
    if manifest.metadata.name != name:
        mark = node.find(["metadata", "name"]).mark
        message = f"this app serves the fleet {name}, not {manifest.metadata.name}; change one of the two"
        return None, [problem_at(mark, "metadata.name", message)]
    return (node, manifest), []


def _cluster(name: str, files: Files, read: Callable[[str], bytes], fleet: Node) -> Desired | list[Problem]:
    path = f"{CLUSTERS}{name}/{CLUSTER_FILE}"
    if path not in files:
        message = (
            f"the folder has no {CLUSTER_FILE}; add it, or remove the whole folder to delete the cluster"
        )
        return [problem_at(Mark(path, 1, 1), "", message)]
    try:
        node = _with_defaults(parse(read(path), path), fleet)
        manifest = Cluster.model_validate(node.plain())
    except YamlError as error:
        return [problem_at(error.mark, "", error.message)]
    except ValidationError as error:
        return problems_of(error, node, Cluster)
    if manifest.metadata.name != name:
        message = f"must be {name}, as the folder is called; a cluster is renamed by deleting and creating it"
        return [problem_at(node.find(["metadata", "name"]).mark, "metadata.name", message)]
    components = manifest.spec.flux.components.removeprefix("./")
    if components not in files:
        message = f"there is no file {components} in the repository; write it with flux install --export"
        return [problem_at(node.find(["spec", "flux", "components"]).mark, "spec.flux.components", message)]
    return Desired(name, manifest.spec, files[components])


def _with_defaults(cluster: Node, fleet: Node) -> Node:
    """Lay the cluster's spec on the fleet's defaults."""
    fleet_spec = fleet.value.get("spec")
    defaults = fleet_spec.value.get("defaults") if fleet_spec and isinstance(fleet_spec.value, dict) else None
    spec = cluster.value.get("spec") if isinstance(cluster.value, dict) else None
    if defaults is None or spec is None:
        return cluster
    merged = without_nulls(merge(defaults, spec))
    return Node({**cluster.value, "spec": merged}, cluster.mark)
