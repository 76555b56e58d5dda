"""Service Bus triggers on session-enabled queues.

As in Azure: up to ``maxConcurrentSessions`` sessions at once for each function, the messages of one session
strictly one after the other, peek-lock without prefetch, complete when the function returns and abandon
when it raises, the session's lock renewed while a function runs, and the session given back when no
message came for ``sessionIdleTimeout``. When Service Bus does not answer, the listener says so once
and tries again with growing pauses.
"""

from __future__ import annotations

import logging
import threading

from azure.servicebus import NEXT_AVAILABLE_SESSION, ServiceBusClient, ServiceBusReceiver
from azure.servicebus.exceptions import OperationTimeoutError, ServiceBusError

from localcloud.functions.function_index import Function, SessionTrigger
from localcloud.functions.host_config import ServiceBusConfig
from localcloud.functions.host_logs import HOST
from localcloud.functions.invocations import Invoker
from localcloud.functions.listener_threads import Slots
from localcloud.functions.session_messages import SessionRun

log = logging.getLogger(HOST)


class SessionListener(Slots):
    """Listens for one function; slots that hold no session are not waited for."""

    def __init__(self, function: Function, invoker: Invoker, config: ServiceBusConfig) -> None:
        if not isinstance(function.trigger, SessionTrigger):
            raise TypeError(f"{function.name} has no Service Bus trigger")
        trigger, count = function.trigger, config.max_concurrent_sessions
        super().__init__(function.name, trigger.connection, name="session", count=count)
        self._function, self._invoker, self._config = function, invoker, config
        self._queue = trigger.queue
        self._busy: set[threading.Thread] = set()
        self._starting = threading.Lock()

    def _awaited(self) -> list[threading.Thread]:
        with self._starting:
            return list(self._busy)

    def _turn(self, client: ServiceBusClient) -> None:
        receiver = self._accept(client)
        if receiver is not None:
            self._serve(receiver)

    def _accept(self, client: ServiceBusClient) -> ServiceBusReceiver | None:
        """Wait for a session that has messages and lock it; None: there was none."""
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
        """Give the session back, in the background: the client takes up to a second to tidy up."""
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
