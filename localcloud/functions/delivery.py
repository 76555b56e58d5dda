"""One message and its function: run it while the lock is renewed, then complete or abandon the message."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from datetime import UTC, datetime
from typing import Protocol

from azure.servicebus import ServiceBusReceivedMessage, ServiceBusReceiver
from azure.servicebus.exceptions import ServiceBusError

from localcloud.functions.triggers.trigger_messages import input_of
from localcloud.functions.worker.function_index import Function, QueueTrigger, SessionTrigger
from localcloud.functions.worker.invocations import Closed, Invoker, Outcome

RECEIVE_SECONDS = 1.0
"""The longest single wait for a message, so that a stop is noticed."""


class Lockable(Protocol):
    """A session, or a message of a queue without sessions."""

    @property
    def locked_until_utc(self) -> datetime | None:
        """When the lock ends, None when it has none."""


class Lock:
    """The lock of what was received just now; it is renewed when half of its time is over.

    That ends ``seconds`` after it was received. For a session, that is since the session was accepted,
    however many messages it has: ``RenewSessionLock`` in azure-sdk-for-net's SessionReceiverManager.cs, and a
    maintainer's answer in its issue 35267.
    """

    def __init__(self, locked: Lockable, renew: Callable[[], object], *, seconds: float) -> None:
        self._locked, self.renew = locked, renew
        self._half = self._left() / 2
        self._renewed_until = time.monotonic() + seconds

    def renewable(self) -> float:
        """Return for how many seconds it is still renewed."""
        return self._renewed_until - time.monotonic()

    def rest(self) -> float:
        """Return the seconds until it should be renewed, below 0 when it is late."""
        return self._left() - self._half

    def _left(self) -> float:
        until = self._locked.locked_until_utc
        return (until - datetime.now(UTC)).total_seconds() if until else 60.0


class FunctionDelivery:
    """Gives messages to a function."""

    def __init__(self, function: Function, invoker: Invoker) -> None:
        self._function, self._invoker = function, invoker
        trigger = function.trigger
        self._binary = isinstance(trigger, SessionTrigger | QueueTrigger) and trigger.binary

    def deliver(self, receiver: ServiceBusReceiver, message: ServiceBusReceivedMessage, lock: Lock) -> None:
        """Complete the message when the function returns, abandon it when it raises.

        Raise ServiceBusError when the lock was lost or Service Bus does not answer; the function has ended
        then.
        """
        try:
            given = input_of(message, binary=self._binary)
            outcome = self._wait(self._invoker.submit(self._function, given), lock)
        except (Closed, CancelledError):
            outcome = Outcome(succeeded=False)
        if outcome.succeeded:
            receiver.complete_message(message)
        else:
            receiver.abandon_message(message)

    def _wait(self, future: Future[Outcome], lock: Lock) -> Outcome:
        while (time_left := lock.renewable()) > 0:
            try:
                return future.result(min(max(0.05, lock.rest()), time_left))
            except TimeoutError:
                _renew(lock, future)
        return future.result()


def _renew(lock: Lock, future: Future[Outcome]) -> None:
    """Renew; when that fails, let the function end first: it cannot be stopped."""
    try:
        lock.renew()
    except ServiceBusError:
        future.result()
        raise
