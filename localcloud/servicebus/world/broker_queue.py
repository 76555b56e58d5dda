"""One queue of the local Service Bus: a state machine that gets the time with every call.

Messages of a session are in one line by sequence number; a queue without sessions has one line. A session has
at most one lock, and its messages are delivered under it in order. ``advance`` must be called before anything
else whenever time has passed: it enqueues what is due and ends locks. Not safe to share between threads:
``localcloud.servicebus.world.broker`` is.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from localcloud.servicebus.world.broker_intake import DuplicateWindow, MessageSchedule
from localcloud.servicebus.world.broker_values import (
    MAX_ID_LENGTH,
    MAX_MESSAGE_BYTES,
    Delivery,
    Draft,
    InvalidArgument,
    MessageLockLost,
    MessageNotFound,
    MessageTooLarge,
    NotAllowed,
    QueueConfig,
    SessionCannotBeLocked,
    SessionLock,
    SessionLockLost,
    StoredMessage,
)
from shared.frozen import replace


@dataclass(frozen=True)
class _MessageLock:
    """Which message a lock token holds; the lock of a session's message ends with the session's."""

    line: str
    sequence: int
    until: datetime


class BrokerQueueState:
    """A queue; with ``dead_letters`` None it is itself a dead-letter queue, where no delivery is the last."""

    def __init__(
        self,
        config: QueueConfig,
        *,
        new_token: Callable[[], UUID],
        dead_letters: BrokerQueueState | None = None,
    ) -> None:
        self.config = config
        self.dead_letters = dead_letters
        self._new_token = new_token
        self._lock_time = timedelta(seconds=config.lock_seconds)
        self._sequences = itertools.count(1)
        self._duplicates = DuplicateWindow(config.duplicate_window_seconds)
        self._schedule = MessageSchedule()
        self._lines: dict[str, dict[int, StoredMessage]] = {}
        self._locks: dict[UUID, _MessageLock] = {}
        self._locked: set[int] = set()
        self._sessions: dict[str, SessionLock] = {}
        self._free = OrderedDict[str, None]()
        """Its first is found in the same time, however many before it were taken; that of a dict is not."""
        self._active = 0

    # Time

    def advance(self, now: datetime) -> bool:
        """Enqueue scheduled messages that are due, and end expired locks; return whether there were any."""
        if not self._sessions and not self._locks and not len(self._schedule):
            return False
        changed = False
        while (message := self._schedule.pop_due(now)) is not None:
            due = message.draft.at or now
            self._append(replace(message, sequence=next(self._sequences), enqueued_at=due, scheduled=False))
            changed = True
        for lock in [s for s in self._sessions.values() if s.until <= now]:
            self._end_session(lock, failed=True)
            changed = True
        if not self.config.requires_session:
            for token in [t for t, locked in self._locks.items() if locked.until <= now]:
                self._put_back(token, failed=True)
                changed = True
        return changed

    def quiet(self, now: datetime) -> bool:
        """Return whether nothing is there for a receiver, also after ``advance``."""
        if self._free if self.config.requires_session else self._lines:
            return False
        if not self._sessions and not self._locks and not len(self._schedule):
            return True
        due = self.next_time()
        return due is None or due > now

    def next_time(self) -> datetime | None:
        """Return when ``advance`` will next have something to do, or None."""
        if not self._sessions and not self._locks:
            return self._schedule.next_time()
        times = [lock.until for lock in self._sessions.values()]
        if not self.config.requires_session:
            times += [locked.until for locked in self._locks.values()]
        scheduled = self._schedule.next_time()
        return min([*times, scheduled] if scheduled else times, default=None)

    # Sending

    def send(self, draft: Draft, now: datetime) -> int:
        """Take a message in and return its sequence number; for a duplicate, the first one's."""
        self.check(draft)
        if draft.id and (original := self._duplicates.original(draft.id, now)) is not None:
            return original
        sequence = next(self._sequences)
        self._duplicates.remember(draft.id, sequence, now=now)
        if draft.at is not None and draft.at > now:
            self._schedule.add(StoredMessage(draft, sequence, now, scheduled=True), draft.at)
        else:
            self._append(StoredMessage(draft, sequence, now))
        return sequence

    def cancel(self, sequence: int) -> None:
        """Cancel a scheduled message."""
        if not self._schedule.cancel(sequence):
            raise MessageNotFound(f"no scheduled message has the sequence number {sequence}")

    def check(self, draft: Draft) -> None:
        """Raise the error with which the service refuses a message."""
        properties = (
            draft.id,
            draft.session,
            draft.content_type,
            *draft.properties,
            *draft.properties.values(),
        )
        size = len(draft.body) + sum(len(str(value).encode()) for value in properties)
        if size > MAX_MESSAGE_BYTES:
            raise MessageTooLarge(f"the message has {size} bytes, the limit is {MAX_MESSAGE_BYTES}")
        if max(len(draft.id), len(draft.session)) > MAX_ID_LENGTH:
            raise InvalidArgument(f"message and session ids have at most {MAX_ID_LENGTH} characters")
        if self.config.requires_session and not draft.session:
            raise NotAllowed(f"queue {self.config.name} takes only messages with a session id")

    # Sessions

    def accept_session(self, session: str | None, now: datetime) -> SessionLock | None:
        """Lock a session by name, or the one that has waited longest (None: no free one has messages)."""
        if not self.config.requires_session:
            raise NotAllowed(f"queue {self.config.name} has no sessions")
        if session is None:
            session = next(iter(self._free), None)
            if session is None:
                return None
        if session in self._sessions:
            raise SessionCannotBeLocked(f"session {session} is locked by another receiver")
        lock = SessionLock(session, self._new_token(), now + self._lock_time)
        self._sessions[session] = lock
        self._refresh(session)
        return lock

    def renew_session(self, lock: SessionLock, now: datetime) -> SessionLock:
        """Renew the lock."""
        self._holds(lock)
        renewed = replace(lock, until=now + self._lock_time)
        self._sessions[lock.session] = renewed
        return renewed

    def release_session(self, lock: SessionLock) -> None:
        """Release the session: its unsettled messages are free again, and this was no failed delivery."""
        if self._holds_now(lock):
            self._end_session(lock, failed=False)

    def session_lock(self, session: str) -> SessionLock | None:
        """Return the session's present lock, if it has one."""
        return self._sessions.get(session)

    # Receiving and settling

    def receive(self, lock: SessionLock | None, now: datetime) -> Delivery | None:
        """Lock and return the next message of the line, or None when none is free."""
        if self.config.requires_session:
            if lock is None:
                raise NotAllowed(f"queue {self.config.name} takes only receivers with a session")
            self._holds(lock)
        line = lock.session if lock is not None else ""
        message = next(
            (m for m in self._lines.get(line, {}).values() if m.sequence not in self._locked), None
        )
        if message is None:
            return None
        until = self._sessions[line].until if lock is not None else now + self._lock_time
        token = self._new_token()
        self._locks[token] = _MessageLock(line, message.sequence, until)
        self._locked.add(message.sequence)
        return Delivery(message, token, until)

    def complete(self, token: UUID) -> None:
        """Remove a delivered message."""
        self._take(token)

    def abandon(self, token: UUID) -> None:
        """Abandon a delivered message; the last allowed failure dead-letters it."""
        self._require(token)
        self._put_back(token, failed=True)

    def release(self, token: UUID) -> None:
        """Release a delivered message as if it had not been delivered."""
        self._require(token)
        self._put_back(token, failed=False)

    def dead_letter(self, token: UUID, *, reason: str, description: str) -> None:
        """Move a delivered message to the dead-letter queue."""
        self._dead_letter(self._take(token), reason=reason, description=description)

    def renew(self, token: UUID, now: datetime) -> datetime:
        """Renew a message lock and return its end; for queues without sessions."""
        locked = replace(self._require(token), until=now + self._lock_time)
        self._locks[token] = locked
        return locked.until

    # Peeking

    def peek(self) -> Iterator[StoredMessage]:
        """Yield every message, scheduled ones too, by sequence number; locks do not matter."""
        locked = itertools.chain.from_iterable(line.values() for line in self._lines.values())
        yield from sorted([*locked, *self._schedule.messages], key=lambda m: m.sequence)

    @property
    def active(self) -> int:
        """How many messages are in line, locked ones included."""
        return self._active

    @property
    def scheduled(self) -> int:
        """How many messages wait for their time."""
        return len(self._schedule)

    # Internals

    def _append(self, message: StoredMessage) -> None:
        line = message.draft.session if self.config.requires_session else ""
        self._lines.setdefault(line, {})[message.sequence] = message
        self._active += 1
        self._refresh(line)

    def _refresh(self, session: str) -> None:
        """Keep the list of sessions that can be accepted: unlocked, with messages, longest wait first."""
        if session in self._sessions or not self._lines.get(session):
            self._free.pop(session, None)
            if not self._lines.get(session):
                self._lines.pop(session, None)
        else:
            self._free.setdefault(session)

    def _holds_now(self, lock: SessionLock) -> bool:
        present = self._sessions.get(lock.session)
        return present is not None and present.token == lock.token

    def _holds(self, lock: SessionLock) -> None:
        if not self._holds_now(lock):
            raise SessionLockLost(f"the lock on session {lock.session} has ended")

    def _end_session(self, lock: SessionLock, *, failed: bool) -> None:
        del self._sessions[lock.session]
        for token in [t for t, locked in self._locks.items() if locked.line == lock.session]:
            self._put_back(token, failed=failed)
        self._refresh(lock.session)

    def _require(self, token: UUID) -> _MessageLock:
        locked = self._locks.get(token)
        if locked is None:
            lost = SessionLockLost if self.config.requires_session else MessageLockLost
            raise lost("the lock has ended, or the message was settled before")
        return locked

    def _take(self, token: UUID) -> StoredMessage:
        locked = self._require(token)
        del self._locks[token]
        self._locked.discard(locked.sequence)
        return self._out(locked)

    def _out(self, locked: _MessageLock) -> StoredMessage:
        """Take a message out of its line."""
        message = self._lines[locked.line].pop(locked.sequence)
        self._active -= 1
        self._refresh(locked.line)
        return message

    def _put_back(self, token: UUID, *, failed: bool) -> None:
        locked = self._locks.pop(token)
        self._locked.discard(locked.sequence)
        line = self._lines[locked.line]
        message = line[locked.sequence]
        count = message.delivery_count + (1 if failed else 0)
        line[locked.sequence] = replace(message, delivery_count=count)
        if failed and self.dead_letters is not None and count >= self.config.max_delivery_count:
            message = self._out(locked)
            text = f"Message could not be consumed after {count} delivery attempts."
            self._dead_letter(message, reason="MaxDeliveryCountExceeded", description=text)

    def _dead_letter(self, message: StoredMessage, *, reason: str, description: str) -> None:
        """Hand a message to the dead-letter queue; from there it can only be abandoned into its place."""
        target = self.dead_letters if self.dead_letters is not None else self
        notes = {"DeadLetterReason": reason, "DeadLetterErrorDescription": description}
        properties = {**message.draft.properties, **{k: v for k, v in notes.items() if v}}
        target._append(replace(message, draft=replace(message.draft, properties=properties)))
