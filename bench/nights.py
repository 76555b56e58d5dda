"""What a fleet that sleeps at night costs and saves: ``python -m bench.nights [CLUSTERS] [--pools]``.

A week of a fleet in virtual time, from Monday noon on, over the real client library and HTTPS to the local
Azure; queues, tables and Kubernetes are in memory. Every cluster sleeps at night and at the weekend, as a
whole, or its User pool with ``--pools``. Sweeps run every four hours. A commit upgrades Kubernetes on
Wednesday night, which waits for the morning. Counted are the requests to Azure by night and cluster; those of
the lists, which all clusters share, and those of the upgrade are apart.
"""

from __future__ import annotations

import argparse
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from localcloud.azure.wire.arm_server import ArmServer
from localcloud.common.certificates import Authority
from localcloud.memory.memory_cloud import MemoryCloud
from shared.adapters.arm import ArmAzure
from shared.app.outbox import request_whole_sweep
from shared.azure.changes.writes import is_stopped
from shared.cluster.record_parts import Phase
from shared.ports.process import Stays
from tests.support import fleet_files
from tests.support.azure_ports import StaticCredential
from tests.support.one_cluster import ENTRA, pool
from tests.support.pipeline_runs import push
from tests.support.sleepers import sleeping, until

MONDAY = datetime(2026, 1, 12, 12, tzinfo=UTC)
EVENING, MORNING = (16, 55), (5, 45)
"""Around the night by UTC: the schedule stops at 17:00, and starts at 05:00."""
DAYS = 7
UPGRADED = 2
"""The night of the upgrade, by days after Monday."""
STEP = timedelta(hours=4)
"""Between two sweeps, as SWEEP_SCHEDULE has it."""
NODES = 3
"""Of each cluster: a System node, and two of a User pool."""
_CLUSTER = re.compile(r"/managedclusters/([^/]+)", re.IGNORECASE)


@dataclass(frozen=True)
class Night:
    """The requests of a night by cluster, those that all clusters share, and the clusters that slept."""

    day: str
    clusters: Counter[str]
    shared: int
    slept: int


@dataclass(frozen=True)
class Week:
    """Its nights, and the hours that nodes ran, of those that there would have been without any sleep.

    ``versions`` counts the clusters by the version that they run at its end, ``ready`` those that are Ready
    at noon.
    """

    nights: Sequence[Night]
    ran: float
    hours: float
    versions: Counter[str]
    ready: int


@contextmanager
def over_the_wire(cloud: MemoryCloud) -> Iterator[list[dict[str, Any]]]:
    """Let the app reach Azure by HTTPS; yield the log of the requests."""
    authority, before = Authority(), os.environ.get("REQUESTS_CA_BUNDLE")
    with tempfile.TemporaryDirectory() as folder:
        bundle = Path(folder) / "ca.pem"
        authority.write(bundle)
        os.environ["REQUESTS_CA_BUNDLE"] = str(bundle)
        with ArmServer(cloud.azure, authority, accepts="a-token".__eq__) as server:
            adapter = ArmAzure(StaticCredential(), base_url=server.url)
            cloud.with_ports(lambda ports: replace(ports, azure=adapter))
            try:
                yield server.door.requests
            finally:
                adapter.close()
                del os.environ["REQUESTS_CA_BUNDLE"]
                if before is not None:
                    os.environ["REQUESTS_CA_BUNDLE"] = before


def files(names: Sequence[str], scope: str, version: str) -> dict[str, bytes]:
    """Return the fleet, which takes a change everywhere at once."""
    own = f'{pool()}  kubernetesVersion: "{version}"\n{ENTRA}{sleeping(f", scope: {scope}, startEarly: 15m")}'
    manifests = {f"clusters/{name}/cluster.yaml": fleet_files.cluster(name, extra=own) for name in names}
    return fleet_files.all_at_once(fleet_files.fleet()) | manifests


def measure(clusters: int, scope: str = "cluster", days: int = DAYS) -> Week:
    """Let a fleet be for so many days."""
    cloud, names = MemoryCloud(throttle=False), [f"cluster-{number:03}" for number in range(clusters)]
    cloud.with_ports(
        lambda ports: replace(ports, process=replace(ports.process, stays=Stays(0)))
    )  # one thread: who stays holds up all
    with over_the_wire(cloud) as requests:
        push(cloud, files(names, scope, "1.35"))
        cloud.run(7200)
        cloud.clock.advance((MONDAY - cloud.clock()).total_seconds())
        nights, ran = list[Night](), 0.0
        for day in range(days):
            ran += _go_on(cloud, EVENING, 0)
            begin = len(requests)
            ran += _go_on(cloud, (23, 0), 0)
            slept = sum(record.phase is Phase.SLEEPING for record in cloud.state.clusters())
            if day == UPGRADED:
                push(cloud, files(names, scope, "1.36"))
            ran += _go_on(cloud, MORNING, 1)
            nights.append(night_of(cloud.clock() - timedelta(days=1), requests[begin:], slept))
            ran += _go_on(cloud, (12, 0), 0)
    running = Counter(
        str(live["properties"]["currentKubernetesVersion"]).rpartition(".")[0] for live in _live(cloud)
    )
    ready = sum(record.phase is Phase.READY for record in cloud.state.clusters())
    return Week(nights, ran, days * 24.0 * NODES * clusters, running, ready)


def _go_on(cloud: MemoryCloud, to: tuple[int, int], days: int) -> float:
    """Run until a time of the day, so many days later, with the sweeps; return the hours that nodes ran."""
    end = cloud.clock().replace(hour=to[0], minute=to[1], second=0, microsecond=0) + timedelta(days=days)
    ran, quarter = 0.0, timedelta(minutes=15)
    while cloud.clock() < end:
        before = cloud.clock()
        at = min(end, before + quarter)
        until(cloud, at.hour, (at.date() - before.date()).days, at.minute)
        ran += sum(map(_nodes, _live(cloud))) * (at - before) / timedelta(hours=1)
        if before.hour // 4 != at.hour // 4:
            request_whole_sweep(cloud.ports)
    return ran


def _live(cloud: MemoryCloud) -> list[Any]:
    return [cloud.azure.peek(cluster) for cluster in cloud.azure.peek_pools()]


def _nodes(live: Any) -> int:
    pools = live["properties"]["agentPoolProfiles"]
    return 0 if is_stopped(live) else sum(pool["count"] for pool in pools)


def night_of(evening: datetime, requests: Sequence[dict[str, Any]], slept: int) -> Night:
    """Return what a night of a log of requests has; a path with a cluster is that cluster's."""
    of_cluster = [found[1] for request in requests if (found := _CLUSTER.search(request["path"]))]
    return Night(f"{evening:%A}", Counter(of_cluster), len(requests) - len(of_cluster), slept)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.nights")
    parser.add_argument("clusters", type=int, nargs="?", default=60)
    parser.add_argument("--pools", action="store_true", help="User pools sleep, and no cluster")
    given = parser.parse_args()
    week = measure(given.clusters, "pools" if given.pools else "cluster")
    print(f"{given.clusters} clusters, a week: {week.ready} Ready at its end, versions {dict(week.versions)}")
    saved = week.hours - week.ran
    print(f"hours of nodes: {week.ran:.0f} of {week.hours:.0f}, {saved / week.hours:.0%} saved")
    for night in week.nights:
        most, each = max(night.clusters.values(), default=0), night.clusters.total() / given.clusters
        print(
            f"{night.day:10} {night.slept} slept, {each:.1f} requests a cluster, {most} at most, "
            f"{night.shared} of shared lists"
        )


if __name__ == "__main__":
    main()
