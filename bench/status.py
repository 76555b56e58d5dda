"""What a person waits for who looks at a large fleet: ``python -m bench.status [CLUSTERS]``.

Asks for the first page, a filtered page and the whole list of a fleet in memory, as the API answers them.
Counted are the calls to the state and what they returned; seconds are of the processor.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from bench.counting import Counted
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api import schema
from shared.app.api.parts import ClusterPage
from shared.app.api.views.cluster_list import EVERYTHING, ClusterSelection, Sort
from shared.app.api.views.clusters import fleet_view
from shared.cluster.record_parts import Phase
from shared.cluster.transitions.acceptance import accept_new
from shared.plan.plan import Action, Item, Plan
from shared.ports import FleetRecord, PlanRecord, Ports
from tests.support.desired_clusters import desired

SHOWN = 50
EVERY = 97
"""So many clusters have one that failed."""


@dataclass(frozen=True)
class Answer:
    """An answer: its clusters, the records that were read for it, the calls to the state, and seconds."""

    clusters: int
    records: int
    calls: Counter[str]
    seconds: float


def fleet_of(clusters: int) -> MemoryCloud:
    """Return a fleet of so many clusters, some of which have failed."""
    cloud = MemoryCloud()
    now, commit, items = cloud.clock(), "c" * 40, list[Item]()
    for number in range(clusters):
        name = f"cluster-{number:05}"
        record = accept_new(desired(name), uid="0badcafe", commit=commit, now=now)
        phase = Phase.READY if number % EVERY else Phase.FAILED
        cloud.state.save(replace(record, phase=phase, job=replace(record.job, active=False)))
        items.append(Item(name, Action.UNCHANGED, 1, "0badcafe"))
    cloud.state.save_plan(PlanRecord(Plan(commit, tuple(items), applied=True), now))
    cloud.state.save_fleet(FleetRecord(commit, now))
    return cloud


def measure(cloud: MemoryCloud, selection: ClusterSelection = EVERYTHING, *, pages: bool = False) -> Answer:
    """Ask for the first page of a list, or for all its pages."""
    if pages:
        return _counted(cloud, lambda ports: _whole(ports, selection))
    return _counted(cloud, lambda ports: fleet_view(ports, ClusterPage("", SHOWN), selection)["clusters"])


def _whole(ports: Ports, selection: ClusterSelection) -> list[schema.ClusterSummaryView]:
    view = fleet_view(ports, ClusterPage("", 500), selection)
    found = view["clusters"]
    while view["next"]:
        view = fleet_view(ports, ClusterPage(view["next"], 500), selection)
        found = found + view["clusters"]
    return found


def _counted(cloud: MemoryCloud, ask: Callable[[Ports], list[schema.ClusterSummaryView]]) -> Answer:
    state: Any = Counted(cloud.state)
    began = time.process_time()
    found = ask(replace(cloud.ports, state=state))
    read = sum(state.records[name] for name in ("clusters", "clusters_page", "clusters_named", "cluster"))
    return Answer(len(found), read, state.calls, time.process_time() - began)


def main() -> None:
    """Measure a tenth of the fleet and the fleet."""
    clusters = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    failed = ClusterSelection(phases=frozenset({Phase.FAILED}))
    for size in (clusters // 10, clusters):
        cloud = fleet_of(size)
        answers = {
            "first page": measure(cloud),
            "first page of what needs attention": measure(cloud, ClusterSelection(sort=Sort.PHASE)),
            "first page of the failed ones": measure(cloud, failed),
            "all clusters": measure(cloud, pages=True),
        }
        for what, answer in answers.items():
            calls = ", ".join(f"{name} {number}" for name, number in sorted(answer.calls.items()))
            print(f"{size} clusters, {what}: {answer.clusters} shown, {answer.seconds:.3f} s")
            print(f"  records read {answer.records}; calls to the state: {calls}")


if __name__ == "__main__":
    main()
