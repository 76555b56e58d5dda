"""What a fleet costs in a month: ``python -m bench.cost [CLUSTERS] [LARGER]``, in US dollars of East US.

Counts what the functions do, in memory and under Azure's limits: for the timers, with and without routes of
notifications, a sweep, a check, a creation, a commit that changes five clusters, one that changes many, and a
delete. A month adds them up, and another one for a larger fleet from the figures for each cluster. Its
seconds are an upper bound: no two executions share an instance, and the calls of each come one after the
other.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from bench.counting import Call, Watched
from localcloud.azure.world.arm_resources import Timings
from localcloud.memory.memory_cloud import QUEUES, MemoryCloud
from localcloud.servicebus.world.broker_values import SessionLock
from shared.app.outbox import request_whole_check, request_whole_sweep
from shared.app.recovery import housekeeping, missed_work
from shared.app.runs import record_run
from shared.cluster.record_parts import Phase
from shared.cluster.reporting.measurements import Measurement, Span
from shared.ports import FleetConfig, Kubernetes, KubernetesApi, Ports, Timing
from shared.ports.tally import LEAST_SECONDS
from shared.prices import own_use
from tests.support import fleet_files
from tests.support.notifications import notifying
from tests.support.pipeline_runs import push

SECONDS = {"tables": 0.01, "bus": 0.02, "azure": 0.5, "github": 0.3, "kubernetes": 0.1}
"""How long a call of each kind is taken to last."""
KINDS = ("executions", "gigabyte-seconds", *SECONDS)
PAGE = 1000
"""Entities that one request of Table Storage returns at most (its REST API, Query Entities)."""
DAYS = 365 / 12


def plan_missed_head(ports: Ports) -> None:
    """Do what the timer of that name does."""
    housekeeping.record_changed_settings(ports)
    missed_work.plan_missed_head(ports)
    housekeeping.measure_fleet(ports)
    missed_work.wake_notifier(ports)


TIMERS = ((plan_missed_head, 12 * 24 * DAYS), (missed_work.resend_overdue, 60 * 24 * DAYS))
"""The timers, and how often they run in a month by the schedules of docs/settings.md."""
ROUNDS = ((request_whole_sweep, 6 * DAYS), (request_whole_check, 6 * DAYS))
"""The timers whose work grows with the fleet."""
SETTLED = 600.0
"""Seconds after which a sweep takes a record for settled, and no connection of a job is left."""
FEW, MANY = 5, 50
COMMITS, ALL_CHANGED, TURNOVER = 400, 2, 0.02
"""A busy month: commits that change five clusters, commits that change all, and what part comes and goes."""

PRICES = {
    "executions": own_use.EXECUTION,
    "gigabyte-seconds": own_use.GIGABYTE_SECOND,
    "tables": own_use.TABLE_OPERATION,
    "bus": own_use.BUS_OPERATION,
}
NAMESPACE = own_use.BUS_HOUR * 24 * DAYS
"""The base charge of a Service Bus namespace in the Standard tier."""


@dataclass
class Usage:
    """What was used: ``executions``, ``gigabyte-seconds``, and calls by kind."""

    used: dict[str, float] = field(default_factory=lambda: dict.fromkeys(KINDS, 0.0))

    def plus(self, other: Usage, times: float = 1) -> Usage:
        """Return the sum with another, which happens so many times."""
        return Usage({kind: self.used[kind] + times * other.used[kind] for kind in KINDS})

    def dollars(self) -> float:
        """Return the price of it in a month, with the namespace."""
        used = self.used | {"bus": max(0.0, self.used["bus"] - own_use.BUS_INCLUDED)}
        return NAMESPACE + sum(price * used[kind] for kind, price in PRICES.items())


def _counted(inner: object, kind: str, used: dict[str, float]) -> Any:
    """Return a port that counts its calls as of a kind; a list counts by the pages that it takes."""

    def count(call: Call) -> None:
        rows = call.rows if kind == "tables" else 1
        used[kind] += max(1, math.ceil(rows / PAGE))

    return Watched(inner, count)


class _CountedKubernetes:
    """The Kubernetes port, whose connections count their calls."""

    def __init__(self, inner: Kubernetes, counts: dict[str, float]) -> None:
        self._inner, self._counts = inner, counts

    def connect(self, *given: Any, **named: Any) -> KubernetesApi:
        api: KubernetesApi = _counted(self._inner.connect(*given, **named), "kubernetes", self._counts)
        return api


class _Taken:
    """Telemetry that takes what is measured, so that its reads are counted."""

    def record(self, observed: Iterable[Measurement | Span]) -> None:
        for _ in observed:
            pass


class CountedCloud(MemoryCloud):
    """A cloud in memory that counts what its functions use."""

    def __init__(self) -> None:
        super().__init__(
            throttle=True,
            config=FleetConfig("example", "example/fleet", timing=Timing(lease_seconds=90, poll_seconds=20)),
        )
        self.azure.engine.timings = Timings(create_cluster=300)
        self.usage = Usage()
        count = partial(_counted, used=self.usage.used)
        ports = self.ports
        counted: dict[str, Any] = {name: count(getattr(ports, name), "bus") for name in QUEUES}
        counted["git_host"] = count(ports.git_host, "github")
        counted |= {"state": count(ports.state, "tables"), "azure": count(ports.azure, "azure")}
        counted["services"] = replace(ports.services, telemetry=_Taken())
        counted["kubernetes"] = _CountedKubernetes(ports.kubernetes, self.usage.used)
        self.with_ports(lambda ports: replace(ports, **counted))

    def deliver(self, queue: str, lock: SessionLock, ports: Ports) -> None:
        """Deliver a message, and count the execution."""
        before = self.usage.plus(Usage())
        super().deliver(queue, lock, ports)
        self._executed(before)
        self.usage.used["bus"] += own_use.RECEIVED

    def run_timers(self, ports: Ports) -> None:
        """Run the timers without counting them: a month has a number of them."""
        before = self.usage.plus(Usage())
        super().run_timers(ports)
        self.usage.used.update(before.used)

    def timer(self, function: Callable[[Ports], object]) -> Usage:
        """Return what a run of a timer uses, with the messages that it sends."""
        before = self.usage.plus(Usage())
        function(self.ports)
        record_run(function.__name__, self.ports)
        self._executed(before)
        self.run(7 * 86400)
        return self._since(before)

    def commit(self, files: dict[str, bytes]) -> Usage:
        """Push, run until nothing is left to do, and return what that used."""
        before = self.usage.plus(Usage())
        push(self, files)
        self.run(7 * 86400)
        self.clock.advance(SETTLED)
        return self._since(before)

    def _since(self, before: Usage) -> Usage:
        return self.usage.plus(before, -1)

    def _executed(self, before: Usage) -> None:
        used = self.usage.used
        seconds = sum(cost * (used[kind] - before.used[kind]) for kind, cost in SECONDS.items())
        used["executions"] += 1
        used["gigabyte-seconds"] += own_use.GIGABYTES * max(LEAST_SECONDS, seconds)


@dataclass(frozen=True)
class Measured:
    """What was used: by each timer, for each cluster that is created, changed with many, or deleted.

    ``quiet`` are the timers of a fleet without routes of notifications, ``rounds`` a sweep and a check.
    ``few`` is what a commit uses that changes five clusters.
    """

    clusters: int
    quiet: tuple[Usage, ...]
    timers: tuple[Usage, ...]
    rounds: tuple[Usage, ...]
    created: Usage
    few: Usage
    changed: Usage
    deleted: Usage

    def of(self, clusters: int) -> Measured:
        """Return what a larger fleet would use: sweeps and checks grow with it, a commit of five does not."""
        times = clusters / self.clusters
        return replace(
            self, clusters=clusters, rounds=tuple(Usage().plus(usage, times) for usage in self.rounds)
        )

    def idle(self) -> Usage:
        """Return a month in which nothing happens to a fleet without routes, sweeps and checks."""
        return _month(self.quiet, TIMERS)

    def watched(self) -> Usage:
        """Return a month in which nothing happens to a fleet with routes, sweeps and checks."""
        return _month(self.timers, TIMERS).plus(_month(self.rounds, ROUNDS))

    def busy(self) -> Usage:
        """Return a month with commits, changes of the whole fleet, creations and deletes."""
        turnover = TURNOVER * self.clusters
        month = self.watched().plus(self.few, COMMITS).plus(self.changed, ALL_CHANGED * self.clusters)
        return month.plus(self.created, turnover).plus(self.deleted, turnover)


def _month(used: Iterable[Usage], runs: Iterable[tuple[Any, float]]) -> Usage:
    month = Usage()
    for usage, (_, times) in zip(used, runs, strict=True):
        month = month.plus(usage, times)
    return month


def measure(clusters: int) -> Measured:
    """Create the clusters, change some, delete some, and return what each cost."""
    cloud, names = CountedCloud(), [f"cluster-{number:05}" for number in range(clusters)]
    cloud.azure.engine.subscriptions = tuple(_subscription(number) for number in range(clusters))
    files = fleet_files.fleet(budget=clusters) | {_path(name): _manifest(name) for name in names}
    created = cloud.commit(files)
    cloud.commit(notifying(files))
    quiet = tuple(cloud.timer(function) for function, _ in TIMERS)
    cloud.commit(files)
    timers = tuple(cloud.timer(function) for function, _ in TIMERS)
    rounds = tuple(cloud.timer(function) for function, _ in ROUNDS)
    few = cloud.commit(files := files | {_path(name): _manifest(name, "few") for name in names[:FEW]})
    many = names[:MANY]
    changed = cloud.commit(files := files | {_path(name): _manifest(name, "many") for name in many})
    going = names[: max(1, round(TURNOVER * clusters))]
    deleted = cloud.commit({path: text for path, text in files.items() if path not in map(_path, going)})
    left = [record.name for record in cloud.state.clusters() if record.phase is Phase.READY]
    if left != names[len(going) :]:
        raise SystemExit("the fleet is not what git asks for")
    each = Usage().plus
    return Measured(
        clusters,
        quiet,
        timers,
        rounds,
        each(created, 1 / clusters),
        few,
        each(changed, 1 / len(many)),
        each(deleted, 1 / len(going)),
    )


def _subscription(number: int) -> str:
    """Return the subscription of a cluster; forty share one."""
    return f"00000000-0000-0000-0000-{number // 40 + 1:012}"


def _path(name: str) -> str:
    return f"clusters/{name}/cluster.yaml"


def _manifest(name: str, tag: str = "") -> bytes:
    extra = f"  subscriptionId: {_subscription(int(name.rsplit('-', 1)[1]))}\n"
    return fleet_files.cluster(name, extra=extra + (f"  tags: {{changed: {tag}}}\n" if tag else ""))


def _show(what: str, usage: Usage) -> None:
    used = ", ".join(
        f"{usage.used[kind]:,.1f} {kind}" for kind in ("executions", "gigabyte-seconds", *SECONDS)
    )
    print(f"{what:<34} {used}")


def main() -> None:
    """Measure and print."""
    measured = measure(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
    for usage, (function, _) in zip(measured.quiet, TIMERS, strict=True):
        _show(f"timer {function.__name__}", usage)
    for usage, (function, _) in zip(measured.timers, TIMERS, strict=True):
        _show(f"the same with routes: {function.__name__}"[:34], usage)
    for usage, what in zip(measured.rounds, ("a sweep", "a check"), strict=True):
        _show(what, usage)
    _show("a cluster that is created", measured.created)
    _show("a commit that changes five", measured.few)
    _show("a cluster that many change with", measured.changed)
    _show("a cluster that is deleted", measured.deleted)
    for fleet in (measured, *(measured.of(int(larger)) for larger in sys.argv[2:3])):
        months = {"idle": fleet.idle(), "watched": fleet.watched(), "busy": fleet.busy()}
        for what, month in months.items():
            _show(f"{what} month", month)
            print(f"{what} month of {fleet.clusters:,} clusters: ${month.dollars():,.2f}")


if __name__ == "__main__":
    main()
