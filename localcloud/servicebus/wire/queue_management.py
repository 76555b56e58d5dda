"""What ``<queue>/$management`` answers: locks, and peeking.

One function per operation of the service; each gets the request's map and returns the answer's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from proton import UNDESCRIBED, Array, Data

from localcloud.servicebus.wire import amqp_codec
from localcloud.servicebus.world.broker import Broker
from localcloud.servicebus.world.broker_values import (
    BrokerError,
    InvalidArgument,
    SessionLock,
    SessionLockLost,
)

Body = Mapping[str, Any]


@dataclass(frozen=True)
class ManagementAnswer:
    """A status as in HTTP, the code and message of an error, and the body."""

    status: int
    body: dict[str, Any]
    condition: str = ""
    text: str = "OK"


@dataclass(frozen=True)
class Management:
    """Answers about one queue; ``lock_on`` returns the lock of the calling connection on a session."""

    broker: Broker
    queue: str
    lock_on: Callable[[str], SessionLock | None]

    def answer(self, operation: str, body: Body) -> ManagementAnswer:
        """Carry out an operation by its name."""
        handler = _OPERATIONS.get(operation.removeprefix("com.microsoft:"))
        if handler is None:
            text = f"the local Service Bus does not know {operation}"
            return ManagementAnswer(501, {}, "amqp:not-implemented", text)
        try:
            found = handler(self, body)
        except BrokerError as error:
            return ManagementAnswer(_STATUS.get(error.condition, 400), {}, error.condition, str(error))
        return ManagementAnswer(200 if found is not None else 204, found or {})

    def renew_session(self, body: Body) -> dict[str, Any]:
        """Renew the session lock of a receiver on the same connection."""
        session = str(body["session-id"])
        lock = self.lock_on(session)
        if lock is None:
            raise SessionLockLost(f"this connection does not hold the lock on session {session}")
        renewed = self.broker.renew_session(self.queue, lock)
        return {"expiration": amqp_codec.milliseconds(renewed.until)}

    def renew(self, body: Body) -> dict[str, Any]:
        """Renew message locks."""
        ends = [self.broker.renew(self.queue, UUID(str(t))) for t in amqp_codec.elements(body["lock-tokens"])]
        times = [amqp_codec.milliseconds(end) for end in ends]
        return {"expirations": Array(UNDESCRIBED, Data.TIMESTAMP, *times)}

    def settle(self, body: Body) -> dict[str, Any]:
        """Settle messages by their lock tokens, when their link no longer exists."""
        status = str(body["disposition-status"])
        for token in (UUID(str(t)) for t in amqp_codec.elements(body["lock-tokens"])):
            if status == "completed":
                self.broker.complete(self.queue, token)
            elif status == "abandoned":
                self.broker.abandon(self.queue, token)
            elif status == "suspended":
                self.broker.dead_letter(
                    self.queue,
                    token,
                    reason=str(body.get("deadletter-reason") or ""),
                    description=str(body.get("deadletter-description") or ""),
                )
            else:
                raise InvalidArgument(f"the local Service Bus does not settle as {status}")
        return {}

    def peek(self, body: Body) -> dict[str, Any] | None:
        """Show messages without taking them."""
        session = body.get("session-id")
        found = self.broker.peek(
            self.queue,
            session=str(session) if session is not None else None,
            first=int(body.get("from-sequence-number", 0)),
            limit=int(body.get("message-count", 1)),
        )
        return {"messages": [{"message": amqp_codec.encode(m)} for m in found]} if found else None


_OPERATIONS: Mapping[str, Callable[[Management, Body], dict[str, Any] | None]] = {
    "renew-session-lock": Management.renew_session,
    "renew-lock": Management.renew,
    "update-disposition": Management.settle,
    "peek-message": Management.peek,
}

_STATUS: Mapping[str, int] = {
    "amqp:not-found": 404,
    "com.microsoft:message-not-found": 404,
    "amqp:not-allowed": 403,
    "com.microsoft:session-lock-lost": 410,
    "com.microsoft:message-lock-lost": 410,
    "com.microsoft:session-cannot-be-locked": 409,
}
