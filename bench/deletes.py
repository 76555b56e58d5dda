"""What deletes cost next to creations: ``python -m bench.deletes [CLUSTERS]``.

Creates a fleet in memory and removes half of it, with a resource group for each cluster. It counts the
operations on the state and the records that they return; seconds are of the processor.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from bench.counting import Counted
from localcloud.memory.memory_cloud import MemoryCloud
from shared.ports.process import Stays
from tests.support import fleet_files
from tests.support.pipeline_runs import push


@dataclass(frozen=True)
class Cost:
    """What a commit cost: operations on the state and records that they returned, by method, and seconds."""

    clusters: int
    calls: Counter[str]
    records: Counter[str]
    seconds: float


def measure(clusters: int) -> tuple[Cost, Cost]:
    """Create so many clusters, remove half of them, and return what each commit cost."""
    cloud = MemoryCloud(throttle=False)
    cloud.with_ports(
        lambda ports: replace(ports, process=replace(ports.process, stays=Stays(0)))
    )  # one thread: who stays holds up all
    names = [f"cluster-{number:04}" for number in range(clusters)]
    created = _commit(cloud, fleet_files.fleet(*names, budget=clusters), clusters)
    kept = names[: clusters // 2]
    removed = _commit(cloud, fleet_files.fleet(*kept, budget=clusters), clusters - len(kept))
    if [record.name for record in cloud.state.clusters() if record.phase.value == "Ready"] != kept:
        raise SystemExit("the deletes did not end")
    return created, removed


def _commit(cloud: MemoryCloud, files: dict[str, bytes], clusters: int) -> Cost:
    state: Any = Counted(cloud.state)
    cloud.with_ports(lambda ports: replace(ports, state=state))
    began = time.process_time()
    push(cloud, files)
    cloud.run(86400)
    return Cost(clusters, state.calls, state.records, time.process_time() - began)


def _show(what: str, cost: Cost) -> None:
    reads, each = cost.calls["clusters"], cost.records.total() / cost.clusters
    operations, milliseconds = cost.calls.total() / cost.clusters, 1000 * cost.seconds / cost.clusters
    print(f"{cost.clusters} {what}: {reads} reads of the whole fleet, {each:.1f} records for each cluster,")
    print(f"  {operations:.1f} operations, {milliseconds:.1f} ms")


def main() -> None:
    """Measure a quarter of the fleet and the fleet."""
    clusters = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    for size in (clusters // 4, clusters):
        created, removed = measure(size)
        _show("creations", created)
        _show("deletes", removed)


if __name__ == "__main__":
    main()
