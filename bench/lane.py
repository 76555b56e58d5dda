"""A small change while a large one runs: ``python -m bench.lane [CLUSTERS] [HOSTS] [small|large]``.

Virtual time on the local cloud in memory, with Azure's documented limits, and all clusters in one
subscription. Each host serves as many sessions of its queue at a time as host.json says, and a message keeps
its session for as long as its calls usually take. Five clusters are changed on a quiet fleet, and then again
and again while the other clusters are created, or while all of them are changed with ``large``.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from heapq import heappop, heappush
from itertools import count
from typing import Any

from localcloud.azure.world.arm_resources import Timings
from localcloud.memory.memory_cloud import JOB_QUEUES, QUEUES, Connections, MemoryCloud, Tripwire
from localcloud.memory.memory_cloud import Counter as Calls
from localcloud.runtime.options import ROOT
from localcloud.servicebus.world.broker_values import Delivery, SessionLock
from shared.jobs.job import Delay, JobQueue
from shared.jobs.messages import JobMessage, PlanRequest
from shared.jobs.small_changes import SMALL_CHANGE
from shared.pipeline.intake.accept import accept
from shared.pipeline.intake.webhook import Pushed
from shared.pipeline.planner import planner
from shared.pipeline.worker import worker
from shared.ports import FleetConfig, Ports
from shared.ports.token_cache import TokenCache
from tests.support import fleet_files

CONFIG = FleetConfig("example", "example/fleet", lease_seconds=90, poll_seconds=20)
TIMINGS = Timings(create_cluster=300.0)
SECONDS = {"state": 0.01, **dict.fromkeys(QUEUES, 0.01), "repository": 0.2, "azure": 0.2, "kubernetes": 0.05}
"""How long a call of a port takes."""
SMALL = 5
FIRST, EVERY = 60.0, 240.0
"""Seconds from the large push to the first small one, and from each small one to the next, at the least."""
_BUS = json.loads((ROOT / "host.json").read_text())["extensions"]["serviceBus"]
SESSIONS: int = _BUS["maxConcurrentSessions"]
IDLE = float(_BUS["sessionIdleTimeout"].rpartition(":")[2])
TIMER = 60.0


class _Cost(Calls):
    """The seconds that the calls of one message take."""

    def __init__(self, seconds: float, spend: Callable[[float], None]) -> None:
        super().__init__()
        self._seconds, self._spend = seconds, spend

    def after(self) -> None:
        self._spend(self._seconds)


class Host:
    """One instance of the function of a queue: its free sessions, its connections and its tokens."""

    def __init__(self, queue: str, sessions: int, cloud: MemoryCloud, waits: Waits) -> None:
        self.queue, self.free = queue, sessions
        self.spent, self._waits = 0.0, waits
        ports = replace(cloud.ports, token_cache=TokenCache())
        ports = replace(ports, kubernetes=Connections(cloud.kubernetes, ports.azure, cloud.clock))
        wires: dict[str, Any] = {
            name: Tripwire(getattr(ports, name), _Cost(seconds, self._spend))
            for name, seconds in SECONDS.items()
        }
        self.ports: Ports = replace(ports, **wires)

    def _spend(self, seconds: float) -> None:
        self.spent += seconds

    def run(self, body: bytes) -> float:
        """Run the function with a message; return how long its calls take."""
        self.spent = 0.0
        if self.queue == "plans":
            planner.handle(PlanRequest.model_validate_json(body), self.ports)
        elif self.queue in JOB_QUEUES:
            message = JobMessage.model_validate_json(body)
            self._waits.begins(message.cluster)
            worker.handle(message, JobQueue(self.queue), self.ports)
            self._waits.ended(message.cluster)
        return self.spent


class Waits:
    """Seconds that each cluster waited for a session, and for each of Azure's limits."""

    def __init__(self, cloud: MemoryCloud) -> None:
        self._cloud = cloud
        self.seconds: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def begins(self, name: str) -> None:
        """Note that a message of a cluster is handled, which may have been due before."""
        record, now = self._cloud.state.cluster(name), self._cloud.clock()
        if record is not None and record.job.active:
            self.seconds[name]["a session"] += max(0, round((now - record.job.due(now)).total_seconds()))

    def ended(self, name: str) -> None:
        """Note what the message left the cluster to wait for."""
        record, now = self._cloud.state.cluster(name), self._cloud.clock()
        if record is not None and record.job.active and record.job.next_run.delay is Delay.RATE_LIMIT:
            reserved = {key: max(moments) for key, moments in record.job.next_run.reservations.items()}
            bucket = max(reserved, key=lambda key: reserved[key], default="|a crowded bucket")
            seconds = (record.job.next_run.at - now).total_seconds()
            self.seconds[name][bucket.partition("|")[2]] += round(seconds)

    def longest(self, names: list[str]) -> Counter[str]:
        """Return those of the cluster that waited longest, and begin again."""
        found = max((self.seconds[name] for name in names), key=lambda each: sum(each.values()))
        self.seconds.clear()
        return found


class Hosts:
    """The hosts of one fleet, on the virtual clock of their cloud: some for the queue ``jobs``.

    Each other function has one host: as in Azure, it has instances of its own, and few messages.
    """

    def __init__(self, cloud: MemoryCloud, number: int, sessions: int) -> None:
        self.cloud, self.waits = cloud, Waits(cloud)
        self._hosts = [
            Host(queue, sessions if queue == "jobs" else SESSIONS, cloud, self.waits)
            for queue in QUEUES
            for _ in range(number if queue == "jobs" else 1)
        ]
        self._events: list[tuple[datetime, int, Callable[[], None]]] = []
        self._order = count()
        self._later(TIMER, self._timers)
        self._later(1.0, self._settle)

    def run(self, until: Callable[[], bool], *, check: float = 1.0) -> None:
        """Run until something holds, which is checked about every so many seconds."""
        due = self.cloud.clock()
        while True:
            self._accept()
            if self.cloud.clock() >= due:
                if until():
                    return
                due = self.cloud.clock() + timedelta(seconds=check)
            self._next()

    def _next(self) -> None:
        """Go to the next event, or to the next message."""
        message, now = self.cloud.broker.next_time(), self.cloud.clock()
        at = self._events[0][0]
        if message is not None and now < message < at:
            self._advance(message)
            return
        self._advance(at)
        heappop(self._events)[2]()

    def _advance(self, to: datetime) -> None:
        self.cloud.clock.advance(max(0.0, (to - self.cloud.clock()).total_seconds()))

    def _later(self, seconds: float, then: Callable[[], None]) -> None:
        heappush(self._events, (self.cloud.clock() + timedelta(seconds=seconds), next(self._order), then))

    def _timers(self) -> None:
        self._later(TIMER, self._timers)
        self.cloud.run_timers(self.cloud.ports)

    def _settle(self) -> None:
        self._later(1.0, self._settle)
        self.cloud.azure.complete_due()
        self.cloud.kubernetes.reconcile()

    def _accept(self) -> None:
        for host in sorted(self._hosts, key=lambda each: -each.free):
            while host.free and (lock := self.cloud.broker.accept_session(host.queue)) is not None:
                host.free -= 1
                self._serve(host, lock)

    def _serve(self, host: Host, lock: SessionLock, *, idle: bool = False) -> None:
        """Run the next message of a session; release an idle one."""
        delivery = self.cloud.broker.receive(host.queue, lock)
        if delivery is not None:
            seconds = host.run(delivery.message.draft.body)
            self._later(seconds, lambda: self._complete(host, lock, delivery))
        elif idle:
            self.cloud.broker.release_session(host.queue, lock)
            host.free += 1
        else:
            self._later(IDLE, lambda: self._serve(host, lock, idle=True))

    def _complete(self, host: Host, lock: SessionLock, delivery: Delivery) -> None:
        self.cloud.broker.complete(host.queue, delivery.lock_token)
        self._serve(host, lock)


@dataclass(frozen=True)
class Change:
    """One small change: when it was pushed, and seconds until it was planned and until all were Ready.

    ``waits`` are those of the cluster that waited longest.
    """

    at: float
    planned: float
    ready: float
    waits: Counter[str]

    def __str__(self) -> str:
        waits = ", ".join(f"{seconds} s for {what}" for what, seconds in self.waits.most_common() if seconds)
        return f"{self.planned:8.0f} {self.ready:8.0f}   {waits and 'one waited ' + waits}"


@dataclass
class Lane:
    """The figures: the quiet change, those meanwhile, and how long the large change took."""

    quiet: Change
    meanwhile: list[Change] = field(default_factory=list)
    seconds: float = 0.0
    refused: Counter[str] = field(default_factory=Counter)

    @property
    def worst(self) -> float:
        """How often the quiet time the slowest change took."""
        return max(each.ready for each in self.meanwhile) / self.quiet.ready


class Fleet:
    """A fleet whose clusters are pushed and awaited."""

    def __init__(self, clusters: int, hosts: int, sessions: int, small_change: int) -> None:
        config = replace(CONFIG, small_change=small_change)
        self.cloud = MemoryCloud(throttle=True, config=config, lock_seconds=3600)
        self.cloud.azure.engine.timings = TIMINGS
        self.hosts, self._begun = Hosts(self.cloud, hosts, sessions), self.cloud.clock()
        self.small = [f"small-{number}" for number in range(SMALL)]
        self.large = [f"large-{number:05}" for number in range(clusters)]
        self.files = fleet_files.fleet(*self.small)

    @property
    def now(self) -> float:
        """Seconds since the beginning."""
        return (self.cloud.clock() - self._begun).total_seconds()

    def push(self, names: list[str], size: int) -> None:
        """Push clusters with pools of so many nodes."""
        changed = {f"clusters/{name}/cluster.yaml": fleet_files.cluster(name, count=size) for name in names}
        self.files = self.files | changed
        commit = self.cloud.repository.push(self.files)
        accept(Pushed(commit, f"push-{commit}", commit), self.cloud.ports)

    def generations(self, names: list[str]) -> list[tuple[int, int]]:
        """Return the accepted and the verified generation of each."""
        found = (self.cloud.state.cluster(name) for name in names)
        return [(each.generation, each.observed_generation) if each else (0, 0) for each in found]

    def settled(self, names: list[str]) -> bool:
        """Whether all are at their newest generation."""
        return all(accepted == verified > 0 for accepted, verified in self.generations(names))

    def change(self, size: int) -> Change:
        """Change the five, and wait for them."""
        before, at = self.generations(self.small), self.now
        self.hosts.waits.seconds.clear()
        self.push(self.small, size)
        self.hosts.run(
            lambda: all(
                new[0] > old[0] for new, old in zip(self.generations(self.small), before, strict=True)
            )
        )
        planned = self.now - at
        self.hosts.run(lambda: self.settled(self.small))
        return Change(at, planned, self.now - at, self.hosts.waits.longest(self.small))


def measure(
    clusters: int,
    hosts: int,
    *,
    change_all: bool = False,
    sessions: int = SESSIONS,
    small_change: int = SMALL_CHANGE,
) -> Lane:
    """Measure small changes on a quiet fleet and beside a large one.

    Each host serves so many sessions of ``jobs``; ``small_change`` is how many clusters a small change has.
    """
    fleet, size = Fleet(clusters, hosts, sessions, small_change), count(2)
    fleet.push(fleet.small, 1)
    if change_all:
        fleet.push(fleet.large, 1)
    everything = fleet.small + (fleet.large if change_all else [])
    fleet.hosts.run(lambda: fleet.settled(everything), check=60)
    fleet.hosts.run(_at(fleet, fleet.now + 600))
    found = Lane(fleet.change(next(size)))
    fleet.hosts.run(_at(fleet, fleet.now + 600))
    begun, refused = fleet.now, len(fleet.cloud.azure.limits.refusals)
    fleet.push(fleet.large, next(size))
    fleet.hosts.run(_at(fleet, begun + FIRST))
    while not fleet.settled(fleet.large):
        change = fleet.change(next(size))
        found.meanwhile.append(replace(change, at=change.at - begun))
        fleet.hosts.run(_at(fleet, change.at + EVERY, fleet.large))
    found.seconds = fleet.now - begun
    found.refused = Counter(limit for limit, _ in fleet.cloud.azure.limits.refusals[refused:])
    return found


def _at(fleet: Fleet, moment: float, clusters: list[str] | None = None) -> Callable[[], bool]:
    """Return whether a moment has come, or some clusters are settled."""
    return lambda: fleet.now >= moment or bool(clusters and fleet.settled(clusters))


def main(clusters: int, hosts: int, *, change_all: bool) -> None:
    """Print the figures."""
    begun = time.monotonic()
    found = measure(clusters, hosts, change_all=change_all)
    what = "changed" if change_all else "created"
    print(f"{clusters} clusters {what} by {hosts} hosts of {SESSIONS} sessions, {SMALL} changed meanwhile")
    print(" pushed at  planned  Ready after, in seconds")
    print(f"   quiet {found.quiet}")
    for change in found.meanwhile:
        print(f"{change.at:8.0f} {change}")
    print(f"the slowest took {found.worst:.1f} times the quiet time")
    print(f"the large change took {found.seconds:.0f} s; refusals of Azure: {dict(found.refused)}")
    print(f"real time {time.monotonic() - begun:.1f} s")


if __name__ == "__main__":
    words = [text for text in sys.argv[1:] if not text.isdigit()]
    given = [int(text) for text in sys.argv[1:] if text.isdigit()]
    main(*(given + [1000, 4][len(given) :]), change_all="large" in words)
