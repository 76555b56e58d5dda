"""The threads that listen on a queue for one function, and what a thread does when Service Bus fails."""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod

from azure.servicebus import ServiceBusClient
from azure.servicebus.exceptions import ServiceBusError

from localcloud.common.thread_names import name_thread
from localcloud.functions.host_logs import HOST

log = logging.getLogger(HOST)

_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 5.0
LISTENER = "listener"
"""The name of these threads for the system: in Azure they are not in the process of the Python worker."""
_AFTER_SURPRISE = 1.0
"""Seconds to wait after an error that the client does not document."""


class OutageLog:
    """Reports once that a service does not answer, and once that it answers again; shared by threads."""

    def __init__(self, function: str, service: str) -> None:
        self._extra = {"function": function}
        self._service = service
        self._lock = threading.Lock()
        self._pause = 0.0

    def begin(self, error: Exception) -> float:
        """Record a failure; return the seconds to wait before the next attempt."""
        with self._lock:
            if not self._pause:
                reason = " ".join(str(error).split())[:200]
                log.warning("%s does not answer (%s); trying again", self._service, reason, extra=self._extra)
            self._pause = min(_LONGEST_PAUSE, max(_FIRST_PAUSE, self._pause * 2))
            return self._pause

    def over(self) -> None:
        """Record that the service answers."""
        with self._lock:
            if self._pause:
                log.info("%s answers again", self._service, extra=self._extra)
            self._pause = 0.0


class Slots(ABC):
    """As many threads as the function may run at once, each with a client of its own.

    When Service Bus does not answer, they report it once and try again with growing pauses. ``stop`` takes no
    more messages, ``join`` waits for those that run.
    """

    def __init__(self, function: str, connection: str, *, name: str, count: int) -> None:
        self._name, self._connection = function, connection
        self._stop = threading.Event()
        self._outage = OutageLog(function, "Service Bus")
        self._threads = [
            threading.Thread(target=self._slot, daemon=True, name=f"{name}-{function}-{n}")
            for n in range(count)
        ]

    def start(self) -> None:
        """Begin to listen."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Take no further message."""
        self._stop.set()

    def join(self, seconds: float) -> None:
        """Wait until the running messages have ended, and every session was released."""
        deadline = time.monotonic() + seconds
        for thread in self._awaited():
            thread.join(max(0.0, deadline - time.monotonic()))

    def _awaited(self) -> list[threading.Thread]:
        """Return the threads that ``join`` waits for."""
        return self._threads

    @abstractmethod
    def _turn(self, client: ServiceBusClient) -> None:
        """Receive messages with one receiver, until it is done or ``_stop`` is set."""

    def _slot(self) -> None:
        name_thread(LISTENER)
        # The client is not closed: it holds nothing but its receivers, and those are closed one by one.
        client = ServiceBusClient.from_connection_string(self._connection, retry_total=0)
        while not self._stop.is_set():
            try:
                self._turn(client)
            except ServiceBusError as error:
                if not self._stop.is_set():
                    self._stop.wait(self._outage.begin(error))
            except Exception:
                log.exception("the Service Bus client failed", extra={"function": self._name})
                self._stop.wait(_AFTER_SURPRISE)
