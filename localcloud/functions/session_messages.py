"""One locked session: its messages one after the other, until it is idle, lost or the host stops."""

from __future__ import annotations

import logging
import threading
import time

from azure.servicebus import ServiceBusReceiver
from azure.servicebus.exceptions import MessageLockLostError, SessionLockLostError

from localcloud.functions.delivery import RECEIVE_SECONDS, Delivery, Lock
from localcloud.functions.function_index import Function
from localcloud.functions.host_config import ServiceBusConfig
from localcloud.functions.host_logs import HOST
from localcloud.functions.invocations import Invoker

log = logging.getLogger(HOST)


class SessionRun:
    """Serves one session; everything about its connection happens in the thread that calls ``serve``."""

    def __init__(
        self, function: Function, invoker: Invoker, config: ServiceBusConfig, receiver: ServiceBusReceiver
    ) -> None:
        self._name, self._idle_seconds = function.name, config.session_idle_seconds
        self._delivery = Delivery(function, invoker, renew_seconds=config.renew_seconds)
        self._receiver = receiver
        self._lock = Lock(receiver.session, receiver.session.renew_lock)

    def serve(self, stop: threading.Event) -> None:
        """Take messages until the session is idle or lost, or ``stop`` is set.

        Raise ServiceBusError when Service Bus is gone. A message under way when that happens is run again
        by whoever gets the session next.
        """
        idle_at = time.monotonic() + self._idle_seconds
        try:
            while not stop.is_set() and (left := idle_at - time.monotonic()) > 0:
                if self._lock.rest() < 0:
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
