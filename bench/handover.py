"""What the hand-over of a plan takes: ``python -m bench.handover [CLUSTERS] [MILLISECONDS]``.

A push creates a fleet in memory, and only the planner runs: in parts, several clusters at a time, and for
comparison one cluster after the other, in one message. Virtual seconds are those of the calls, each of which
is assumed to take ``MILLISECONDS``; seconds of the processor come on top.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from bench.fleet import OF_A_SUBSCRIPTION
from localcloud.memory.memory_cloud import MemoryCloud
from shared.ports import FleetConfig, Timing
from shared.ports.process import THREADS, Together, in_turn
from tests.support import fleet_files
from tests.support.hand_overs import plan_step
from tests.support.pipeline_runs import push

MILLISECONDS = 50
"""For a call to a service: what sends of a message took in www.planetgeek.ch/2020/04/27/azure-service-bus-
net-sdk-deep-dive-sender-side-batching, over a home connection; within a region it is less."""
CALLS = {"blobs": THREADS, "save_blobs": 100, "add_group_members": 100, "clusters": 1000, "summaries": 1000}
"""How many of the entities that are read or written take the time of one call."""
PARTS = FleetConfig(
    "example", "example/fleet", timing=Timing(clock_skew=timedelta(days=1))
)  # it stands still meanwhile
IN_TURN = replace(PARTS, limits=replace(PARTS.limits, handover_clusters=1, handover_seconds=float("inf")))


class Meter:
    """Adds up the seconds of calls; of those at a time, it counts the longest of a few lanes."""

    def __init__(self, seconds: float) -> None:
        self._each, self.seconds, self.calls = seconds, 0.0, Counter[str]()

    def around(self, port: object) -> Any:
        """Return a port whose calls take time."""
        return _Metered(port, self)

    def called(self, name: str, entities: int) -> None:
        """Count a call, which may stand for several calls to the service."""
        calls = -(-entities // CALLS[name]) if name in CALLS else 1
        self.calls[name] += calls
        self.seconds += calls * self._each

    def together(self, work: Callable[[Any], Any], values: Sequence[Any]) -> Sequence[Any]:
        """Do the work, as if a few threads did it."""
        began, lanes, results = self.seconds, [0.0] * THREADS, []
        for value in values:
            self.seconds = 0.0
            results.append(work(value))
            lanes[lanes.index(min(lanes))] += self.seconds
        self.seconds = began + max(lanes)
        return results


class _Metered:
    def __init__(self, inner: object, meter: Meter) -> None:
        self._inner, self._meter = inner, meter

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        if not callable(method):
            return method

        def call(*given: Any, **named: Any) -> Any:
            found = method(*given, **named)
            sized = given[0] if given else found
            self._meter.called(name, len(sized) if name in CALLS else 1)
            return found

        return call


@dataclass(frozen=True)
class Cost:
    """Seconds of the calls and of the processor, both for each message of the planner, and the calls."""

    calls: Counter[str]
    virtual: list[float]
    processor: list[float]

    @property
    def longest(self) -> float:
        """The seconds of the message that took longest."""
        return max(map(sum, zip(self.virtual, self.processor, strict=True)))


def _manifest(number: int) -> tuple[str, bytes]:
    """Return the path and the manifest of a cluster, in a subscription that is not full."""
    name, subscription = (
        f"cluster-{number:05}",
        f"00000000-0000-0000-0000-{1 + number // OF_A_SUBSCRIPTION:012}",
    )
    extra = f"  subscriptionId: {subscription}\n"
    return f"clusters/{name}/cluster.yaml", fleet_files.cluster(name, extra=extra)


def measure(clusters: int, milliseconds: float, config: FleetConfig) -> Cost:
    """Plan a push of so many new clusters, and hand the plan over."""
    cloud, meter = MemoryCloud(config=config), Meter(milliseconds / 1000)
    together: Together = in_turn if config.limits.handover_clusters == 1 else meter.together
    names = ("state", "plans", "jobs", "changes", "previews", "git_host")
    metered: dict[str, Any] = {name: meter.around(getattr(cloud.ports, name)) for name in names}
    commit = push(cloud, fleet_files.fleet() | dict(map(_manifest, range(clusters))))
    cloud.with_ports(
        lambda ports: replace(
            ports, **metered, together=together, elapsed=lambda: meter.seconds + time.process_time()
        )
    )
    virtual, processor = [], []
    while cloud.state.fleet().commit != commit:
        seconds, began = meter.seconds, time.process_time()
        if not plan_step(cloud):
            cloud.clock.advance(1)  # until the branch may be read again
            continue
        virtual.append(meter.seconds - seconds)
        processor.append(time.process_time() - began)
    counts = [cloud.broker.counts(queue) for queue in ("jobs", "changes")]
    sent = sum(count.active + count.scheduled for count in counts)
    if len(cloud.state.clusters()) != clusters or sent != clusters:
        raise SystemExit("the hand-over did not end")
    return Cost(meter.calls, virtual, processor)


def _show(what: str, clusters: int, cost: Cost) -> None:
    print(
        f"{clusters:6} {what:20} calls {sum(cost.virtual):8.1f} s, processor {sum(cost.processor):6.1f} s, "
        f"{len(cost.virtual):3} messages, the longest {cost.longest:7.1f} s, "
        f"{cost.calls.total() / clusters:.2f} calls a cluster"
    )


def main() -> None:
    """Measure a hundredth and a tenth of the fleet, and the fleet."""
    clusters = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    milliseconds = float(sys.argv[2]) if len(sys.argv) > 2 else MILLISECONDS
    for size in (clusters // 100, clusters // 10, clusters):
        _show("one after the other", size, measure(size, milliseconds, IN_TURN))
        _show("in parts", size, measure(size, milliseconds, PARTS))


if __name__ == "__main__":
    main()
