"""What Azure's events cost: ``python -m bench.events [CLUSTERS [EVENTS]]``.

In a fleet of Ready clusters somebody scales a node pool, and sets a tag by the tags API. Shown are how many
seconds of the virtual clock after Azure's event each is drift with who, how often Azure was asked, and the
calls to the state. Then the app's own identity writes to the clusters until so many events have come, and a
person as often to one cluster. Seconds are of the processor, for all events; comparisons are reads of a
cluster.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from bench.counting import Call, Counted, Watched
from bench.sweep import LATER, fleet_of
from localcloud.azure.world.access.directory import FUNCTION_APP
from localcloud.memory.memory_cloud import MemoryCloud
from shared.resource_ids import ClusterId

WHO = "ann@example.com"
LONGEST = 300
SETTLES = 120.0
Edit = Callable[[MemoryCloud, ClusterId], None]


@dataclass(frozen=True)
class Shown:
    """How many seconds after its event an edit is drift, by whom, and what that took.

    ``records`` are those that were read.
    """

    seconds: float
    by: str
    azure: Counter[str]
    state: Counter[str]
    records: int


@dataclass(frozen=True)
class Storm:
    """Events, the comparisons that they cost, calls to the state, and seconds of the processor."""

    events: int
    comparisons: int
    state: int
    seconds: float


def hearing(clusters: int, subscriptions: int = 5) -> MemoryCloud:
    """Return a fleet whose app hears what happens in Azure."""
    cloud = fleet_of(clusters, subscriptions)
    principals = frozenset((FUNCTION_APP.id,))
    cloud.ports = replace(cloud.ports, config=replace(cloud.ports.config, principals=principals))
    cloud.clock.advance(LATER)
    cloud.hear_events()
    return cloud


def scale(cloud: MemoryCloud, cluster: ClusterId) -> None:
    """Scale the first node pool, as the portal does."""
    (pool, *_) = cloud.azure.get_cluster(cluster)["properties"]["agentPoolProfiles"]
    kept = {key: pool[key] for key in ("vmSize", "mode", "type", "osType", "tags")}
    cloud.azure.put_pool(cluster, pool["name"], {"properties": {**kept, "count": pool["count"] + 1}})


def tag(cloud: MemoryCloud, cluster: ClusterId) -> None:
    """Set a tag by the tags API, as ``az tag`` does."""
    body = {"operation": "Merge", "properties": {"tags": {"owner": "ann"}}}
    cloud.azure.patch_tags(cluster.subscription, cluster.resource_group, body, cluster.name)


def _counting(cloud: MemoryCloud) -> tuple[Counter[str], Counted]:
    """Count the calls to Azure and to the state from now on."""
    azure = Counter[str]()

    def count(call: Call) -> None:
        azure[call.given[0].name] += 1

    watched: Any = Watched(cloud.ports.azure, count)
    state: Any = Counted(cloud.ports.state)
    cloud.with_ports(lambda ports: replace(ports, state=state, azure=watched))
    return azure, state


def show(cloud: MemoryCloud, number: int, edit: Edit) -> Shown:
    """Have somebody edit a cluster, and wait until that is drift with who."""
    name = f"cluster-{number:05}"
    (record,) = cloud.state.clusters_named([name])
    azure, state = _counting(cloud)
    with cloud.azure.called_by(WHO):
        edit(cloud, record.desired.id)
    for _ in range(LONGEST):
        cloud.run(1, until=lambda: False)
        after = cloud.state.cluster(name)
        field = after.divergence.drift.fields[0] if after and after.divergence.drift else None
        if field is not None and field.changed is not None:
            read = sum(state.records.values())
            seconds = (cloud.clock() - field.changed).total_seconds()
            return Shown(seconds, field.by, azure, state.calls, read)
    raise SystemExit(f"the edit of {name} is not shown after {LONGEST} seconds")


def storm(cloud: MemoryCloud, events: int, caller: str, targets: int) -> Storm:
    """Have somebody write to so many clusters in turn, until so many events have come; let them be heard."""
    records = cloud.state.clusters()[:targets]
    azure, state = _counting(cloud)
    with cloud.azure.called_by(caller):
        for number in range(events):
            tag(cloud, records[number % len(records)].desired.id)
    began = time.process_time()
    cloud.run(SETTLES, until=lambda: False)
    seconds = time.process_time() - began
    return Storm(events, azure["get_cluster"], sum(state.calls.values()), seconds)


def main() -> None:
    """Measure two edits, and two storms."""
    given = [int(argument) for argument in sys.argv[1:]]
    clusters, events = [*given, *(1000, 5000)[len(given) :]]
    cloud = hearing(clusters)
    print(f"{clusters} clusters", flush=True)
    for what, number, edit in (("a pool that is scaled", 1, scale), ("a tag by the tags API", 2, tag)):
        shown = show(cloud, number, edit)
        azure = ", ".join(f"{name} {times}" for name, times in sorted(shown.azure.items()))
        calls = sum(shown.state.values())
        print(f"{what}: shown {shown.seconds:g} s after its event, by {shown.by}; calls to Azure: {azure}")
        print(f"  calls to the state: {calls}, {shown.records} records")
    for what, caller, targets in (("the app's own", FUNCTION_APP.id, clusters), ("a person's", WHO, 1)):
        found = storm(hearing(clusters), events, caller, targets)
        print(f"{found.events} events, {what}: {found.comparisons} comparisons, {found.seconds:.1f} s")
        print(f"  calls to the state: {found.state}")


if __name__ == "__main__":
    main()
