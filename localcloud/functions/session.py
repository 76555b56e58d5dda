"""One locked session: its messages one after the other, until it is idle, lost or the host stops."""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import CancelledError, Future
from datetime import UTC, datetime

from azure.servicebus import ServiceBusReceivedMessage, ServiceBusReceiver
from azure.servicebus.exceptions import MessageLockLostError, ServiceBusError, SessionLockLostError

from localcloud.functions.config import ServiceBusConfig
from localcloud.functions.index import Function
from localcloud.functions.invoke import Closed, Invoker, Outcome
from localcloud.functions.logs import HOST
from localcloud.functions.messages import decode_message

log = logging.getLogger(HOST)

_RECEIVE_SECONDS = 1.0
"""The longest single wait for a message, so that a stop is noticed."""


class SessionRun:
    """Serves one session; everything about its connection happens in the thread that calls ``serve``."""

    def __init__(
        self, function: Function, invoker: Invoker, config: ServiceBusConfig, receiver: ServiceBusReceiver
    ) -> None:
        self._function, self._invoker, self._config = function, invoker, config
        self._receiver = receiver
        self._lock_seconds = self._lock_left()

    def serve(self, stop: threading.Event) -> None:
        """Take messages until the session is idle or lost, or ``stop`` is set.

        Raise ServiceBusError when Service Bus is gone. A message under way when that happens is run again
        by whoever gets the session next.
        """
        idle_at = time.monotonic() + self._config.session_idle_seconds
        try:
            while not stop.is_set() and (left := idle_at - time.monotonic()) > 0:
                if self._lock_left() < self._lock_seconds / 2:
                    self._receiver.session.renew_lock()
                messages = self._receiver.receive_messages(1, max_wait_time=min(left, _RECEIVE_SECONDS))
                for message in messages:
                    self._handle(message)
                    idle_at = time.monotonic() + self._config.session_idle_seconds
        except (SessionLockLostError, MessageLockLostError):
            log.warning(
                "the lock of session %s was lost; its message will be run again",
                self._receiver.session.session_id,
                extra={"function": self._function.name},
            )

    def _handle(self, message: ServiceBusReceivedMessage) -> None:
        try:
            outcome = self._wait(self._invoker.submit(self._function, decode_message(message)))
        except (Closed, CancelledError):
            outcome = Outcome(succeeded=False)
        if outcome.succeeded:
            self._receiver.complete_message(message)
        else:
            self._receiver.abandon_message(message)

    def _wait(self, future: Future[Outcome]) -> Outcome:
        """Wait for the function, renewing the session's lock for as long as host.json allows."""
        renew_until = time.monotonic() + self._config.renew_seconds
        while (time_left := renew_until - time.monotonic()) > 0:
            pause = max(0.05, self._lock_left() - self._lock_seconds / 2)
            try:
                return future.result(min(pause, time_left))
            except TimeoutError:
                self._renew_while(future)
        return future.result()

    def _renew_while(self, future: Future[Outcome]) -> None:
        """Renew; when that fails, let the function end first: it cannot be stopped."""
        try:
            self._receiver.session.renew_lock()
        except ServiceBusError:
            future.result()
            raise

    def _lock_left(self) -> float:
        until = self._receiver.session.locked_until_utc
        return (until - datetime.now(UTC)).total_seconds() if until else 60.0
