"""Resolves Systems: which clusters a team's tenant is on. An invalid System invalidates no cluster."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from shared.fleet.desired import Desired
from shared.fleet.manifests import System, SystemSpec
from shared.fleet.manifests.system import CLASS_LABEL, ENVIRONMENT_LABEL
from shared.fleet.resolve.layers import unknown
from shared.fleet.resolve.manifest_file import Contents, load
from shared.fleet.resolve.problems import Problem, nearest, problem_at
from shared.fleet.resolve.repository_layout import CLASSES, ENVIRONMENTS, SYSTEMS, Files
from shared.fleet.resolve.yaml_tree import Node


@dataclass(frozen=True)
class Tenant:
    """A System: a team's tenant, and the names of the clusters that its selector matches."""

    name: str
    spec: SystemSpec
    clusters: tuple[str, ...]


def read_systems(
    files: Files, contents: Contents, clusters: Mapping[str, Desired], *, known: Collection[str]
) -> tuple[dict[str, Tenant], list[Problem]]:
    """Return the tenants by name, and all problems; ``known`` are the clusters that have a folder."""
    paths, wrong = files.of(SYSTEMS)
    problems, tenants = list(wrong.values()), {}
    taken: dict[tuple[str, str], str] = {}
    for name, path in paths.items():
        loaded = load(path, System, contents, name=name)
        problems += loaded.problems
        if loaded.manifest is None:
            continue
        tenant = Tenant(name, loaded.manifest.spec, tuple(_selected(loaded.manifest, clusters)))
        own_problems = [
            *_unknown(loaded.node, tenant, known),
            *_unknown_layers(loaded.node, tenant, files),
            *_taken(loaded.node, tenant, taken),
        ]
        problems += own_problems
        if not own_problems:
            tenants[name] = tenant
    return tenants, problems


def _selected(system: System, clusters: Mapping[str, Desired]) -> Iterator[str]:
    selector = system.spec.clusters
    wanted = selector.match_labels
    for name, cluster in clusters.items():
        if name in selector.names or (wanted and wanted.items() <= _labels(cluster).items()):
            yield name


def _labels(cluster: Desired) -> dict[str, str]:
    """Return the labels that a selector matches; class and environment come from the cluster's file."""
    return {**cluster.labels, ENVIRONMENT_LABEL: cluster.environment, CLASS_LABEL: cluster.cluster_class}


def _unknown(node: Node, tenant: Tenant, known: Collection[str]) -> Iterator[Problem]:
    for number, name in enumerate(tenant.spec.clusters.names):
        if name not in known:
            near = nearest(name, known)
            right = (
                f"did you mean {near}?" if near else f"add clusters/{name}/cluster.yaml, or remove the name"
            )
            mark = node.find(("spec", "clusters", "names", number)).mark
            yield problem_at(mark, f"spec.clusters.names[{number}]", f"there is no cluster {name}; {right}")


def _unknown_layers(node: Node, tenant: Tenant, files: Files) -> Iterator[Problem]:
    """Yield a problem for each label that names an environment or a class that does not exist."""
    for label, kind, folder in (
        (ENVIRONMENT_LABEL, "environment", ENVIRONMENTS),
        (CLASS_LABEL, "class", CLASSES),
    ):
        paths, wrong = files.of(folder)
        name = tenant.spec.clusters.match_labels.get(label)
        if name is not None and name not in paths and name not in wrong:
            mark = node.find(("spec", "clusters", "matchLabels", label)).mark
            message = unknown(kind, name, paths)
            yield problem_at(mark, f"spec.clusters.matchLabels.{label}", message)


def _taken(node: Node, tenant: Tenant, taken: dict[tuple[str, str], str]) -> Iterator[Problem]:
    """Yield a problem for each namespace that belongs to another system on one of the same clusters."""
    for number, namespace in enumerate(tenant.spec.namespaces):
        others = {cluster: taken.setdefault((cluster, namespace), tenant.name) for cluster in tenant.clusters}
        cluster = next((cluster for cluster, other in others.items() if other != tenant.name), None)
        if cluster is not None:
            mark = node.find(("spec", "namespaces", number)).mark
            message = (
                f"{namespace} on {cluster} belongs to the system {others[cluster]}; choose another namespace"
            )
            yield problem_at(mark, f"spec.namespaces[{number}]", message)
