"""A cloud in memory with many workers: deliveries that sleep let others go on, in virtual time.

A worker is a process: it has connections, cached tokens and sixteen sessions of its own. A delivery runs in a
thread, and one thread runs at a time, so runs are as deterministic as those of one thread.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from heapq import heappop, heappush
from typing import Any

from bench.hosts import BUS, SESSIONS
from localcloud.memory.memory_cloud import MemoryCloud
from localcloud.servicebus.world.broker_values import SessionLock
from shared.ports import Kubernetes, Ports
from shared.ports.process import Stays, TokenCache

SESSION_IDLE = timedelta(seconds=BUS.session_idle_seconds)
"""A job that does not wait stays with its worker."""
LOCK_SECONDS = 300.0
"""As ``functionTimeout`` in host.json: nothing renews a lock here, and no delivery lasts longer."""


@dataclass
class Worker:
    """One process; ``busy`` are its sessions with a delivery that sleeps."""

    kubernetes: Kubernetes
    tokens: TokenCache = field(default_factory=TokenCache)
    stays: Stays = field(default_factory=Stays)
    busy: int = 0

    def ports(self, ports: Ports) -> Ports:
        """Return the ports of the process."""
        process = replace(ports.process, tokens=self.tokens, stays=self.stays)
        return replace(ports, kubernetes=self.kubernetes, process=process)


class _Thread:
    """A thread for one delivery after the other: to start one takes as long as a short delivery.

    A lock that another thread releases is a semaphore in C.
    """

    def __init__(self) -> None:
        self._given = threading.Lock()
        self._given.acquire()
        self._work: Callable[[], None] | None = None
        threading.Thread(target=self._run, daemon=True).start()

    def give(self, work: Callable[[], None]) -> None:
        """Let it run a delivery."""
        self._work = work
        self._given.release()

    def _run(self) -> None:
        while True:
            self._given.acquire()
            if self._work is not None:
                self._work()


class _Delivery:
    """A delivery in a thread; ``go_on`` lets it run until it sleeps or ends. ``idle`` are threads to use."""

    def __init__(self, work: Callable[[], None], idle: list[_Thread]) -> None:
        self._work, self._ended, self._idle = work, False, idle
        self._mine, self._others = threading.Lock(), threading.Lock()
        self._mine.acquire()
        self._others.acquire()
        self._error: BaseException | None = None
        self._thread = idle.pop() if idle else _Thread()
        self._thread.give(self._run)

    def go_on(self) -> bool:
        """Let it run; return whether it has ended."""
        self._mine.release()
        self._others.acquire()
        if self._error is not None:
            raise self._error
        return self._ended

    def pause(self) -> None:
        """Let the others run; called by the thread itself."""
        self._others.release()
        self._mine.acquire()

    def _run(self) -> None:
        self._mine.acquire()
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001 - the caller's thread raises it
            self._error = error
        self._ended = True
        self._idle.append(self._thread)
        self._others.release()


class ParallelCloud(MemoryCloud):
    """A cloud with so many workers.

    ``longest`` is the longest delivery of each queue, ``busy`` are all deliveries together: virtual seconds.
    """

    def __init__(self, workers: int, **options: Any) -> None:
        super().__init__(lock_seconds=LOCK_SECONDS, **options)
        self._workers = [Worker(self.connections()) for _ in range(workers)]
        self._next = itertools.cycle(self._workers)
        self._sessions: dict[str, tuple[Worker, datetime]] = {}
        self._asleep: list[tuple[datetime, int, _Delivery]] = []
        self._threads: list[_Thread] = []
        self._numbers = itertools.count()
        self._running: _Delivery | None = None
        self.longest: dict[str, float] = {}
        self.busy = 0.0
        self.with_ports(lambda ports: replace(ports, sleep=self._sleep))

    def step(self) -> bool:
        """Let a delivery whose sleep is over go on, or deliver a message; return whether there was one."""
        if self._asleep and self._asleep[0][0] <= self.clock():
            self._go_on(heappop(self._asleep)[2])
            return True
        return any(worker.busy < SESSIONS for worker in self._workers) and super().step()

    def deliver(self, queue: str, lock: SessionLock, ports: Ports) -> None:
        """Deliver in a thread, as the worker that has the session; an idle one goes to the next worker."""
        begin, worker = self.clock(), self._worker(lock.session)

        def work() -> None:
            super(ParallelCloud, self).deliver(queue, lock, worker.ports(ports))
            self._sessions[lock.session] = (worker, self.clock())
            seconds = (self.clock() - begin).total_seconds()
            self.longest[queue] = max(seconds, self.longest.get(queue, 0.0))
            self.busy += seconds
            worker.busy -= 1

        worker.busy += 1
        self._go_on(_Delivery(work, self._threads))

    def idle(self) -> bool:
        """Return whether nothing is left to do."""
        return not self._asleep and super().idle()

    def _worker(self, session: str) -> Worker:
        worker, last = self._sessions.get(session, (None, self.clock()))
        if worker is not None and self.clock() - last <= SESSION_IDLE and worker.busy < SESSIONS:
            return worker
        return next(worker for worker in self._next if worker.busy < SESSIONS)

    def _go_on(self, delivery: _Delivery) -> None:
        before, self._running = self._running, delivery
        try:
            delivery.go_on()
        finally:
            self._running = before

    def _sleep(self, seconds: float) -> None:
        delivery = self._running
        if delivery is None:  # a timer
            self.clock.advance(seconds)
            return
        until = self.clock() + timedelta(seconds=seconds)
        heappush(self._asleep, (until, next(self._numbers), delivery))
        delivery.pause()

    def _next_moment(self) -> datetime:
        moment = super()._next_moment()
        return min(moment, self._asleep[0][0]) if self._asleep else moment
