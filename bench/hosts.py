"""Hosts of a fleet in virtual time: sessions, and how long a message keeps one.

Each function has instances of its own, as in Azure, and each serves as many sessions at a time as host.json
says. A message has its effects when it begins, and keeps its session for as long as its calls usually take.
So no worker waits for Flux in its message here: ``bench.parallel`` models that.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from heapq import heappop, heappush
from itertools import count
from typing import Any

from handlers.queues import handle
from localcloud.functions.host_config import read_host_json
from localcloud.memory.crashes import Counter as Calls
from localcloud.memory.crashes import Tripwire
from localcloud.memory.memory_cloud import JOB_QUEUES, QUEUES, MemoryCloud
from localcloud.runtime.options import ROOT
from localcloud.servicebus.world.broker_values import Delivery, SessionLock
from shared.cluster.job import Delay
from shared.cluster.queues.messages import JobMessage, message_of
from shared.ports import Ports
from shared.ports.process import Stays, TokenCache

SECONDS = {"state": 0.01, **dict.fromkeys(QUEUES, 0.01), "git_host": 0.2, "azure": 0.2, "kubernetes": 0.05}
"""How long a call of a port takes."""
BUS = read_host_json(ROOT / "host.json").service_bus
SESSIONS = BUS.max_concurrent_sessions
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
        process = replace(cloud.ports.process, tokens=TokenCache(), stays=Stays(0))
        ports = replace(cloud.ports, process=process, kubernetes=cloud.connections())
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
            handle(self.queue, body, self.ports)
        elif self.queue in JOB_QUEUES:
            cluster = message_of(body, JobMessage).cluster
            self._waits.begins(cluster)
            handle(self.queue, body, self.ports)
            self._waits.ended(cluster)
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
            self._later(BUS.session_idle_seconds, lambda: self._serve(host, lock, idle=True))

    def _complete(self, host: Host, lock: SessionLock, delivery: Delivery) -> None:
        self.cloud.broker.complete(host.queue, delivery.lock_token)
        self._serve(host, lock)
