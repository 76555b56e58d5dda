"""The event loop: virtual time, who acts, the trace, and the order in which events happen.

One thread runs everything. A frozen function stands in the middle of a call while the loop continues, nested,
with the events of the others; so two workers are alive at once.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from localcloud.memory.crashes import Crash
from localcloud.memory.memory_cloud import EVENTS, JOB_QUEUES, QUEUES, MemoryCloud
from localcloud.servicebus.world.broker import DEAD_LETTER_SUFFIX
from localcloud.servicebus.world.broker_values import Draft, SessionLock
from shared.app.door import NotReady, enter
from shared.cluster.failures.errors import ReconcileError
from shared.cluster.job import Lease
from shared.ports import Message, Ports
from simulation.newer_forms import known_body

TIMER_SECONDS = 300.0
"""Longer than in production: the timers rarely find anything to do, and seeds run faster."""
MOST_EVENTS = 20_000
DEEPEST = 2
SHORT_FREEZE = 10.0
"""The longest freeze, in seconds, between the lease guard and the write that it guards."""
UNSERVED = timedelta(minutes=5)
"""After so long a queue of jobs is served first."""
MAX_SKEW = 2.5
"""By how many seconds the clock of a worker may differ from the real time."""


"""Is entered for each purge of a fleet, with the latest time that its clock shows."""


class Unbounded(BaseException):
    """The simulation does not come to an end."""

    rule = "unbounded"


@dataclass
class ActingFunction:
    """Who acts now: a function of a fleet with the lock of its message and the lease that it took.

    Without a cloud: an operator. ``since`` is when it began, ``faulty`` whether one of its calls met a fault,
    ``has_accepted`` whether it gave a cluster a new generation. ``request`` is the message of a planner, ""
    for all others.
    """

    since: datetime
    cloud: MemoryCloud | None = None
    queue: str = ""
    lock: SessionLock | None = None
    lease: Lease | None = None
    faulty: bool = False
    has_accepted: bool = False
    request: bytes = b""


class EventLoop:
    """Runs the functions of some fleets; ``workers`` are the ports of the workers of each app.

    ``on_delivery`` is called before a message of a job is delivered, ``after_event`` after every event,
    ``on_end`` with each actor that has ended. ``instance`` changes the ports of an instance that is to
    handle an event.
    ``sent`` has every message, ``acted`` how often operators did what.
    """

    def __init__(self, chance: random.Random, clouds: Sequence[MemoryCloud], *, verbose: bool) -> None:
        self.chance, self.clouds, self._verbose = chance, [*clouds], verbose
        self.clock, self.azure = clouds[0].clock, clouds[0].azure
        self.workers: dict[MemoryCloud, Sequence[Ports]] = {}
        self.on_delivery: Callable[[MemoryCloud, str, str], None] = lambda _cloud, _queue, _session: None
        self.instance: Callable[[Ports], Ports] = lambda ports: ports
        self.on_end: Callable[[ActingFunction], None] = lambda _actor: None
        self.after_event: Callable[[], None] = lambda: None
        self.sent: list[tuple[MemoryCloud, str, Message]] = []
        self.trace: list[str] = []
        self.acted: Counter[str] = Counter()
        self.began = self.clock()
        self.events = 0
        self._calm_since: datetime | None = None
        self._actors: list[ActingFunction] = [ActingFunction(self.began)]
        self._thaws: list[datetime] = []
        self._scheduled: list[tuple[datetime, int, Callable[[], None]]] = []
        self._timer_due = {id(cloud): self.began + timedelta(seconds=TIMER_SECONDS) for cloud in clouds}
        self._unserved: dict[tuple[int, str], datetime] = {}
        """Since when a queue of jobs has had something for its listener, which the loop has not served."""

    def start(self, cloud: MemoryCloud, workers: Sequence[Ports]) -> None:
        """Let one more app run."""
        self.clouds.append(cloud)
        self.workers[cloud] = workers
        self._timer_due[id(cloud)] = self.clock() + timedelta(seconds=TIMER_SECONDS)

    def stop(self, cloud: MemoryCloud) -> None:
        """Let an app run no more; while none of its functions is frozen."""
        self.clouds.remove(cloud)
        del self._timer_due[id(cloud)]

    def log(self, message: str, *values: object) -> None:
        """Add a line to the trace of a verbose run; a callable value is called for its text."""
        if self._verbose:
            values = tuple(value() if callable(value) else value for value in values)
            seconds = (self.clock() - self.began).total_seconds()
            self.trace.append(f"{seconds:9.1f} {'  ' * (len(self._actors) - 1)}{message % values}")

    @property
    def actor(self) -> ActingFunction:
        """Who acts now."""
        return self._actors[-1]

    @contextmanager
    def as_actor(self, actor: ActingFunction) -> Iterator[ActingFunction]:
        """Run the block as this actor."""
        self._actors.append(actor)
        try:
            yield actor
        finally:
            self._actors.pop()
            self.on_end(actor)

    def end_faults(self) -> None:
        """Note that no fault happens from now on."""
        self.log("no more faults")
        self._calm_since = self.clock()

    @property
    def is_running(self) -> bool:
        """Whether a function, or a frozen one, runs at this moment."""
        return any(actor.cloud is not None for actor in self._actors)

    @property
    def peaceful(self) -> bool:
        """Whether faults have ended."""
        return self._calm_since is not None

    @property
    def calm_seconds(self) -> float:
        """How long ago faults ended."""
        return (self.clock() - self._calm_since).total_seconds() if self._calm_since else 0.0

    def schedule(self, seconds: float, event: Callable[[], None]) -> None:
        """Let something happen after a time."""
        due = self.clock() + timedelta(seconds=seconds)
        self._scheduled.append((due, len(self._scheduled), event))
        self._scheduled.sort(key=lambda item: item[:2])

    def run_function(self, cloud: MemoryCloud, function: Callable[[Ports], object]) -> None:
        """Run a function of a fleet on one of its workers."""
        with self.as_actor(ActingFunction(self.clock(), cloud)):
            try:
                function(enter(self._worker(cloud)))
            except (Crash, NotReady, ReconcileError) as error:
                self.log("    ended by %s %s", type(error).__name__, error)

    def resend(self, cloud: MemoryCloud) -> None:
        """Put an earlier message on its queue again, or on the queue of the other recipe."""
        sent = [item for item in self.sent if item[0] is cloud]
        if sent:
            _, queue, message = self.chance.choice(sent)
            queue = self.chance.choice([queue, *JOB_QUEUES]) if queue in JOB_QUEUES else queue
            self.log("an operator sends %s on %s again", message.id, queue)
            cloud.broker.send(queue, Draft(message.body.encode(), session=message.session))

    def freeze(self, seconds: float) -> None:
        """Freeze the caller while the others continue."""
        if len(self._actors) > 2 * DEEPEST:  # each freeze adds the frozen worker and the one that continues
            return
        self.log("    frozen for %.0f s", seconds)
        actor = self.actor
        if actor.cloud is not None and actor.lock is not None and self.chance.random() < 0.5:
            self.log("    its lock is lost at once")
            actor.cloud.broker.release_session(actor.queue, actor.lock)
        # Freezes are nested, so a later one must not outlast the first.
        self._thaws.append(min([self.clock() + timedelta(seconds=seconds), *self._thaws[-1:]]))
        try:
            with self.as_actor(ActingFunction(self.clock())):
                self.run_until(self._thaws[-1])
        finally:
            self._thaws.pop()
        self.log("    thawed")

    def run_until(self, end: datetime, *, done: Callable[[], bool] = lambda: False) -> None:
        """Run every event before a time; stop early when none is due and ``done`` holds."""
        while self.clock() < end:
            if self._run_one():
                self.after_event()
                continue
            if done():
                return
            self._jump(end)

    @property
    def idle(self) -> bool:
        """Whether nothing is scheduled and every fleet has nothing to do."""
        return not self._scheduled and all(cloud.idle() for cloud in self.clouds)

    def _run_one(self) -> bool:
        """Run one event that is due; return whether there was one."""
        self.events += 1
        if self.events > MOST_EVENTS:
            raise Unbounded(f"{MOST_EVENTS} events")
        if self._scheduled and self._scheduled[0][0] <= self.clock():
            self._scheduled.pop(0)[2]()
            return True
        for cloud in self._in_some_order(self.clouds):
            if self._timer_due[id(cloud)] <= self.clock():
                self._timer_due[id(cloud)] = self.clock() + timedelta(seconds=TIMER_SECONDS)
                self.run_function(cloud, cloud.run_timers)
                return True
            for queue in self._in_turn(cloud):
                if not cloud.broker.quiet(queue) and self._deliver(cloud, queue):
                    return True
                dead_letters = queue + DEAD_LETTER_SUFFIX
                if not cloud.broker.quiet(dead_letters) and self._deliver_dead_letter(cloud, queue):
                    return True
            for queue in (EVENTS, EVENTS + DEAD_LETTER_SUFFIX):
                if not cloud.broker.quiet(queue):
                    with self.as_actor(ActingFunction(self.clock(), cloud)):
                        delivered = cloud.deliver_event(queue, self._worker(cloud))
                    if delivered:
                        return True
        return False

    def _in_turn(self, cloud: MemoryCloud) -> Iterable[str]:
        """Return the queues in some order, but first one that was not served for long.

        Each has a listener of its own, so no step in one keeps those of the others waiting.
        """
        now, order = self.clock(), self._in_some_order(QUEUES)
        for queue in JOB_QUEUES:
            if cloud.broker.quiet(queue):
                self._unserved.pop((id(cloud), queue), None)
            else:
                self._unserved.setdefault((id(cloud), queue), now)
        late = [queue for queue in order if now - self._unserved.get((id(cloud), queue), now) > UNSERVED]
        return dict.fromkeys((*late, *order)) if late else order

    def _in_some_order(self, items: Any) -> Any:
        return items if len(items) < 2 or self.chance.random() < 0.5 else items[::-1]

    def _worker(self, cloud: MemoryCloud) -> Ports:
        return self.instance(self.chance.choice(self.workers[cloud]))

    def _deliver(self, cloud: MemoryCloud, queue: str) -> bool:
        lock = cloud.broker.accept_session(queue)
        if lock is None:
            return False
        if self.chance.random() < 0.3:  # let another session go first
            cloud.broker.release_session(queue, lock)
            lock = cloud.broker.accept_session(queue)
            if lock is None:
                return False
        self._unserved.pop((id(cloud), queue), None)
        if queue in JOB_QUEUES:
            self.on_delivery(cloud, queue, lock.session)
        self.log("%s: message for %s on %s", cloud.ports.config.fleet, lock.session, queue)
        request = _next_in_line(cloud, queue, lock) if queue == "plans" else b""
        with self.as_actor(ActingFunction(self.clock(), cloud, queue, lock, request=request)):
            cloud.deliver(queue, lock, self._worker(cloud))
        return True

    def _deliver_dead_letter(self, cloud: MemoryCloud, queue: str) -> bool:
        with self.as_actor(ActingFunction(self.clock(), cloud)):
            return cloud.deliver_dead_letter(queue, self._worker(cloud))

    def _jump(self, end: datetime) -> None:
        """Move the clock to the next event."""
        times = [end, *self._timer_due.values()]
        times += [item[0] for item in self._scheduled[:1]]
        times += [time for cloud in self.clouds if (time := cloud.broker.next_time()) is not None]
        self.clock.advance(max(0.0, (min(times) - self.clock()).total_seconds()) + 0.001)
        self.azure.complete_due()
        self.clouds[0].kubernetes.reconcile()


def _next_in_line(cloud: MemoryCloud, queue: str, lock: SessionLock) -> bytes:
    """Return the message that the holder of a session receives next, and leave it in its place."""
    delivery = cloud.broker.receive(queue, lock)
    if delivery is None:
        return b""
    cloud.broker.release(queue, delivery.lock_token)
    return known_body(delivery.message.draft.body)
