"""The threads that listen on a queue for one function, and what a thread does when Service Bus fails."""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod

from azure.servicebus import ServiceBusClient
from azure.servicebus.exceptions import ServiceBusError

from localcloud.functions.host_logs import HOST
from localcloud.functions.outage import Outage

log = logging.getLogger(HOST)

_AFTER_SURPRISE = 1.0
"""Seconds to wait after an error that the client is not known to make."""


class Slots(ABC):
    """As many threads as the function may run at once, each with a client of its own.

    When Service Bus does not answer, they say so once and try again with growing pauses. ``stop`` takes no
    more messages, ``join`` waits for those under way.
    """

    def __init__(self, function: str, connection: str, *, name: str, count: int) -> None:
        self._name, self._connection = function, connection
        self._stop = threading.Event()
        self._outage = Outage(function, "Service Bus")
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
        """Wait until what is under way has ended, and everything was given back."""
        deadline = time.monotonic() + seconds
        for thread in self._awaited():
            thread.join(max(0.0, deadline - time.monotonic()))

    def _awaited(self) -> list[threading.Thread]:
        """Return the threads that ``join`` waits for."""
        return self._threads

    @abstractmethod
    def _turn(self, client: ServiceBusClient) -> None:
        """Take messages through one receiver, until it has served its turn or ``_stop`` is set."""

    def _slot(self) -> None:
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
