"""A change of one of many systems costs what that system costs."""

from __future__ import annotations

import pytest

from bench.push import Bench
from shared.plan.plan import Action

SYSTEMS, CLUSTERS, ON_EACH = 500, 200, 10


def system_file(number: int, path: str = "./deploy") -> tuple[str, bytes]:
    """Return the path and text of a system on ten of the clusters."""
    first = number * ON_EACH % CLUSTERS
    names = ", ".join(f"cluster-{(first + place) % CLUSTERS:05d}" for place in range(ON_EACH))
    text = f"""\
apiVersion: roadstead.dev/v1alpha1
kind: System
metadata: {{name: system-{number}}}
spec:
  owners: [team-{number}@example.com]
  clusters: {{names: [{names}]}}
  namespaces: [system-{number}]
  source: {{repository: "https://github.com/example/team-{number}", path: {path}}}
"""
    return f"systems/system-{number}.yaml", text.encode()


@pytest.mark.lives
def test_one_of_500_systems_on_200_clusters_reads_one_file_and_changes_its_ten_clusters() -> None:
    bench = Bench(CLUSTERS)
    files = bench.files | dict(system_file(number) for number in range(SYSTEMS))
    bench.plan(files)
    assert bench.plan(files | {"README.md": b"more"})[0].counts == {Action.UNCHANGED: CLUSTERS}
    assert bench.host.calls["blob"] == 0
    plan, desired = bench.plan(files | dict([system_file(7, "./other")]))
    changed = [item for item in plan.items if item.action is Action.UPDATE]
    assert plan.counts == {Action.UPDATE: ON_EACH, Action.UNCHANGED: CLUSTERS - ON_EACH}
    assert {change.path for item in changed for change in item.changes} == {"systems[system-7].source.path"}
    assert bench.host.calls["blob"] == 1, "the one manifest that changed"
    resolved = [name for name in desired.clusters if name not in desired.unchanged]
    assert resolved == [], "no cluster's own manifest is read"
