"""Service Bus with the queues of ``infra/servicebus.bicep``; the duration of the lock is an option."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from localcloud.common.clock import system_clock
from localcloud.runtime.parts.part import Config, run
from localcloud.servicebus.wire.servicebus_server import ServiceBusServer
from localcloud.servicebus.world.broker import Broker
from localcloud.servicebus.world.broker_values import QueueConfig

QUEUES = ("plans", "jobs", "changes", "deletes", "previews")
EVENTS = "events"
"""The queue without sessions, to which Event Grid delivers."""


@contextmanager
def serve(config: Config) -> Iterator[None]:
    """Serve with the key of the connection string."""
    queues = [QueueConfig(name, lock_seconds=config.options["lock_seconds"]) for name in QUEUES]
    queues.append(QueueConfig(EVENTS, lock_seconds=config.options["lock_seconds"], requires_session=False))
    fields = dict(field.split("=", 1) for field in config.settings["ServiceBus"].split(";"))
    broker = Broker(queues, system_clock)
    with ServiceBusServer(broker, port=config.ports["servicebus"], key=fields["SharedAccessKey"]):
        yield


if __name__ == "__main__":
    run("servicebus", serve)
