"""Event Grid's delivery to a queue of Service Bus: at least once, and again while that does not answer."""

from __future__ import annotations

import logging
import threading
from datetime import datetime
from queue import Empty, SimpleQueue

from azure.servicebus import ServiceBusClient, ServiceBusMessage
from azure.servicebus.exceptions import ServiceBusError

from localcloud.common.clock import system_clock

QUEUE = "events"
RETRY_SECONDS = 10.0
"""The first interval of learn.microsoft.com/azure/event-grid/delivery-and-retry."""
TOGETHER = 100

log = logging.getLogger(__name__)


class EventDelivery:
    """Sends events on a thread of its own until it is closed; a context manager."""

    def __init__(self, connection_string: str) -> None:
        self._connection_string = connection_string
        self._waiting: SimpleQueue[ServiceBusMessage] = SimpleQueue()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="event-grid", daemon=True)

    def take(self, identifier: str, body: bytes, at: datetime) -> None:
        """Take an event that comes at a time."""
        later = at if at > system_clock() else None
        message = ServiceBusMessage(body, message_id=identifier, scheduled_enqueue_time_utc=later)
        self._waiting.put(message)

    def __enter__(self) -> EventDelivery:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._thread.join(timeout=5)

    def _run(self) -> None:
        left = list[ServiceBusMessage]()
        while not self._closed.is_set():
            try:
                with (
                    ServiceBusClient.from_connection_string(self._connection_string) as client,
                    client.get_queue_sender(QUEUE) as sender,
                ):
                    while not self._closed.is_set():
                        left = left or self._next()
                        if left:
                            sender.send_messages(left)
                            left = []
            except ServiceBusError as error:
                log.warning("events wait for Service Bus: %s", type(error).__name__)
                self._closed.wait(RETRY_SECONDS)

    def _next(self) -> list[ServiceBusMessage]:
        """Return what waits, after half a second at most."""
        messages = list[ServiceBusMessage]()
        try:
            messages.append(self._waiting.get(timeout=0.5))
            while len(messages) < TOGETHER:
                messages.append(self._waiting.get_nowait())
        except Empty:
            pass
        return messages
