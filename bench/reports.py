"""What the reports of a rollout cost: ``python -m bench.reports [CLUSTERS]``.

A plan that creates a fleet is carried out in virtual time. Clusters become Ready at the rate that the buckets
of one subscription allow, and only the reports run. Counted are the statuses on the commit, and the clusters
that the reports read.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from bench.counting import Counted
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.outbox import send
from shared.cluster.queues.messages import ReportRequest
from shared.cluster.record_parts import Phase
from shared.cluster.transitions.acceptance import accept_new
from shared.plan.plan import Action, Item, Plan
from shared.ports import FleetRecord, PlanRecord
from tests.support.desired_clusters import desired

SECONDS_A_CLUSTER = 1.28
"""The lower bound of ``bench.rollout`` for a thousand clusters in one subscription, for each of them."""
SLOT = 5.0


@dataclass(frozen=True)
class Reports:
    """The statuses on the commit, the calls to the state, the records that they returned, and seconds."""

    statuses: int
    last: str
    calls: Counter[str]
    records: Counter[str]
    virtual: float
    processor: float

    @property
    def clusters_read(self) -> int:
        """How many clusters all reports read, as records or as summaries."""
        return self.records["clusters"] + self.records["summaries"]


def measure(clusters: int) -> Reports:
    """Carry a plan of so many new clusters out, and report it."""
    cloud = MemoryCloud()
    commit, start = cloud.repository.push({"fleet.yaml": b""}), cloud.clock()
    names = [f"cluster-{number:05}" for number in range(clusters)]
    for name in names:
        cloud.state.save(accept_new(desired(name), uid="0badcafe", commit=commit, now=start))
    items = tuple(Item(name, Action.CREATE, 1, "0badcafe") for name in names)
    cloud.state.save_plan(PlanRecord(Plan(commit, items, applied=True), start))
    cloud.state.save_fleet(FleetRecord(commit, start))
    state: Any = Counted(cloud.state)
    cloud.with_ports(lambda ports: replace(ports, state=state))
    began = time.process_time()
    finished = 0
    while cloud.state.open_plans():
        elapsed = (cloud.clock() - start).total_seconds()
        due = min(clusters, int(elapsed / SECONDS_A_CLUSTER))
        for name in names[finished:due]:
            _finish(cloud, name)
        finished = due
        send(ReportRequest(), cloud.ports)
        cloud.clock.advance(SLOT)
        while cloud.step():
            pass
    history = cloud.repository.statuses.history(commit)
    virtual = (cloud.clock() - start).total_seconds()
    last = f"{history[0].status.state}: {history[0].status.description}"
    return Reports(len(history), last, state.calls, state.records, virtual, time.process_time() - began)


def _finish(cloud: MemoryCloud, name: str) -> None:
    record = cloud.state.cluster(name)
    if record is not None:
        job = replace(record.job, active=False)
        cloud.state.save(replace(record, phase=Phase.READY, observed_generation=1, job=job))


def main() -> None:
    """Measure a tenth of the fleet and the fleet."""
    clusters = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    for size in (clusters // 10, clusters):
        found = measure(size)
        print(
            f"{size} clusters in {found.virtual:.0f} s: {found.statuses} statuses, the last is {found.last}"
        )
        each = found.clusters_read / size
        print(f"  each cluster was read {each:.1f} times, {found.processor:.1f} s of the processor")


if __name__ == "__main__":
    main()
