"""Service Bus triggers on session-enabled queues.

As in Azure: up to ``maxConcurrentSessions`` sessions at once for each function, the messages of one session
strictly one after the other, peek-lock without prefetch, complete when the function returns and abandon when
it raises, the session's lock renewed while a function runs, and the session released when no message came for
``sessionIdleTimeout``. When Service Bus does not answer, the listener reports it once and tries again with
growing pauses.
"""

from __future__ import annotations

import logging
import threading
import time

from azure.servicebus import NEXT_AVAILABLE_SESSION, ServiceBusClient, ServiceBusReceiver
from azure.servicebus.exceptions import (
    MessageLockLostError,
    OperationTimeoutError,
    ServiceBusError,
    SessionLockLostError,
)

from localcloud.functions.delivery import RECEIVE_SECONDS, FunctionDelivery, Lock
from localcloud.functions.host_config import ServiceBusConfig
from localcloud.functions.host_logs import HOST
from localcloud.functions.triggers.listener_threads import Slots
from localcloud.functions.worker.function_index import Function, SessionTrigger
from localcloud.functions.worker.invocations import Invoker

log = logging.getLogger(HOST)

ACCEPTING = 2
"""How many slots of a function wait for a session at once, each on a connection of its own.

Azure's client, on which the Functions host builds, lets twice as many wait as the machine has cores
(``MaxConcurrentAcceptSessionsSemaphore`` in its ServiceBusProcessor.cs): this is the host on one core.
"""


class SessionRun:
    """Serves one session; everything about its connection happens in the thread that calls ``serve``."""

    def __init__(
        self, function: Function, invoker: Invoker, config: ServiceBusConfig, receiver: ServiceBusReceiver
    ) -> None:
        self._name, self._idle_seconds = function.name, config.session_idle_seconds
        self._delivery = FunctionDelivery(function, invoker)
        self._receiver = receiver
        self._lock = Lock(receiver.session, receiver.session.renew_lock, seconds=config.renew_seconds)

    def serve(self, stop: threading.Event) -> None:
        """Take messages until the session is idle or lost, or ``stop`` is set.

        Raise ServiceBusError when Service Bus does not answer. The next owner of the session runs an
        unfinished message again.
        """
        idle_at = time.monotonic() + self._idle_seconds
        try:
            while not stop.is_set() and (left := idle_at - time.monotonic()) > 0:
                if self._lock.rest() < 0 < self._lock.renewable():
                    self._lock.renew()
                messages = self._receiver.receive_messages(1, max_wait_time=min(left, RECEIVE_SECONDS))
                for message in messages:
                    self._delivery.deliver(self._receiver, message, self._lock)
                    idle_at = time.monotonic() + self._idle_seconds
        except (SessionLockLostError, MessageLockLostError):
            log.warning(
                "the lock of session %s was lost; its message will be run again",
                self._receiver.session.session_id,
                extra={"function": self._name},
            )


class SessionListener(Slots):
    """Listens for one function; slots that hold no session are not waited for."""

    def __init__(self, function: Function, invoker: Invoker, config: ServiceBusConfig) -> None:
        if not isinstance(function.trigger, SessionTrigger):
            raise TypeError(f"{function.name} has no Service Bus trigger")
        trigger, count = function.trigger, config.max_concurrent_sessions
        super().__init__(function.name, trigger.connection, name="session", count=count)
        self._function, self._invoker, self._config = function, invoker, config
        self._queue = trigger.queue
        self._accepting = threading.Semaphore(ACCEPTING)
        self._busy: set[threading.Thread] = set()
        self._starting = threading.Lock()

    def _awaited(self) -> list[threading.Thread]:
        with self._starting:
            return list(self._busy)

    def _turn(self, client: ServiceBusClient) -> None:
        with self._accepting:
            receiver = None if self._stop.is_set() else self._accept(client)
        if receiver is not None:
            self._serve(receiver)

    def _accept(self, client: ServiceBusClient) -> ServiceBusReceiver | None:
        """Wait for a session that has messages and lock it; return None when there was none."""
        receiver = client.get_queue_receiver(
            self._queue, session_id=NEXT_AVAILABLE_SESSION, max_wait_time=self._config.accept_seconds
        )
        try:
            receiver.__enter__()
        except OperationTimeoutError:
            self._outage.over()
            self._close(receiver)
            return None
        except ServiceBusError:
            self._close(receiver)
            raise
        self._outage.over()
        return receiver

    def _serve(self, receiver: ServiceBusReceiver) -> None:
        self._busy.add(threading.current_thread())
        try:
            SessionRun(self._function, self._invoker, self._config, receiver).serve(self._stop)
        finally:
            self._close(receiver)
            self._busy.discard(threading.current_thread())

    def _close(self, receiver: ServiceBusReceiver) -> None:
        """Release the session, in the background: the client takes up to a second to clean up."""
        thread = threading.Thread(target=self._tidy, args=(receiver,), name=f"close-{self._function.name}")
        with self._starting:  # a thread can be waited for only once it runs
            self._busy.add(thread)
            thread.start()

    def _tidy(self, receiver: ServiceBusReceiver) -> None:
        try:
            receiver.close()
        except Exception:
            log.debug("a broken connection could not be closed", exc_info=True)
        finally:
            self._busy.discard(threading.current_thread())
