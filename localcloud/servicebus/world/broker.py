"""The local Service Bus: queues with sessions, peek-lock, scheduling and duplicate detection.

Pure state over an injected clock, safe to share between threads. ``<queue>/$deadletterqueue`` names a
queue's dead-letter queue, in any case of letters. What the service does that is not here: topics, time to
live, deferring, the state of a session, transactions and partitions.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import islice
from uuid import UUID, uuid4

from localcloud.servicebus.world.broker_queue import BrokerQueueState
from localcloud.servicebus.world.broker_values import (
    BrokerError,
    Delivery,
    Draft,
    MessageTooLarge,
    QueueConfig,
    QueueCounts,
    QueueNotFound,
    SessionLock,
    StoredMessage,
)
from shared.cluster.failures.errors import Dependency, InvalidManifest, TooLarge
from shared.ports import Clock, Message

__all__ = [
    "Broker",
    "BrokerQueue",
    "Delivery",
    "Draft",
    "QueueConfig",
    "QueueCounts",
    "SessionLock",
    "StoredMessage",
]

DEAD_LETTER_SUFFIX = "/$deadletterqueue"


class Broker:
    """A namespace of queues. Every call names a queue, and first applies what is due by the clock.

    Raises the errors of ``broker_values``. ``new_token`` creates lock tokens.
    """

    def __init__(
        self, queues: Sequence[QueueConfig], clock: Clock, *, new_token: Callable[[], UUID] = uuid4
    ) -> None:
        self.clock = clock
        self._lock = threading.Lock()
        self._listeners: list[Callable[[], None]] = []
        self._queues: dict[str, BrokerQueueState] = {}
        for config in queues:
            dead_letter_config = QueueConfig(
                name=config.name + DEAD_LETTER_SUFFIX,
                lock_seconds=config.lock_seconds,
                requires_session=False,
            )
            dead_letters = BrokerQueueState(dead_letter_config, new_token=new_token)
            self._queues[dead_letter_config.name.lower()] = dead_letters
            self._queues[config.name.lower()] = BrokerQueueState(
                config, new_token=new_token, dead_letters=dead_letters
            )

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call ``listener`` whenever a message or session may have become free; return the function that ends
        that.

        It is called on the thread of the change, must not block, and is not called for what becomes
        due by the clock: see ``next_time``.
        """
        self._listeners.append(listener)

        def stop() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return stop

    def next_time(self) -> datetime | None:
        """Return when time will next change something (a message is due, a lock ends), or None."""
        with self._lock:
            times = [time for queue in self._queues.values() if (time := queue.next_time()) is not None]
        return min(times, default=None)

    def quiet(self, queue: str) -> bool:
        """Return whether a receiver would find nothing now, for less than it costs to try."""
        return self._state(queue).quiet(self.clock())

    def config(self, queue: str) -> QueueConfig:
        """Return how a queue was created."""
        return self._state(queue).config

    # Sending

    def send(self, queue: str, draft: Draft) -> int:
        """Take a message in and return its sequence number; a duplicate is dropped silently."""
        with self._at(queue, frees=True) as (state, now):
            return state.send(draft, now)

    def send_batch(self, queue: str, drafts: Sequence[Draft]) -> None:
        """Take all messages in, or none: the service takes a batch as a whole."""
        with self._at(queue, frees=True) as (state, now):
            for draft in drafts:
                state.check(draft)
            for draft in drafts:
                state.send(draft, now)

    def cancel_scheduled(self, queue: str, sequence: int) -> None:
        """Cancel a scheduled message."""
        with self._at(queue) as (state, _):
            state.cancel(sequence)

    # Sessions

    def accept_session(self, queue: str, session: str | None = None) -> SessionLock | None:
        """Lock a session: a named one, or the next free one that has a message (None: there is none)."""
        with self._at(queue) as (state, now):
            return state.accept_session(session, now)

    def renew_session(self, queue: str, lock: SessionLock) -> SessionLock:
        """Renew the lock."""
        with self._at(queue) as (state, now):
            return state.renew_session(lock, now)

    def release_session(self, queue: str, lock: SessionLock) -> None:
        """Release a session; a lost one is no error."""
        with self._at(queue, frees=True) as (state, _):
            state.release_session(lock)

    def session_lock(self, queue: str, session: str) -> SessionLock | None:
        """Return the lock that holds a session now, if any."""
        with self._at(queue) as (state, _):
            return state.session_lock(session)

    # Receiving and settling

    def receive(self, queue: str, lock: SessionLock | None = None) -> Delivery | None:
        """Deliver the next free message (of the locked session), or None."""
        with self._at(queue) as (state, now):
            return state.receive(lock, now)

    def complete(self, queue: str, token: UUID) -> None:
        """Settle a delivery: the message is processed."""
        with self._at(queue) as (state, _):
            state.complete(token)

    def abandon(self, queue: str, token: UUID) -> None:
        """Settle a delivery: it failed, try again, or dead-letter the message after too many tries."""
        with self._at(queue, frees=True) as (state, _):
            state.abandon(token)

    def release(self, queue: str, token: UUID) -> None:
        """Settle a delivery: it was not processed, so the attempt does not count."""
        with self._at(queue, frees=True) as (state, _):
            state.release(token)

    def dead_letter(self, queue: str, token: UUID, *, reason: str = "", description: str = "") -> None:
        """Settle a delivery: the message goes to the dead-letter queue."""
        with self._at(queue, frees=True) as (state, _):
            state.dead_letter(token, reason=reason, description=description)

    def renew(self, queue: str, token: UUID) -> datetime:
        """Renew a message lock; return its end."""
        with self._at(queue) as (state, now):
            return state.renew(token, now)

    # Counting and peeking

    def counts(self, queue: str) -> QueueCounts:
        """Return how many messages the queue holds."""
        with self._at(queue) as (state, _):
            dead_letters = state.dead_letters
            return QueueCounts(
                state.active, state.scheduled, dead_letters.active if dead_letters is not None else 0
            )

    def peek(
        self, queue: str, *, session: str | None = None, first: int = 0, limit: int | None = None
    ) -> list[StoredMessage]:
        """Return messages without taking them: of one session or all, from a sequence number on."""
        with self._at(queue) as (state, _):
            found = (m for m in state.peek() if m.sequence >= first and session in (None, m.draft.session))
            return list(islice(found, limit))

    # Internals

    def _state(self, queue: str) -> BrokerQueueState:
        state = self._queues.get(queue) or self._queues.get(queue.lower())
        if state is None:
            raise QueueNotFound(f"the messaging entity {queue} could not be found")
        return state

    def _at(self, queue: str, *, frees: bool = False) -> _Exclusive:
        """Give the queue to one thread, as it is now; ``frees``: something may have become free."""
        return _Exclusive(self._state(queue), self._lock, self.clock, self._listeners, frees)


class _Exclusive:
    """Exclusive access to a queue; a class, because a simulation enters it tens of thousands of times."""

    __slots__ = ("_clock", "_listeners", "_lock", "_notify", "_state")

    def __init__(
        self,
        state: BrokerQueueState,
        lock: threading.Lock,
        clock: Clock,
        listeners: Sequence[Callable[[], None]],
        frees: bool,
    ) -> None:
        self._state, self._lock, self._clock = state, lock, clock
        self._listeners, self._notify = listeners, frees

    def __enter__(self) -> tuple[BrokerQueueState, datetime]:
        self._lock.acquire()
        try:
            now = self._clock()
            if self._state.advance(now):
                self._notify = True
        except BaseException:
            self._lock.release()
            raise
        return self._state, now

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        if self._notify:
            for listener in tuple(self._listeners):
                listener()


class BrokerQueue:
    """The ``Queue`` port straight on a queue of a Broker."""

    def __init__(self, broker: Broker, name: str) -> None:
        self._broker, self._name = broker, name

    def send(self, *messages: Message) -> None:
        """Send or schedule messages; raise InvalidManifest for one that the service would refuse."""
        drafts = [
            Draft(
                message.body.encode(),
                id=message.id,
                session=message.session,
                at=message.at,
                content_type="application/json",
            )
            for message in messages
        ]
        try:
            self._broker.send_batch(self._name, drafts)
        except QueueNotFound as error:
            raise Dependency(str(error), code=error.condition) from error
        except MessageTooLarge as error:
            raise TooLarge(str(error), code=error.condition) from error
        except BrokerError as error:
            raise InvalidManifest(str(error), code=error.condition) from error

    def probe(self) -> None:
        """Show that the queue is there; raise Dependency where it is not."""
        try:
            self._broker.counts(self._name)
        except QueueNotFound as error:
            raise Dependency(str(error), code=error.condition) from error
