"""The development host's triggers on dead-letter queues: the real client, against the local Service Bus."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import azure.functions as func
import pytest

from handlers import dead_letters
from localcloud.common.clock import system_clock
from localcloud.functions.host import Host
from localcloud.functions.host_config import HostConfig, ServiceBusConfig
from localcloud.functions.worker.in_process import functions_of
from localcloud.memory.memory_cloud import MemoryCloud
from localcloud.servicebus.wire.servicebus_server import ServiceBusServer
from localcloud.servicebus.world.broker import DEAD_LETTER_SUFFIX, Broker
from localcloud.servicebus.world.broker_values import Draft, QueueConfig
from shared.masking import Masker
from shared.ports.masked import masked
from tests.support.waiting import until

DEAD_LETTERS = "jobs" + DEAD_LETTER_SUFFIX
BUS = HostConfig(service_bus=ServiceBusConfig(max_concurrent_calls=2, renew_seconds=10))


@pytest.fixture
def broker() -> Broker:
    names = ("jobs", "plans")
    return Broker([QueueConfig(name, lock_seconds=1, max_delivery_count=1) for name in names], system_clock)


def dead_letter(broker: Broker, body: bytes, message_id: str = "m-1") -> None:
    broker.send("jobs", Draft(body, id=message_id, session="east-1"))
    lock = broker.accept_session("jobs")
    delivery = broker.receive("jobs", lock)
    assert lock is not None
    assert delivery is not None
    broker.dead_letter("jobs", delivery.lock_token, reason="TooLate", description="no receiver")
    broker.release_session("jobs", lock)


@contextmanager
def running(app: func.FunctionApp, connection: str) -> Iterator[Host]:
    host = Host(functions_of(app, {"ServiceBus": connection}), BUS)
    host.start()
    try:
        yield host
    finally:
        host.close()
        until(lambda: not any(thread.name.startswith("queue-") for thread in threading.enumerate()))


def app_with(
    work: Callable[[func.ServiceBusMessage], None], address: str, data_type: func.DataType | None = None
) -> func.FunctionApp:
    app = func.FunctionApp()

    @app.service_bus_queue_trigger(
        arg_name="message", queue_name=address, connection="ServiceBus", data_type=data_type
    )
    def take(message: func.ServiceBusMessage) -> None:
        work(message)

    return app


def taken(
    broker: Broker,
    body: bytes,
    address: str = "jobs/$deadletterqueue",
    *,
    message_id: str = "m-1",
    data_type: func.DataType | None = None,
) -> func.ServiceBusMessage:
    """Dead-letter a message; return it as a function gets it."""
    got: queue.Queue[func.ServiceBusMessage] = queue.Queue()
    dead_letter(broker, body, message_id)
    app = app_with(got.put, address, data_type)
    with ServiceBusServer(broker) as server, running(app, server.connection_string):
        message = got.get(timeout=60)
        until(lambda: broker.counts(DEAD_LETTERS).active == 0)
    return message


def work_off(broker: Broker, work: Callable[[func.ServiceBusMessage], None]) -> None:
    """Dead-letter a message, and run a function until it has completed it."""
    dead_letter(broker, b"a body")
    app = app_with(work, "jobs/$deadletterqueue")
    with ServiceBusServer(broker) as server, running(app, server.connection_string):
        until(lambda: broker.counts(DEAD_LETTERS).active == 0)


@pytest.mark.parametrize("address", ["jobs/$deadletterqueue", "jobs/$DeadLetterQueue"])
def test_a_dead_letter_has_the_queues_reason_only_among_its_application_properties(
    broker: Broker, address: str
) -> None:
    message = taken(broker, b"a body", address)
    assert (message.get_body(), message.message_id) == (b"a body", "m-1")
    assert message.application_properties == {
        "DeadLetterReason": "TooLate",
        "DeadLetterErrorDescription": "no receiver",
    }
    assert (message.dead_letter_reason, message.dead_letter_error_description) == (None, None)


def test_a_body_that_is_not_utf_8_arrives_whole_only_where_the_trigger_asks_for_bytes(broker: Broker) -> None:
    body = b"\xff a \x00 body"
    assert taken(broker, body, data_type=func.DataType.BINARY).get_body() == body
    assert taken(broker, body, message_id="m-2").get_body() == "\ufffd a \x00 body".encode()


def test_a_field_of_a_json_body_poses_as_metadata_where_the_trigger_asks_for_a_string(broker: Broker) -> None:
    fields = {"MessageId": "another", "DeadLetterReason": "none", "Label": None, "To": [1]}
    body = json.dumps({**fields, "n": 1, "o": {"p": True}}).encode()
    message = taken(broker, body)
    assert (message.message_id, message.dead_letter_reason) == ("another", "none")
    metadata = message.metadata or {}
    assert (metadata["n"], metadata["o"], "Label" in metadata, "To" in metadata) == (
        "1",
        {"p": True},
        False,
        False,
    )
    assert taken(broker, body, message_id="m-2", data_type=func.DataType.BINARY).message_id == "m-2"


def test_a_function_that_raises_is_given_the_dead_letter_again(broker: Broker) -> None:
    tries: list[int] = []

    def work(message: func.ServiceBusMessage) -> None:
        tries.append(1)
        if len(tries) < 4:
            raise RuntimeError("not yet")

    work_off(broker, work)
    assert len(tries) == 4


def test_a_function_that_runs_longer_than_the_lock_keeps_its_message(broker: Broker) -> None:
    runs: list[int] = []

    def work(message: func.ServiceBusMessage) -> None:
        runs.append(1)
        time.sleep(1.6)  # the lock is 1 s

    work_off(broker, work)
    assert len(runs) == 1


def test_the_app_stores_an_unreadable_message_without_secrets(broker: Broker) -> None:
    cloud = MemoryCloud()
    app = func.FunctionApp()
    app.register_functions(
        dead_letters.blueprint(masked(cloud.ports, Masker(["a-token-that-is-hidden"])), "jobs")
    )
    dead_letter(broker, b"\xff a a-token-that-is-hidden in a message")
    with ServiceBusServer(broker) as server, running(app, server.connection_string):
        until(lambda: cloud.state.count_dead_letters() == 1)
        until(lambda: broker.counts(DEAD_LETTERS).active == 0)
    (letter,) = cloud.state.dead_letters(2)
    assert letter.body == "\\xff a *** in a message"
    assert (letter.queue, letter.reason, letter.description) == ("jobs", "TooLate", "no receiver")
    assert letter.id.endswith(":m-1")
