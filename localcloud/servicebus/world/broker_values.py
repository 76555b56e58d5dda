"""The values of the local Service Bus, and its errors with the service's own codes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

MAX_MESSAGE_BYTES = 256 * 1024
"""The Standard tier's limit for a whole message."""

MAX_ID_LENGTH = 128
"""The limit for a message id and for a session id, in characters."""


@dataclass(frozen=True)
class QueueConfig:
    """How a queue was created; the defaults are those of the service, but for sessions."""

    name: str
    lock_seconds: float = 60
    max_delivery_count: int = 10
    duplicate_window_seconds: float = 600
    requires_session: bool = True


@dataclass(frozen=True)
class Draft:
    """A message as its sender wrote it; ``at`` (UTC) schedules it.

    ``properties`` are the application's own, ``system`` the other AMQP properties by their names
    ("subject", "correlation-id" ...).
    """

    body: bytes
    id: str = ""
    session: str = ""
    at: datetime | None = None
    content_type: str = ""
    properties: Mapping[str, Any] = field(default_factory=dict)
    system: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class StoredMessage:
    """A message that a queue holds; ``delivery_count`` counts the deliveries that failed."""

    draft: Draft
    sequence: int
    enqueued_at: datetime
    delivery_count: int = 0
    scheduled: bool = False

    @property
    def dead_letter_reason(self) -> str:
        """Why it is in the dead-letter queue; empty elsewhere."""
        return str(self.draft.properties.get("DeadLetterReason", ""))

    @property
    def dead_letter_description(self) -> str:
        """The description that came with the dead-lettering; empty elsewhere."""
        return str(self.draft.properties.get("DeadLetterErrorDescription", ""))


@dataclass(frozen=True)
class Delivery:
    """A message handed to a receiver, who settles it by its lock token before the lock ends."""

    message: StoredMessage
    lock_token: UUID
    locked_until: datetime


@dataclass(frozen=True)
class SessionLock:
    """The right of one receiver to a session's messages, until it ends or is renewed."""

    session: str
    token: UUID
    until: datetime


@dataclass(frozen=True)
class QueueCounts:
    """How many messages a queue holds: active (locked ones too), scheduled, dead-lettered."""

    active: int
    scheduled: int
    dead_lettered: int


class BrokerError(Exception):
    """The broker refused; ``condition`` is the AMQP error code of the service."""

    condition: ClassVar[str] = "amqp:internal-error"


class QueueNotFound(BrokerError):
    """There is no such queue."""

    condition = "amqp:not-found"


class NotAllowed(BrokerError):
    """The queue does not do that: a message without session, a receiver without session ..."""

    condition = "amqp:not-allowed"


class InvalidArgument(BrokerError):
    """A value is out of the service's limits."""

    condition = "com.microsoft:argument-error"


class MessageTooLarge(BrokerError):
    """The message is over the limit of the tier."""

    condition = "amqp:link:message-size-exceeded"


class MessageNotFound(BrokerError):
    """There is no such message."""

    condition = "com.microsoft:message-not-found"


class SessionCannotBeLocked(BrokerError):
    """Another receiver holds the session."""

    condition = "com.microsoft:session-cannot-be-locked"


class SessionLockLost(BrokerError):
    """The session's lock has ended; another receiver may have its messages."""

    condition = "com.microsoft:session-lock-lost"


class MessageLockLost(BrokerError):
    """The message's lock has ended, or it was settled before."""

    condition = "com.microsoft:message-lock-lost"
