"""Service Bus triggers on queues without sessions: dead-letter queues.

As in Azure: up to ``maxConcurrentCalls`` messages at once, peek-lock, complete when the function returns
and abandon when it raises, the message's lock renewed while a function runs.
"""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import CancelledError, Future
from datetime import UTC, datetime

from azure.servicebus import ServiceBusClient, ServiceBusReceivedMessage, ServiceBusReceiver
from azure.servicebus.exceptions import MessageLockLostError, ServiceBusError

from localcloud.functions.config import ServiceBusConfig
from localcloud.functions.index import Function, QueueTrigger
from localcloud.functions.invoke import Closed, Invoker, Outcome
from localcloud.functions.logs import HOST
from localcloud.functions.messages import decode_message
from localcloud.functions.outage import Outage

log = logging.getLogger(HOST)

_RECEIVE_SECONDS = 1.0
"""The longest single wait for a message, so that a stop is noticed."""
_AFTER_SURPRISE = 1.0
"""Seconds to wait after an error that the client is not known to make."""


class QueueListener:
    """Listens for one function; ``stop`` takes no more messages, ``join`` waits for those under way."""

    def __init__(self, function: Function, invoker: Invoker, config: ServiceBusConfig) -> None:
        if not isinstance(function.trigger, QueueTrigger):
            raise TypeError(f"{function.name} has no trigger on a queue without sessions")
        self._function, self._trigger, self._invoker = function, function.trigger, invoker
        self._config = config
        self._stop = threading.Event()
        self._outage = Outage(function.name, "Service Bus")
        self._threads = [
            threading.Thread(target=self._slot, daemon=True, name=f"queue-{function.name}-{n}")
            for n in range(config.max_concurrent_calls)
        ]

    def start(self) -> None:
        """Begin to listen."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Take no further message."""
        self._stop.set()

    def join(self, seconds: float) -> None:
        """Wait until every slot has ended."""
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _slot(self) -> None:
        client = ServiceBusClient.from_connection_string(self._trigger.connection, retry_total=0)
        while not self._stop.is_set():
            try:
                with client.get_queue_receiver(self._trigger.queue) as receiver:
                    self._outage.over()
                    self._serve(receiver)
            except ServiceBusError as error:
                if not self._stop.is_set():
                    self._stop.wait(self._outage.begin(error))
            except Exception:
                log.exception("the Service Bus client failed", extra={"function": self._function.name})
                self._stop.wait(_AFTER_SURPRISE)

    def _serve(self, receiver: ServiceBusReceiver) -> None:
        while not self._stop.is_set():
            for message in receiver.receive_messages(1, max_wait_time=_RECEIVE_SECONDS):
                try:
                    self._handle(receiver, message)
                except MessageLockLostError:
                    log.warning(
                        "the lock of message %s was lost; it will be run again",
                        message.message_id,
                        extra={"function": self._function.name},
                    )

    def _handle(self, receiver: ServiceBusReceiver, message: ServiceBusReceivedMessage) -> None:
        try:
            future = self._invoker.submit(self._function, decode_message(message))
            outcome = self._wait(receiver, message, future)
        except (Closed, CancelledError):
            outcome = Outcome(succeeded=False)
        if outcome.succeeded:
            receiver.complete_message(message)
        else:
            receiver.abandon_message(message)

    def _wait(
        self, receiver: ServiceBusReceiver, message: ServiceBusReceivedMessage, future: Future[Outcome]
    ) -> Outcome:
        """Wait for the function, renewing the message's lock for as long as host.json allows."""
        renew_until = time.monotonic() + self._config.renew_seconds
        while (time_left := renew_until - time.monotonic()) > 0:
            try:
                return future.result(min(time_left, max(0.05, _lock_left(message) / 2)))
            except TimeoutError:
                receiver.renew_message_lock(message)
        return future.result()


def _lock_left(message: ServiceBusReceivedMessage) -> float:
    until = message.locked_until_utc
    return (until - datetime.now(UTC)).total_seconds() if until else 60.0
