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
from shared.fleet.layout import CLUSTER_FILE, FLEET_FILE, Files, cluster_path
from shared.fleet.manifests import Cluster, ClusterSpec, Fleet, Guards
from shared.fleet.nodes import Mark, Node, YamlError, merge, parse, without_nulls
from shared.fleet.problems import Problem, problem_at, problems_of


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
    """Everything a commit says; ``invalid`` holds the problems of the clusters that cannot be resolved.

    ``guards`` None: fleet.yaml cannot be used, so nobody knows what may be deleted, and nothing is.
    """

    clusters: Mapping[str, Desired] = field(default_factory=dict)
    invalid: Mapping[str, tuple[Problem, ...]] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    guards: Guards | None = field(default_factory=Guards)


def resolve(fleet: str, files: Files, read: Callable[[str], bytes]) -> DesiredFleet:
    """Return what the files ask for; ``read`` gives a file's content by its path, ``fleet`` our name."""
    shared, fleet_problems = _fleet(fleet, files, read)
    if shared is None:
        invalid = dict.fromkeys(files.folders, tuple(fleet_problems))
        return DesiredFleet(invalid=invalid, problems=tuple(fleet_problems), guards=None)
    node, manifest = shared
    clusters: dict[str, Desired] = {}
    wrong: dict[str, tuple[Problem, ...]] = {}
    for name in files.folders:
        result = files.misplaced.get(name) or _cluster(name, files, read, node)
        if isinstance(result, Desired):
            clusters[name] = result
        else:
            wrong[name] = tuple(result)
    found = {problem for problems in wrong.values() for problem in problems}
    return DesiredFleet(clusters, wrong, tuple(sorted(found)), manifest.spec.guards)


def _fleet(
    name: str, files: Files, read: Callable[[str], bytes]
) -> tuple[tuple[Node, Fleet] | None, list[Problem]]:
    if files.unreadable:
        return None, list(files.unreadable)
    start = Mark(FLEET_FILE, 1, 1)
    if FLEET_FILE not in files.blobs:
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
    path = cluster_path(name)
    if path not in files.blobs:
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
    if components not in files.blobs:
        message = f"there is no file {components} in the repository; write it with flux install --export"
        return [problem_at(node.find(["spec", "flux", "components"]).mark, "spec.flux.components", message)]
    return Desired(name, manifest.spec, files.blobs[components])


def _with_defaults(cluster: Node, fleet: Node) -> Node:
    """Lay the cluster's spec on the fleet's defaults."""
    fleet_spec = fleet.value.get("spec")
    defaults = fleet_spec.value.get("defaults") if fleet_spec and isinstance(fleet_spec.value, dict) else None
    spec = cluster.value.get("spec") if isinstance(cluster.value, dict) else None
    if defaults is None or spec is None:
        return cluster
    merged = without_nulls(merge(defaults, spec))
    return Node({**cluster.value, "spec": merged}, cluster.mark)
