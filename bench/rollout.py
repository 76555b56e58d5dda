"""A whole fleet's rollout under Azure's documented limits: ``python -m bench.rollout [CLUSTERS] [WORKERS]``.

Virtual time on the local cloud in memory, with all clusters in one subscription. Every message that is due
runs at once, so there are as many steps at a time as there are sessions; each worker holds tokens and
connections of its own.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from localcloud.azure.world import request_limits
from localcloud.azure.world.arm_resources import Timings
from localcloud.memory.memory_cloud import Connections, MemoryCloud
from shared.fleet.resource_ids import ClusterId
from shared.pipeline.intake.accept import accept
from shared.pipeline.intake.webhook import Pushed
from shared.ports import FleetConfig, Kubernetes, KubernetesApi, Ports
from shared.ports.token_cache import TokenCache
from tests.support import fleet_files

CREATION = 300.0
"""Seconds that Azure takes to create a cluster; 4 to 6 minutes are usual."""
CONFIG = FleetConfig("example", "example/fleet", lease_seconds=90, poll_seconds=20)
SHARED = (request_limits.ARM_READ, request_limits.ARM_WRITE, request_limits.ANY_OTHER)
FIRST = 60.0
SESSION_IDLE = timedelta(seconds=0.5)
"""As ``sessionIdleTimeout`` in host.json: a job that does not wait stays with its worker."""


class Workers:
    """The Kubernetes port and the token cache of one worker after the other."""

    def __init__(self, cloud: MemoryCloud, count: int) -> None:
        ports = cloud.ports
        made = [Connections(cloud.kubernetes, ports.azure, cloud.clock) for _ in range(count)]
        self._clock, self._connections = cloud.clock, itertools.cycle(made)
        self._sessions: dict[ClusterId, tuple[Connections, datetime]] = {}
        self._caches = itertools.cycle([TokenCache() for _ in range(count)])

    def connect(
        self, cluster: ClusterId, *, kubeconfig: Callable[[ClusterId], str] | None = None
    ) -> KubernetesApi:
        """Connect as the worker that has the cluster's session; an idle one goes to the next worker."""
        now = self._clock()
        worker, last = self._sessions.get(cluster, (None, now))
        if worker is None or now - last > SESSION_IDLE:
            worker = next(self._connections)
        self._sessions[cluster] = (worker, now)
        return worker.connect(cluster, kubeconfig=kubeconfig)

    def ports(self, ports: Ports) -> Ports:
        """Return the ports of the workers."""
        kubernetes: Kubernetes = self
        return replace(ports, kubernetes=kubernetes, token_cache=_Caches(self._caches))


class _Caches(TokenCache):
    """The token caches of all workers, one after the other."""

    def __init__(self, caches: itertools.cycle[TokenCache]) -> None:
        super().__init__()
        self._caches = caches

    def put(self, key: str, tokens: int, until: datetime) -> None:
        next(self._caches).put(key, tokens, until)

    def take(self, key: str, now: datetime) -> bool:
        return next(self._caches).take(key, now)


@dataclass(frozen=True)
class Rollout:
    """What a rollout took: virtual and real seconds, calls by limit, refusals by their time in seconds."""

    seconds: float
    real: float
    ready: int
    calls: Counter[str]
    refused: list[float]


def roll_out(clusters: int, workers: int) -> Rollout:
    """Create so many clusters from nothing until all are Ready."""
    cloud = MemoryCloud(throttle=True, config=CONFIG)
    cloud.azure.engine.timings = Timings(create_cluster=CREATION)
    cloud.with_ports(Workers(cloud, workers).ports)
    begin, real = cloud.clock(), time.monotonic()
    names = [f"cluster-{number:04}" for number in range(clusters)]
    commit = cloud.repository.push(fleet_files.fleet(*names))
    accept(Pushed("d1", f"push-{commit}", commit), cloud.ports)
    cloud.run(86400)
    ready = sum(record.phase.value == "Ready" for record in cloud.state.clusters())
    limits = cloud.azure.limits
    refused = [(at - begin).total_seconds() for _, at in limits.refusals]
    seconds, took = (cloud.clock() - begin).total_seconds(), time.monotonic() - real
    return Rollout(seconds, took, ready, limits.counts, refused)


def lower_bound(alone: Rollout, calls: Mapping[str, float]) -> float:
    """Return the least seconds in which the buckets allow so many calls.

    A write begins a creation and a credential ends it, so those two buckets come on top of one cluster's
    time; reads happen meanwhile.
    """
    waits = {limit: (calls[limit.name] - limit.burst) / limit.per_second for limit in SHARED}
    gates = max(0.0, waits[request_limits.ARM_WRITE], waits[request_limits.ANY_OTHER])
    return max(alone.seconds + gates, waits[request_limits.ARM_READ])


def main() -> None:
    """Roll out and print."""
    clusters = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    workers = int(sys.argv[2]) if len(sys.argv) > 2 else 4
    alone, whole = roll_out(1, 1), roll_out(clusters, workers)
    needed = lower_bound(alone, {name: number * clusters for name, number in alone.calls.items()})
    sent = lower_bound(alone, whole.calls)
    early = sum(second < FIRST for second in whole.refused)
    print(f"{whole.ready} of {clusters} clusters Ready, {workers} workers, one subscription")
    print(f"429 in the first minute {early}, after it {len(whole.refused) - early}")
    print(f"virtual time    {whole.seconds:8.0f} s")
    print(f"lower bound     {needed:8.0f} s  for the calls needed; one cluster alone {alone.seconds:.0f} s")
    print(f"                {sent:8.0f} s  for the calls sent: each worker fetches credentials of its own")
    print(f"real time       {whole.real:8.1f} s")
    print("calls of each cluster, and alone:")
    for name, number in whole.calls.most_common():
        print(f"  {name:<32} {number / clusters:6.2f}  {alone.calls[name]:4}")


if __name__ == "__main__":
    main()
