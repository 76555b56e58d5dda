"""The development host's Service Bus triggers: the real client, against the local Service Bus."""

from __future__ import annotations

import gc
import io
import logging
import queue
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, timedelta

import azure.functions as func
import pytest

from localcloud.common.clock import system_clock
from localcloud.functions.host import Host
from localcloud.functions.host_config import HostConfig, ServiceBusConfig
from localcloud.functions.host_logs import set_up_logging
from localcloud.functions.worker.in_process import functions_of
from localcloud.servicebus.wire.servicebus_server import ServiceBusServer
from localcloud.servicebus.world.broker import DEAD_LETTER_SUFFIX, Broker
from localcloud.servicebus.world.broker_values import Draft, QueueConfig
from tests.support.waiting import until

pytestmark = pytest.mark.lives

Work = Callable[[func.ServiceBusMessage], None]


@pytest.fixture
def broker() -> Broker:
    return Broker([QueueConfig("jobs", lock_seconds=1, max_delivery_count=3)], system_clock)


@contextmanager
def listening(connection: str, work: Work, *, sessions: int = 2, renew_seconds: float = 10) -> Iterator[Host]:
    app = func.FunctionApp()

    @app.service_bus_queue_trigger(
        arg_name="message", queue_name="jobs", connection="ServiceBus", is_sessions_enabled=True
    )
    def run_job(message: func.ServiceBusMessage) -> None:
        work(message)

    bus = ServiceBusConfig(
        max_concurrent_sessions=sessions,
        session_idle_seconds=0.1,
        renew_seconds=renew_seconds,
        accept_seconds=0.5,
    )
    host = Host(functions_of(app, {"ServiceBus": connection}), HostConfig(service_bus=bus))
    host.start()
    try:
        yield host
    finally:
        host.close()
        until(lambda: not any("run_job" in thread.name for thread in threading.enumerate()))


def test_a_message_arrives_with_everything_the_worker_gives(broker: Broker) -> None:
    got: queue.Queue[func.ServiceBusMessage] = queue.Queue()
    with ServiceBusServer(broker) as server, listening(server.connection_string, got.put):
        sequence = broker.send(
            "jobs",
            Draft(b'{"a": 1}', id="east-1:4:2", session="east-1", properties={"kind": "step"}),
        )
        message = got.get(timeout=60)
        until(lambda: broker.counts("jobs").active == 0)
    assert message.get_body() == b'{"a": 1}'
    assert (message.message_id, message.session_id) == ("east-1:4:2", "east-1")
    assert (message.sequence_number, message.delivery_count) == (sequence, 1)
    assert message.application_properties == {"kind": "step"}
    at = message.enqueued_time_utc
    assert at is not None
    assert at.tzinfo is None, "the extension sends a DateTime without a zone"
    assert abs(at.replace(tzinfo=UTC) - system_clock()) < timedelta(seconds=30)


def test_a_message_has_the_metadata_of_the_real_extension_and_no_other(broker: Broker) -> None:
    got: queue.Queue[func.ServiceBusMessage] = queue.Queue()
    with ServiceBusServer(broker) as server, listening(server.connection_string, got.put):
        broker.send("jobs", Draft(b"body", id="m-1", session="a", properties={"kind": "step", "n": 7}))
        message = got.get(timeout=60)
        until(lambda: broker.counts("jobs").active == 0)
    metadata = message.metadata
    assert metadata is not None
    # What ServiceBusTriggerBindingStrategy of the extension adds, without what is null in this message.
    assert set(metadata) == {
        *("DeliveryCount", "LockToken", "ExpiresAtUtc", "ExpiresAt", "EnqueuedTimeUtc", "EnqueuedTime"),
        *("MessageId", "SequenceNumber", "ApplicationProperties", "UserProperties", "SessionId"),
    }
    assert metadata["UserProperties"] == metadata["ApplicationProperties"] == {"kind": "step", "n": 7}
    assert re.fullmatch(r"[0-9-]+T[0-9:]+(\.\d*[1-9])?", metadata["EnqueuedTimeUtc"])
    assert metadata["EnqueuedTime"] == metadata["EnqueuedTimeUtc"] + "+00:00"
    assert message.locked_until is None
    assert message.time_to_live is None
    assert message.enqueued_sequence_number is None


def test_a_session_runs_in_order_while_others_run_in_parallel(broker: Broker) -> None:
    seen: list[str] = []
    both = threading.Barrier(2, timeout=60)

    def work(message: func.ServiceBusMessage) -> None:
        if message.get_body() == b"0":
            both.wait()  # passes only when the two sessions run at the same time
        seen.append(f"{message.session_id}{message.get_body().decode()}")

    with ServiceBusServer(broker) as server, listening(server.connection_string, work):
        for number in range(5):
            for session in ("a", "b"):
                broker.send("jobs", Draft(str(number).encode(), session=session))
        until(lambda: len(seen) == 10)
    for session in ("a", "b"):
        assert [delivery for delivery in seen if delivery[0] == session] == [
            f"{session}{n}" for n in range(5)
        ]


def test_a_function_that_raises_abandons_until_the_message_is_dead_lettered(broker: Broker) -> None:
    counts: list[int | None] = []

    def work(message: func.ServiceBusMessage) -> None:
        counts.append(message.delivery_count)
        raise ValueError("poison")

    with ServiceBusServer(broker) as server, listening(server.connection_string, work):
        broker.send("jobs", Draft(b"x", session="a"))
        until(lambda: broker.counts(f"jobs{DEAD_LETTER_SUFFIX}").active == 1)
    assert counts == [1, 2, 3]


def test_a_session_stays_locked_while_its_function_outlasts_the_lock(broker: Broker) -> None:
    runs: list[str | None] = []

    def work(message: func.ServiceBusMessage) -> None:
        runs.append(message.message_id)
        time.sleep(1.6)  # the lock is 1 s

    with ServiceBusServer(broker) as server, listening(server.connection_string, work):
        broker.send("jobs", Draft(b"x", id="slow", session="a"))
        until(lambda: broker.counts("jobs").active == 0)
    assert runs == ["slow"]


@pytest.mark.parametrize(("renew_seconds", "twice"), [(1.0, True), (30.0, False)])
def test_the_lock_of_a_session_is_renewed_since_it_was_accepted_and_not_since_a_message(
    renew_seconds: float, twice: bool, broker: Broker
) -> None:
    runs: list[str | None] = []

    def work(message: func.ServiceBusMessage) -> None:
        runs.append(message.message_id)
        time.sleep(0.4)  # the lock is 1 s

    with (
        ServiceBusServer(broker) as server,
        listening(server.connection_string, work, renew_seconds=renew_seconds),
    ):
        for number in range(6):
            broker.send("jobs", Draft(b"x", id=str(number), session="a"))
        until(lambda: broker.counts("jobs").active == 0)
    assert sorted({*runs}, key=str) == [str(number) for number in range(6)]
    assert (len(runs) > 6) is twice


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # azure-servicebus leaves its broken sockets
def test_a_restart_of_service_bus_is_two_lines_in_the_log_and_no_lost_message(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "azure")  # its captured records would hold those sockets
    got: queue.Queue[func.ServiceBusMessage] = queue.Queue()
    text = io.StringIO()
    root = logging.getLogger()
    level, handler = root.level, set_up_logging(text, {})
    try:
        server = ServiceBusServer(broker, key="a2V5")
        with listening(server.connection_string, got.put):
            broker.send("jobs", Draft(b"before", session="a"))
            assert got.get(timeout=60).get_body() == b"before"
            until(lambda: broker.counts("jobs").active == 0)
            server.close()
            until(lambda: "does not answer" in text.getvalue())
            time.sleep(0.5)
            with ServiceBusServer(broker, port=server.port, key="a2V5"):
                broker.send("jobs", Draft(b"after", session="b"))
                assert got.get(timeout=60).get_body() == b"after"
                until(lambda: "answers again" in text.getvalue())
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
        gc.collect()
    assert text.getvalue().count("Service Bus") == 2
    assert "Traceback" not in text.getvalue()


def test_a_stop_lets_the_running_function_end_and_takes_no_further_message(broker: Broker) -> None:
    started, seen = threading.Event(), []

    def work(message: func.ServiceBusMessage) -> None:
        started.set()
        time.sleep(0.3)
        seen.append(message.get_body())

    with ServiceBusServer(broker) as server:
        with listening(server.connection_string, work) as host:
            for body in (b"first", b"second"):
                broker.send("jobs", Draft(body, session="a"))
            assert started.wait(10)
            assert host.close()
        assert seen == [b"first"]
        assert broker.session_lock("jobs", "a") is None
        assert broker.counts("jobs").active == 1
