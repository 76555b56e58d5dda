"""Workers that take tokens of one bucket at one moment: ``python -m bench.contention [WORKERS] [CALLS]``.

Time is virtual: every read and write of the bucket takes as long as Table Storage usually does, and so do the
waits. Each worker is a thread of which one runs at a time, so equal runs have equal figures. In the first
line the rate limiter does not wait between its tries.
"""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from heapq import heappop, heappush
from itertools import count
from typing import Any

from localcloud.common.clock import ManualClock
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.access.rate_limiter import TRIES, RateLimited, RateLimiter
from shared.azure.rate_limits import ARM_WRITE, Bucket
from shared.cluster.failures.errors import Stale
from shared.cluster.record import ClusterRecord
from shared.ports import FleetConfig, PlanLimits, Ports
from tests.support import fleet_files
from tests.support.pipeline_runs import push

SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"
OPERATION = (0.004, 0.012)
"""The least and the most seconds of a read or a write of Table Storage from the same region."""


class Turns:
    """Threads of which one runs at a time, in the order of a virtual clock."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock, self._order, self._handed = clock, count(), threading.Semaphore(0)
        self._begun = clock()
        self._waiting: list[tuple[float, int, threading.Event]] = []

    @property
    def now(self) -> float:
        """Seconds since the beginning."""
        return (self._clock() - self._begun).total_seconds()

    def sleep(self, seconds: float) -> None:
        """Let the others run for so long."""
        turn = threading.Event()
        heappush(self._waiting, (self.now + seconds, next(self._order), turn))
        self._handed.release()
        turn.wait()

    def run(self, works: list[Callable[[], None]]) -> None:
        """Run all of them to their end."""

        def whole(work: Callable[[], None]) -> None:
            self.sleep(0)
            work()
            self._handed.release()

        for work in works:
            threading.Thread(target=whole, args=(work,), daemon=True).start()
            self._handed.acquire()
        while self._waiting:
            at, _, turn = heappop(self._waiting)
            self._clock.advance(max(0.0, at - self.now))
            turn.set()
            self._handed.acquire()


@dataclass
class Contention:
    """What so many calls cost: writes that lost a race, calls that gave up, and seconds of each call."""

    calls: int = 0
    lost: int = 0
    crowded: int = 0
    seconds: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        slowest = max(self.seconds)
        mean = sum(self.seconds) / len(self.seconds)
        return (
            f"{self.lost / self.calls:5.2f} lost races per call, {self.crowded} calls gave up,"
            f" {mean:.2f} s per call, the slowest {slowest:.2f} s"
        )


class _Slow:
    """A state whose bucket takes time, and counts lost races."""

    def __init__(self, inner: Any, turns: Turns, chance: random.Random, found: Contention) -> None:
        self._inner, self._turns, self._chance, self._found = inner, turns, chance, found

    def bucket(self, key: str) -> Bucket | None:
        self._turns.sleep(self._chance.uniform(*OPERATION) / 2)
        found: Bucket | None = self._inner.bucket(key)
        self._turns.sleep(self._chance.uniform(*OPERATION) / 2)
        return found

    def save_bucket(self, key: str, bucket: Bucket) -> None:
        self._turns.sleep(self._chance.uniform(*OPERATION))
        try:
            self._inner.save_bucket(key, bucket)
        except Stale:
            self._found.lost += 1
            raise


class _Counting(RateLimiter):
    def __init__(self, record: ClusterRecord, ports: Ports, found: Contention) -> None:
        super().__init__(record, ports)
        self._found = found

    def _change(self, key: str, change: Callable[[Bucket, datetime], Bucket], tries: int = TRIES) -> bool:
        done = super()._change(key, change, tries)
        self._found.crowded += not done
        return done


def contend(workers: int, calls: int, *, waits: bool = True) -> Contention:
    """Let each worker make so many calls, one after the other, with a pause of a second between two."""
    cloud = MemoryCloud(config=FleetConfig("example", "example/fleet", limits=PlanLimits(small_change=0)))
    push(cloud, fleet_files.fleet("one"))
    while not cloud.state.clusters():
        cloud.step()
    record: ClusterRecord = cloud.state.clusters()[0]
    turns, chance, found = Turns(cloud.clock), random.Random(1), Contention()  # noqa: S311
    state: Any = _Slow(cloud.state, turns, chance, found)
    sleep = turns.sleep if waits else _at_once
    ports = replace(cloud.ports, state=state, random=chance.random, sleep=sleep)

    def worker() -> None:
        for _ in range(calls):
            begun = turns.now
            with suppress(RateLimited):  # a reservation for later
                _Counting(record, ports, found).call(SUBSCRIPTION, [ARM_WRITE], lambda: None)
            found.calls += 1
            found.seconds.append(turns.now - begun)
            turns.sleep(1)

    turns.run([worker] * workers)
    return found


def _at_once(_: float) -> None:
    pass


def main(workers: int, calls: int) -> None:
    """Print both."""
    print(f"{workers} workers, {calls} calls each, on one bucket")
    print(f"tries at once:   {contend(workers, calls, waits=False)}")
    print(f"with its waits:  {contend(workers, calls)}")


if __name__ == "__main__":
    given = [int(text) for text in sys.argv[1:]]
    main(*(given + [40, 1][len(given) :]))
