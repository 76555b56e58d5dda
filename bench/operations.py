"""What a new cluster costs: ``python -m bench.operations [CLUSTERS]``.

Creates a fleet in memory, all of it in one subscription with the limits that Azure documents, with the
default settings and four workers: one that waits in a message lets the others go on. It counts, for each
cluster, the messages that are delivered and the operations on the state by the function that makes them.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any

from bench.counting import Call, Watched
from bench.parallel import ParallelCloud
from bench.rollout import CONFIG
from tests.support import fleet_files
from tests.support.counted_calls import deliveries
from tests.support.pipeline_runs import push

WORKERS = 4
SHOWN = 0.05
"""The fewest operations for a cluster that have a line of their own."""


@dataclass
class Operations:
    """The operations on the state by method and calling function, and the messages by queue."""

    clusters: int
    operations: Counter[tuple[str, str]] = field(default_factory=Counter)
    messages: Counter[str] = field(default_factory=Counter)


def _caller(frame: FrameType | None) -> str:
    """Return the function of the pipeline that calls, and the one that calls that."""
    names: list[str] = []
    while frame is not None and len(names) < 2:
        module = str(frame.f_globals.get("__name__"))
        if module.startswith("shared.app"):
            names.append(f"{module.rpartition('.')[2]}.{frame.f_code.co_name}")
        frame = frame.f_back
    return " < ".join(names)


def measure(clusters: int) -> Operations:
    """Create so many clusters at once, and count."""
    cloud, found = ParallelCloud(WORKERS, config=CONFIG), Operations(clusters)
    found.messages = deliveries(cloud)

    def count(call: Call) -> None:
        found.operations[call.method, _caller(sys._getframe())] += 1

    state: Any = Watched(cloud.state, count)
    cloud.with_ports(lambda ports: replace(ports, state=state))
    names = [f"cluster-{number:04}" for number in range(clusters)]
    push(cloud, fleet_files.fleet(*names, budget=clusters))
    cloud.run(86400)
    if any(record.phase.value != "Ready" for record in cloud.state.clusters()):
        raise SystemExit("a cluster is not Ready")
    return found


def main() -> None:
    """Measure one cluster, and many."""
    for clusters in (1, int(sys.argv[1]) if len(sys.argv) > 1 else 100):
        found = measure(clusters)
        messages = ", ".join(f"{count / clusters:.2f} {name}" for name, count in found.messages.items())
        print(f"{clusters} clusters, for each: {found.operations.total() / clusters:.1f} operations")
        print(f"  messages: {messages}")
        for (name, caller), count in found.operations.most_common():
            if count / clusters >= SHOWN:
                print(f"  {count / clusters:6.2f} {name:<20} {caller}")


if __name__ == "__main__":
    main()
