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
import time

from azure.servicebus import NEXT_AVAILABLE_SESSION, ServiceBusClient, ServiceBusReceiver
from azure.servicebus.exceptions import OperationTimeoutError, ServiceBusError

from localcloud.functions.config import ServiceBusConfig
from localcloud.functions.index import Function, SessionTrigger
from localcloud.functions.invoke import Invoker
from localcloud.functions.logs import HOST
from localcloud.functions.outage import Outage
from localcloud.functions.session import SessionRun

log = logging.getLogger(HOST)

_AFTER_SURPRISE = 1.0
"""Seconds to wait after an error that the client is not known to make."""


class SessionListener:
    """Listens for one function; ``stop`` takes no more messages, ``join`` waits for those under way."""

    def __init__(self, function: Function, invoker: Invoker, config: ServiceBusConfig) -> None:
        if not isinstance(function.trigger, SessionTrigger):
            raise TypeError(f"{function.name} has no Service Bus trigger")
        self._function, self._trigger, self._invoker = function, function.trigger, invoker
        self._config = config
        self._stop = threading.Event()
        self._outage = Outage(function.name, "Service Bus")
        self._busy: set[threading.Thread] = set()
        self._starting = threading.Lock()
        self._threads = [
            threading.Thread(target=self._slot, daemon=True, name=f"session-{function.name}-{n}")
            for n in range(config.max_concurrent_sessions)
        ]

    def start(self) -> None:
        """Begin to listen."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Take no further message."""
        self._stop.set()

    def join(self, seconds: float) -> None:
        """Wait until every session was given back; slots that hold none are not waited for."""
        deadline = time.monotonic() + seconds
        with self._starting:
            busy = list(self._busy)
        for thread in busy:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _slot(self) -> None:
        # The client is not closed: it holds nothing but its receivers, and those are closed one by one.
        client = ServiceBusClient.from_connection_string(self._trigger.connection, retry_total=0)
        while not self._stop.is_set():
            try:
                receiver = self._accept(client)
                if receiver is not None:
                    self._serve(receiver)
            except Exception:
                log.exception("the Service Bus client failed", extra={"function": self._function.name})
                self._stop.wait(_AFTER_SURPRISE)

    def _accept(self, client: ServiceBusClient) -> ServiceBusReceiver | None:
        """Wait for a session that has messages and lock it; None: there was none, or no Service Bus."""
        receiver = client.get_queue_receiver(
            self._trigger.queue, session_id=NEXT_AVAILABLE_SESSION, max_wait_time=self._config.accept_seconds
        )
        try:
            receiver.__enter__()
        except OperationTimeoutError:
            self._outage.over()
            self._close(receiver)
            return None
        except ServiceBusError as error:
            self._close(receiver)
            self._pause(error)
            return None
        self._outage.over()
        return receiver

    def _serve(self, receiver: ServiceBusReceiver) -> None:
        self._busy.add(threading.current_thread())
        try:
            SessionRun(self._function, self._invoker, self._config, receiver).serve(self._stop)
        except ServiceBusError as error:
            self._pause(error)
        finally:
            self._close(receiver)
            self._busy.discard(threading.current_thread())

    def _pause(self, error: ServiceBusError) -> None:
        if not self._stop.is_set():
            self._stop.wait(self._outage.begin(error))

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
