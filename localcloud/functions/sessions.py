"""Service Bus triggers on session-enabled queues.

As in Azure: up to ``maxConcurrentSessions`` sessions at once for each function, the messages of one session
strictly one after the other, peek-lock without prefetch, complete when the function returns and abandon
when it raises, the session's lock renewed while a function runs, and the session given back when no
message came for ``sessionIdleTimeout``. When Service Bus does not answer, the listener says so once
and tries again with growing pauses.
"""

from __future__ import annotations

import threading
import time

from azure.servicebus import NEXT_AVAILABLE_SESSION, ServiceBusClient, ServiceBusReceiver
from azure.servicebus.exceptions import OperationTimeoutError, ServiceBusError

from localcloud.functions.config import ServiceBusConfig
from localcloud.functions.index import Function, SessionTrigger
from localcloud.functions.invoke import Invoker
from localcloud.functions.outage import Outage
from localcloud.functions.session import SessionRun

_ACCEPTING = 2
"""How many slots of a function wait for a session at one time: an idle one costs a connection."""
_ACCEPT_SECONDS = 20.0


class SessionListener:
    """Listens for one function; ``stop`` takes no more messages, ``join`` waits for those under way."""

    def __init__(self, function: Function, invoker: Invoker, config: ServiceBusConfig) -> None:
        if not isinstance(function.trigger, SessionTrigger):
            raise TypeError(f"{function.name} has no Service Bus trigger")
        self._function, self._trigger, self._invoker = function, function.trigger, invoker
        self._config = config
        self._stop = threading.Event()
        self._accepting = threading.Semaphore(_ACCEPTING)
        self._outage = Outage(function.name, "Service Bus")
        self._serving: set[threading.Thread] = set()
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
        for thread in list(self._serving):
            thread.join(max(0.0, deadline - time.monotonic()))

    def _slot(self) -> None:
        while not self._stop.is_set():
            with ServiceBusClient.from_connection_string(self._trigger.connection, retry_total=0) as client:
                receiver = self._accept(client)
                if receiver is None:
                    continue
                self._serving.add(threading.current_thread())
                try:
                    SessionRun(self._function, self._invoker, self._config, receiver).serve(self._stop)
                except ServiceBusError as error:
                    self._stop.wait(self._outage.begin(error))
                finally:
                    receiver.close()
                    self._serving.discard(threading.current_thread())

    def _accept(self, client: ServiceBusClient) -> ServiceBusReceiver | None:
        """Wait for a session that has messages and lock it; None: there was none, or no Service Bus."""
        with self._accepting:
            if self._stop.is_set():
                return None
            receiver = client.get_queue_receiver(
                self._trigger.queue, session_id=NEXT_AVAILABLE_SESSION, max_wait_time=_ACCEPT_SECONDS
            )
            try:
                receiver.__enter__()
            except OperationTimeoutError:
                self._outage.over()
                return None
            except ServiceBusError as error:
                self._stop.wait(self._outage.begin(error))
                return None
            self._outage.over()
            return receiver
