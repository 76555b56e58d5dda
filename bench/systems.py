"""A change of one of many systems on many clusters: ``python -m bench.systems [SYSTEMS] [CLUSTERS]``.

Plans a generated fleet as the planner does (``bench.push``): from nothing, after a push that changes nothing,
and after one that changes a single system, which is on ten clusters.
"""

from __future__ import annotations

import sys

from bench.push import Bench

ON_EACH = 10
"""So many clusters each system is on."""


def system_file(number: int, clusters: int, path: str = "./deploy") -> tuple[str, bytes]:
    """Return the path and text of a system on some of the clusters."""
    first = number * ON_EACH % clusters
    names = ", ".join(f"cluster-{(first + each) % clusters:05d}" for each in range(ON_EACH))
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


def measure(systems: int, clusters: int) -> None:
    """Plan the fleet, then a push that changes no cluster, then one that changes one system."""
    bench = Bench(clusters)
    files = bench.files | dict(system_file(number, clusters) for number in range(systems))
    title = f"{systems} systems on {clusters} clusters"
    bench.show(f"{title}, first plan", *bench.plan(files))
    bench.show(f"{title}, nothing changed", *bench.plan(files | {"README.md": b"more"}))
    changed = dict([system_file(7, clusters, "./other")])
    bench.show(f"{title}, one system changed", *bench.plan(files | changed))


def main() -> None:
    """Measure the numbers that are given, 500 systems on 200 clusters without any."""
    given = [int(text) for text in sys.argv[1:]]
    systems, clusters = given + [500, 200][len(given) :]
    measure(systems, clusters)


if __name__ == "__main__":
    main()
