"""The local Service Bus as the real azure-servicebus client sees it, on real time with short locks."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from statistics import median

import pytest
from azure.servicebus import (
    NEXT_AVAILABLE_SESSION,
    AutoLockRenewer,
    ServiceBusClient,
    ServiceBusMessage,
    ServiceBusReceivedMessage,
    ServiceBusReceiver,
    ServiceBusSubQueue,
)
from azure.servicebus.exceptions import (
    MessagingEntityNotFoundError,
    OperationTimeoutError,
    ServiceBusAuthenticationError,
    ServiceBusError,
    SessionCannotBeLockedError,
    SessionLockLostError,
)

from localcloud.common.clock import system_clock
from localcloud.servicebus.wire.servicebus_server import ServiceBusServer
from localcloud.servicebus.world.broker import Broker, Draft, QueueConfig, QueueCounts
from tests.support.waiting import until

pytestmark = pytest.mark.lives

JOBS = QueueConfig("jobs", lock_seconds=30, max_delivery_count=3)
SHORT = QueueConfig("short", lock_seconds=1)
LOOSE = QueueConfig("loose", lock_seconds=30, requires_session=False)


class Bus:
    """A broker, its server, and a client of it."""

    def __init__(self, client: ServiceBusClient, broker: Broker, connection_string: str) -> None:
        self.client, self.broker, self.connection_string = client, broker, connection_string

    def put(self, name: str, session: str = "s", queue: str = "jobs") -> None:
        self.broker.send(queue, Draft(name.encode(), id=name, session=session))

    def receiver(
        self, session: str | None = None, queue: str = "jobs", wait: float = 5
    ) -> ServiceBusReceiver:
        return self.client.get_queue_receiver(
            queue, session_id=session or NEXT_AVAILABLE_SESSION, max_wait_time=wait
        )


@pytest.fixture
def bus() -> Iterator[Bus]:
    broker = Broker([JOBS, SHORT, LOOSE], system_clock)
    with (
        ServiceBusServer(broker) as server,
        ServiceBusClient.from_connection_string(server.connection_string, retry_total=0) as client,
    ):
        yield Bus(client, broker, server.connection_string)


def one(receiver: ServiceBusReceiver, wait: float = 5) -> ServiceBusReceivedMessage:
    [message] = receiver.receive_messages(1, max_wait_time=wait)
    return message


def test_single_list_and_batch_arrive_whole_and_with_their_properties(bus: Bus) -> None:
    with bus.client.get_queue_sender("jobs") as sender:
        sender.send_messages(
            ServiceBusMessage(
                b"\xff\x00",
                session_id="s",
                message_id="single",
                content_type="application/json",
                correlation_id="c",
                subject="job",
                application_properties={"attempt": 3, "who": "éva", "raw": b"x"},
            )
        )
        sender.send_messages(
            [ServiceBusMessage(f"{n}", session_id="s", message_id=f"l{n}") for n in range(2)]
        )
        batch = sender.create_message_batch()
        batch.add_message(ServiceBusMessage("b", session_id="s", message_id="batch"))
        sender.send_messages(batch)
    with bus.receiver("s") as receiver:
        messages = receiver.receive_messages(4, max_wait_time=5)
    assert [m.message_id for m in messages] == ["single", "l0", "l1", "batch"]
    first = messages[0]
    assert b"".join(first.body) == b"\xff\x00"
    assert (first.session_id, first.content_type, first.correlation_id, first.subject) == (
        "s",
        "application/json",
        "c",
        "job",
    )
    assert first.application_properties == {b"attempt": 3, b"who": "éva".encode(), b"raw": b"x"}
    assert (first.delivery_count, first.sequence_number) == (0, 1)
    assert first.enqueued_time_utc is not None
    assert abs(first.enqueued_time_utc - datetime.now(UTC)) < timedelta(seconds=10)


def test_a_body_of_many_frames_is_sent_and_received(bus: Bus) -> None:
    body = bytes(range(256)) * 1000
    with bus.client.get_queue_sender("loose") as sender:
        sender.send_messages(ServiceBusMessage(body))
    with bus.client.get_queue_receiver("loose") as receiver:
        message = one(receiver)
        assert b"".join(message.body) == body
        receiver.complete_message(message)


def test_eight_receivers_take_eight_sessions_at_once_and_keep_each_in_order(bus: Bus) -> None:
    for number in range(5):
        for session in range(8):
            bus.put(f"{session}:{number}", session=f"s{session}")
    together = threading.Barrier(8)

    def work(_: int) -> list[str]:
        with bus.receiver() as receiver:
            together.wait(10)
            names = []
            for _ in range(5):
                message = one(receiver)
                receiver.complete_message(message)
                names.append(str(message.message_id))
            return names

    with ThreadPoolExecutor(8) as pool:
        taken = sorted(pool.map(work, range(8)))
    assert taken == [[f"{session}:{number}" for number in range(5)] for session in range(8)]
    assert bus.broker.counts("jobs") == QueueCounts(0, 0, 0)


def test_a_batch_is_taken_as_a_whole_or_not_at_all(bus: Bus) -> None:
    with bus.client.get_queue_sender("jobs") as sender:
        whole = sender.create_message_batch()
        assert whole.max_size_in_bytes == 256 * 1024
        for session in ("s", "t"):
            whole.add_message(ServiceBusMessage("{}", session_id=session, message_id=f"{session}:1"))
        sender.send_messages(whole)
        assert {m.draft.session for m in bus.broker.peek("jobs")} == {"s", "t"}
        broken = sender.create_message_batch()
        broken.add_message(ServiceBusMessage("{}", session_id="s", message_id="s:2"))
        broken.add_message(ServiceBusMessage("{}", message_id="without a session"))
        with pytest.raises(ServiceBusError):
            sender.send_messages(broken)
    assert bus.broker.counts("jobs").active == 2


def test_a_message_wakes_the_receiver_that_waits_for_it(bus: Bus) -> None:
    """The median of five counts, as the processor may be busy with other tests meanwhile."""
    sent, took = list[float](), list[float]()

    def send() -> None:
        sent.append(time.monotonic())
        bus.put(f"a{len(sent)}")

    with bus.receiver("s") as receiver:
        for _ in range(5):
            timer = threading.Timer(0.2, send)
            timer.start()
            receiver.complete_message(one(receiver))
            took.append(time.monotonic() - sent[-1])
            timer.join()
    assert median(took) < 0.1, took


def test_a_receiver_that_waits_for_any_session_gets_the_first_that_has_a_message(bus: Bus) -> None:
    timer = threading.Timer(0.7, lambda: bus.put("a", session="late"))
    timer.start()
    with bus.receiver() as receiver:
        assert receiver.session.session_id == "late"
        assert one(receiver).message_id == "a"
    timer.join()


def test_no_free_session_is_the_clients_usual_timeout(bus: Bus) -> None:
    began = time.monotonic()
    with pytest.raises(OperationTimeoutError, match=r"com\.microsoft:timeout"), bus.receiver(wait=0.5):
        pass
    assert time.monotonic() - began < 3


def test_a_session_is_free_after_a_clean_close_and_not_before(bus: Bus) -> None:
    bus.put("a")
    with bus.receiver() as first:
        one(first)
        with pytest.raises(SessionCannotBeLockedError), bus.receiver("s"):
            pass
    with bus.receiver("s") as second:
        assert one(second).delivery_count == 0


def test_a_receiver_that_was_killed_keeps_its_session_until_the_lock_ends(bus: Bus) -> None:
    bus.put("a", queue="short")
    script = (
        "import sys, time\n"
        "from azure.servicebus import ServiceBusClient\n"
        "client = ServiceBusClient.from_connection_string(sys.argv[1])\n"
        "receiver = client.get_queue_receiver('short', session_id='s')\n"
        "receiver.receive_messages(1)\n"
        "print('taken', flush=True)\n"
        "time.sleep(60)\n"
    )
    command = [sys.executable, "-c", script, bus.connection_string]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        child.kill()
    killed = time.monotonic()
    lock = bus.broker.session_lock("short", "s")
    assert lock is not None
    with bus.receiver(queue="short") as receiver:
        assert one(receiver).delivery_count == 1
    assert time.monotonic() - killed < 4


def test_a_lock_that_has_ended_ends_the_receiver_and_frees_the_message(bus: Bus) -> None:
    bus.put("a", queue="short")
    with bus.receiver(queue="short") as receiver:
        message = one(receiver)
        until(lambda: bus.broker.session_lock("short", "s") is None)
        with pytest.raises(SessionLockLostError):
            receiver.complete_message(message)
    with bus.receiver(queue="short") as again:
        assert one(again).delivery_count == 1


def test_a_session_lock_is_renewed_by_hand_and_by_the_renewer(bus: Bus) -> None:
    bus.put("a", queue="short")
    with bus.receiver(queue="short") as receiver, AutoLockRenewer(max_lock_renewal_duration=10) as renewer:
        message = one(receiver)
        before = receiver.session.locked_until_utc
        assert before is not None
        assert receiver.session.renew_lock() > before
        renewer.register(receiver, receiver.session)
        time.sleep(1.3)
        receiver.complete_message(message)
    assert bus.broker.counts("short") == QueueCounts(0, 0, 0)


def test_abandoning_ends_in_the_dead_letter_queue(bus: Bus) -> None:
    bus.put("poison")
    with bus.receiver() as receiver:
        for failures in range(3):
            message = one(receiver)
            assert message.delivery_count == failures
            receiver.abandon_message(message)
    with bus.client.get_queue_receiver("jobs", sub_queue=ServiceBusSubQueue.DEAD_LETTER) as dead:
        message = one(dead)
        assert message.dead_letter_reason == "MaxDeliveryCountExceeded"
        assert (message.message_id, message.session_id, message.delivery_count) == ("poison", "s", 3)
        dead.complete_message(message)
    assert bus.broker.counts("jobs") == QueueCounts(0, 0, 0)


def test_a_dead_letter_has_its_reason(bus: Bus) -> None:
    bus.put("a")
    with bus.receiver() as receiver:
        receiver.dead_letter_message(one(receiver), reason="Broken", error_description="no such field")
    with bus.client.get_queue_receiver("jobs", sub_queue=ServiceBusSubQueue.DEAD_LETTER) as dead:
        message = one(dead)
        assert (message.dead_letter_reason, message.dead_letter_error_description) == (
            "Broken",
            "no such field",
        )
        dead.renew_message_lock(message)
        dead.abandon_message(message)
    assert bus.broker.counts("jobs").dead_lettered == 1


def test_scheduled_messages_are_shown_before_their_time_and_come_at_it(bus: Bus) -> None:
    at = datetime.now(UTC) + timedelta(seconds=2)
    with bus.client.get_queue_sender("jobs") as sender, bus.receiver("s") as receiver:
        sender.send_messages(
            ServiceBusMessage("", session_id="s", message_id="a", scheduled_enqueue_time_utc=at)
        )
        assert [m.message_id for m in receiver.peek_messages(3)] == ["a"]
        assert one(receiver).message_id == "a"
        assert timedelta() <= datetime.now(UTC) - at < timedelta(seconds=0.3)
    assert bus.broker.counts("jobs").scheduled == 0


def test_a_duplicate_is_dropped_silently(bus: Bus) -> None:
    with bus.client.get_queue_sender("jobs") as sender:
        sender.send_messages([ServiceBusMessage(f"{n}", session_id="s", message_id="same") for n in range(3)])
    assert [m.draft.body for m in bus.broker.peek("jobs")] == [b"0"]


def test_a_message_that_arrives_after_the_receiver_stopped_is_released(bus: Bus) -> None:
    with bus.client.get_queue_receiver("loose") as receiver:
        assert receiver.receive_messages(1, max_wait_time=0.1) == []
        bus.put("a", queue="loose")
    with bus.client.get_queue_receiver("loose") as receiver:
        assert one(receiver).delivery_count == 0


def test_queues_and_receivers_that_do_not_fit_are_refused(bus: Bus) -> None:
    with pytest.raises(MessagingEntityNotFoundError), bus.receiver(queue="nowhere"):
        pass
    with pytest.raises(ServiceBusError, match="amqp:not-allowed"), bus.client.get_queue_receiver("jobs"):
        pass
    with pytest.raises(ServiceBusError, match="amqp:not-allowed"), bus.receiver("s", queue="loose"):
        pass


def test_a_token_of_another_key_opens_nothing(bus: Bus) -> None:
    forged = bus.connection_string.replace("SharedAccessKey=", "SharedAccessKey=x")
    with (
        ServiceBusClient.from_connection_string(forged, retry_total=0) as client,
        pytest.raises(ServiceBusAuthenticationError),
        client.get_queue_receiver("loose"),
    ):
        pass
