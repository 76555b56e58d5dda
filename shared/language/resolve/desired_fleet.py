"""What a commit requests as a whole: its clusters and systems, its guards, and the problems of its files."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from shared.frozen import dataclass, field
from shared.json_tree import Json
from shared.language.desired import Desired
from shared.language.model.fleet_rules import Guards, PromotionRule, RouteSpec
from shared.language.model.rollout import RolloutSpec
from shared.language.resolve.problems import Path, Problem, field_of, problem_at
from shared.language.resolve.repository_layout import cluster_path
from shared.language.yaml.nodes import Mark, Node, without_removed

if TYPE_CHECKING:  # a start of the app resolves no manifest
    from shared.language.model.kinds import Environment
    from shared.language.resolve.cluster_resolver import ClusterResolver
    from shared.language.resolve.systems import Tenant

_SYSTEM = re.compile(r"systems\[([^\]]*)\](.*)", re.DOTALL)
"""A field of a system on a cluster, in the paths of a plan."""


_DIGITS = 9
"""A longer number is the name of an item that is not there any more: no list has so many items."""


@dataclass(frozen=True)
class ResolvedCluster:
    """A cluster with the place of every value: ``node`` has spec and metadata, nulls included."""

    desired: Desired
    node: Node


@dataclass(frozen=True)
class DesiredFleet:
    """Everything that a commit requests.

    - ``problems``: each problem once, at its place.
    - ``invalid``: the problems of each cluster that cannot be resolved, those of its own file first.
    - ``guards``: None while fleet.yaml is invalid; nothing is deleted then.
    - ``notifications``: who is notified; None while fleet.yaml is invalid.
    - ``subscriptions``: those that the shared files name.
    - ``environments``: in the order of fleet.yaml.
    - ``rollout``: how changes reach the clusters; None where all start at once, or fleet.yaml is invalid.
    - ``promotions``: what is promoted without anybody asking.
    - ``may_replace``: by invalid cluster, the clusters that its file seems to say that it replaces.
    - ``asks_by_issue``: whether somebody may have a cluster by an issue.
    - ``unchanged``: the clusters that equal their records, and were not resolved again.
    - ``missed``: the invalid clusters whose pins the commit would move.
    - ``inputs``: by cluster, a hash of everything that the cluster is resolved from, where it is known.
    - ``left_out``: how many files and clusters were not read because the plan's work was used up.
    - ``resolver``: resolves one cluster again to find the places of its values, because the trees of all
      clusters would fill the memory.
    """

    clusters: Mapping[str, Desired] = field(default_factory=dict)
    invalid: Mapping[str, tuple[Problem, ...]] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    guards: Guards | None = field(default_factory=Guards)
    environments: Mapping[str, Environment] = field(default_factory=dict)
    systems: Mapping[str, Tenant] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    left_out: int = 0
    resolver: ClusterResolver | None = field(default=None, repr=False, compare=False)
    notifications: tuple[RouteSpec, ...] | None = ()
    subscriptions: tuple[str, ...] = ()
    rollout: RolloutSpec | None = None
    promotions: tuple[PromotionRule, ...] = ()
    may_replace: Mapping[str, frozenset[str]] = field(default_factory=dict)
    missed: frozenset[str] = frozenset()
    asks_by_issue: bool = False
    unchanged: Collection[str] = field(default=(), repr=False, compare=False)

    def explained(self, name: str) -> ResolvedCluster | None:
        """Return a cluster with the places of its values, None for one that is not resolved."""
        node = self._tree(name) if name in self.clusters else None
        return ResolvedCluster(self.clusters[name], node) if node else None

    def source(self, cluster: str, path: str) -> str:
        """Return the "file:line" of a field of a cluster, "" when it is unknown."""
        system = _SYSTEM.match(path)
        if system:
            tenant = self.systems.get(system[1])
            return source_of(tenant.node, f"spec{system[2]}") if tenant and tenant.node else ""
        node = self._tree(cluster)
        return source_of(node, path) if node else ""

    def _tree(self, cluster: str) -> Node | None:
        return self.resolver.tree(cluster) if self.resolver else None


def warnings_in(
    desired: DesiredFleet, names: Iterable[str], found_in: Callable[[Json], Iterable[tuple[Path, str]]]
) -> list[Problem]:
    """Return what is ``found_in`` the stored specs of clusters, by paths below them, each at its place.

    What a shared file has is one warning, however many clusters have it.
    """
    warnings: set[Problem] = set()
    for name in names:
        found = [*found_in(desired.clusters[name].document()["spec"])]
        resolved = desired.explained(name) if found else None
        node = without_removed(resolved.node) if resolved else None  # numbered as in the spec
        for below, message in found:
            path = ("spec", *below)
            mark = node.find(path).mark if node else Mark(cluster_path(name), 1, 1)
            warnings.add(problem_at(mark, field_of(path, node) if node else "spec", message))
    return sorted(warnings)


def source_of(root: Node, path: str) -> str:
    """Return "file:line" of the value at a path, or of the nearest one above it.

    A key may contain dots (``spec.tags.cost.center``): the longest key that matches counts.
    """
    node, rest = root, path
    while rest:
        step = _item(node, rest) if rest.startswith("[") else _entry(node, rest)
        if step is None:
            break
        node, rest = step
    return f"{node.mark.file}:{node.mark.line}"


def _item(node: Node, rest: str) -> tuple[Node, str] | None:
    name, _, after = rest[1:].partition("]")
    number = int(name) if name.isdecimal() and len(name) <= _DIGITS else None
    item = node.child(name) or (node.child(number) if number is not None else None)
    return (item, after.removeprefix(".")) if item is not None else None


def _entry(node: Node, rest: str) -> tuple[Node, str] | None:
    keys = node.value if isinstance(node.value, dict) else {}
    ends = [len(rest), *(end for end in range(len(rest) - 1, 0, -1) if rest[end] in ".[")]
    key = next((rest[:end] for end in ends if rest[:end] in keys), None)
    return (keys[key], rest[len(key) :].removeprefix(".")) if key is not None else None
