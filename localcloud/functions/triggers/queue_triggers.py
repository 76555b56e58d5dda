"""Service Bus triggers on queues without sessions: dead-letter queues.

As in Azure: up to ``maxConcurrentCalls`` messages at once, peek-lock, complete when the function returns
and abandon when it raises, the message's lock renewed while a function runs.
"""

from __future__ import annotations

import logging
from functools import partial

from azure.servicebus import ServiceBusClient, ServiceBusReceivedMessage, ServiceBusReceiver
from azure.servicebus.exceptions import MessageLockLostError

from localcloud.functions.delivery import RECEIVE_SECONDS, FunctionDelivery, Lock
from localcloud.functions.host_config import ServiceBusConfig
from localcloud.functions.host_logs import HOST
from localcloud.functions.triggers.listener_threads import Slots
from localcloud.functions.worker.function_index import Function, QueueTrigger
from localcloud.functions.worker.invocations import Invoker

log = logging.getLogger(HOST)


class QueueListener(Slots):
    """Listens for one function."""

    def __init__(self, function: Function, invoker: Invoker, config: ServiceBusConfig) -> None:
        if not isinstance(function.trigger, QueueTrigger):
            raise TypeError(f"{function.name} has no trigger on a queue without sessions")
        trigger, count = function.trigger, config.max_concurrent_calls
        super().__init__(function.name, trigger.connection, name="queue", count=count)
        self._queue = trigger.queue
        self._delivery = FunctionDelivery(function, invoker)
        self._renew_seconds = config.renew_seconds

    def _turn(self, client: ServiceBusClient) -> None:
        with client.get_queue_receiver(self._queue) as receiver:
            self._outage.over()
            while not self._stop.is_set():
                for message in receiver.receive_messages(1, max_wait_time=RECEIVE_SECONDS):
                    self._deliver(receiver, message)

    def _deliver(self, receiver: ServiceBusReceiver, message: ServiceBusReceivedMessage) -> None:
        try:
            lock = Lock(message, partial(receiver.renew_message_lock, message), seconds=self._renew_seconds)
            self._delivery.deliver(receiver, message, lock)
        except MessageLockLostError:
            log.warning(
                "the lock of message %s was lost; it will be run again",
                message.message_id,
                extra={"function": self._name},
            )
