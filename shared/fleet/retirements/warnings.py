"""The retirements that concern the clusters of a commit, each once, at the place of its value."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from shared.fleet.resolve.desired_fleet import DesiredFleet
from shared.fleet.resolve.problems import Problem, field_of, problem_at
from shared.fleet.resolve.repository_layout import cluster_path
from shared.fleet.retirements.retiring import retiring
from shared.fleet.yaml_tree.merging import without_removed
from shared.fleet.yaml_tree.nodes import Mark


def retirement_warnings(desired: DesiredFleet, names: Iterable[str], today: date) -> list[Problem]:
    """Return a warning for each value of these clusters that is retired, or will be soon.

    A value of a shared file is one warning, however many clusters have it.
    """
    found: set[Problem] = set()
    for name in names:
        near = retiring(desired.clusters[name].document()["spec"], today)
        resolved = desired.explained(name) if near else None
        node = without_removed(resolved.node) if resolved else None  # numbered as in the spec
        for each in near:
            path = ("spec", *each.path)
            mark = node.find(path).mark if node else Mark(cluster_path(name), 1, 1)
            field = field_of(path, node) if node else "spec"
            found.add(problem_at(mark, field, str(each)))
    return sorted(found)
