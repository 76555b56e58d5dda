"""One suite for the ``Queue`` port: the broker in memory, and the real client on the local Service Bus."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta

import pytest

from localcloud.common.clock import ManualClock
from localcloud.servicebus.wire.servicebus_server import ServiceBusServer
from localcloud.servicebus.world.broker import Broker, BrokerQueue, QueueConfig, QueueCounts, StoredMessage
from shared.adapters.servicebus import ServiceBusQueue, service_bus_client
from shared.cluster.failures.errors import (
    Dependency,
    InvalidManifest,
    Terminal,
    TooLarge,
    Unauthenticated,
    Unavailable,
)
from shared.ports import Message, Queue

pytestmark = pytest.mark.lives

QUEUES = [QueueConfig("jobs", duplicate_window_seconds=600), QueueConfig("plans")]


@dataclass(frozen=True)
class Bench:
    """A queue under test, one that does not exist, and what stands behind them."""

    queue: Queue
    missing: Queue
    broker: Broker
    clock: ManualClock

    def stored(self) -> list[StoredMessage]:
        return self.broker.peek("jobs")


@pytest.fixture(params=["world", "service"])
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    clock = ManualClock()
    broker = Broker(QUEUES, clock)
    if request.param == "world":
        yield Bench(BrokerQueue(broker, "jobs"), BrokerQueue(broker, "nowhere"), broker, clock)
        return
    with (
        ServiceBusServer(broker) as server,
        service_bus_client(connection_string=server.connection_string) as client,
    ):
        yield Bench(ServiceBusQueue(client, "jobs"), ServiceBusQueue(client, "nowhere"), broker, clock)


def test_a_message_arrives_with_its_session_id_and_body(bench: Bench) -> None:
    bench.queue.send(Message(session="weu/one", id="one:1:1", body='{"cluster": "éins"}'))
    [stored] = bench.stored()
    assert (stored.draft.session, stored.draft.id) == ("weu/one", "one:1:1")
    assert stored.draft.body.decode() == '{"cluster": "éins"}'
    assert stored.draft.content_type == "application/json"


def test_the_same_id_twice_is_one_message(bench: Bench) -> None:
    for _ in range(2):
        bench.queue.send(Message(session="a", id="a:1:1", body="{}"))
    assert len(bench.stored()) == 1
    bench.clock.advance(601)
    bench.queue.send(Message(session="a", id="a:1:1", body="{}"))
    assert len(bench.stored()) == 2


def test_a_scheduled_message_is_not_there_before_its_time(bench: Bench) -> None:
    at = bench.clock() + timedelta(seconds=30)
    bench.queue.send(Message(session="a", id="1", body="{}", at=at))
    assert bench.broker.counts("jobs") == QueueCounts(active=0, scheduled=1, dead_lettered=0)
    assert bench.stored()[0].draft.at == at
    bench.clock.advance(30)
    assert bench.broker.counts("jobs") == QueueCounts(active=1, scheduled=0, dead_lettered=0)


def test_a_time_that_has_passed_means_now(bench: Bench) -> None:
    bench.queue.send(Message(session="a", id="1", body="{}", at=bench.clock() - timedelta(seconds=1)))
    assert bench.broker.counts("jobs").active == 1


def test_a_session_keeps_the_order_of_sending(bench: Bench) -> None:
    names = [f"a:{number}" for number in range(20)]
    for name in names:
        bench.queue.send(Message(session="a", id=name, body="{}"))
    lock = bench.broker.accept_session("jobs")
    found = [bench.broker.receive("jobs", lock) for _ in names]
    assert [delivery.message.draft.id for delivery in found if delivery] == names


def test_several_messages_go_to_their_own_sessions_in_order_and_each_at_its_time(bench: Bench) -> None:
    at = bench.clock() + timedelta(seconds=30)
    bench.queue.send(Message(session="b", id="b:1", body="{}"))
    bench.queue.send(
        Message(session="a", id="a:1", body='{"cluster": "éins"}'),
        Message(session="b", id="b:1", body="{}"),  # a duplicate
        Message(session="b", id="b:2", body="{}", at=at),
        Message(session="a", id="a:2", body="{}"),
    )
    assert bench.broker.counts("jobs") == QueueCounts(active=3, scheduled=1, dead_lettered=0)
    assert [m.draft.id for m in bench.broker.peek("jobs", session="a")] == ["a:1", "a:2"]
    assert [m.draft.id for m in bench.broker.peek("jobs", session="b")] == ["b:1", "b:2"]
    first = bench.broker.peek("jobs", session="a")[0].draft
    assert (first.body.decode(), first.content_type) == ('{"cluster": "éins"}', "application/json")


def test_more_messages_than_a_batch_holds_arrive_in_order(bench: Bench) -> None:
    names = [f"a:{number}" for number in range(12)]
    bench.queue.send(*(Message(session="a", id=name, body="x" * 60_000) for name in names))
    assert [stored.draft.id for stored in bench.stored()] == names


@pytest.mark.parametrize("position", [0, 1])
def test_a_message_that_is_too_large_is_refused_among_others_too(bench: Bench, position: int) -> None:
    messages = [Message(session="a", id="small", body="{}")]
    messages.insert(position, Message(session="a", id="large", body="x" * 262_145))
    with pytest.raises(TooLarge):
        bench.queue.send(*messages)
    bench.queue.send(Message(session="a", id="after", body="{}"))
    assert {stored.draft.id for stored in bench.stored()} <= {"small", "after"}


def test_many_threads_send_through_one_queue(bench: Bench) -> None:
    def send(number: int) -> None:
        bench.queue.send(Message(session=str(number % 5), id=str(number), body="{}"))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(send, range(100)))
    assert {stored.draft.id for stored in bench.stored()} == {str(number) for number in range(100)}


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (Message(session="a", id="x" * 129, body="{}"), InvalidManifest),
        (Message(session="a", id="1", body="x" * 262_145), TooLarge),
        (Message(session="a" * 100, id="b" * 100, body="x" * 262_000), TooLarge),
    ],
    ids=["a long id", "a large body", "a body that is too large with its properties"],
)
def test_a_message_over_the_limits_is_refused_for_good(
    bench: Bench, message: Message, kind: type[Terminal]
) -> None:
    with pytest.raises(kind):
        bench.queue.send(message)
    bench.queue.send(Message(session="a", id="after", body="{}"))
    assert [stored.draft.id for stored in bench.stored()] == ["after"]


def test_a_queue_that_is_not_there_yet_is_a_missing_dependency(bench: Bench) -> None:
    with pytest.raises(Dependency):
        bench.missing.send(Message(session="a", id="1", body="{}"))


def test_a_probe_of_a_queue_that_is_there_is_answered_and_of_another_one_is_not(bench: Bench) -> None:
    bench.queue.probe()
    with pytest.raises(Dependency):
        bench.missing.probe()


def test_a_link_that_the_service_has_closed_is_opened_again() -> None:
    broker = Broker(QUEUES, ManualClock())
    with (
        ServiceBusServer(broker, idle_seconds=0.2) as server,
        service_bus_client(connection_string=server.connection_string) as client,
    ):
        queue = ServiceBusQueue(client, "jobs")
        for number in range(2):
            queue.send(Message(session="a", id=str(number), body="{}"))
            time.sleep(0.4)
        assert broker.counts("jobs").active == 2


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_a_client_reconnects_to_a_service_that_has_restarted() -> None:
    broker = Broker(QUEUES, ManualClock())
    with ServiceBusServer(broker, key="c2VjcmV0") as server:
        client = service_bus_client(connection_string=server.connection_string)
        queue = ServiceBusQueue(client, "jobs")
        queue.send(Message(session="a", id="1", body="{}"))
    with pytest.raises(Unavailable):
        queue.send(Message(session="a", id="2", body="{}"))
    with ServiceBusServer(broker, key="c2VjcmV0", port=server.port), client:
        queue.send(Message(session="a", id="2", body="{}"))
    assert broker.counts("jobs").active == 2
    gc.collect()  # the client leaves the socket of a connection that was cut off to the collector


def test_a_probe_opens_a_link_and_sends_nothing() -> None:
    broker = Broker(QUEUES, ManualClock())
    with (
        ServiceBusServer(broker) as server,
        service_bus_client(connection_string=server.connection_string) as client,
    ):
        ServiceBusQueue(client, "jobs").probe()
        with pytest.raises(Dependency):
            ServiceBusQueue(client, "nowhere").probe()
    assert not broker.peek("jobs")
    with (
        service_bus_client(connection_string=server.connection_string) as client,
        pytest.raises(Unavailable),
    ):
        ServiceBusQueue(client, "jobs").probe()


def test_a_wrong_key_is_no_credential_and_does_not_show_in_the_error() -> None:
    broker = Broker(QUEUES, ManualClock())
    with (
        ServiceBusServer(broker, key="cmlnaHQ=") as server,
        service_bus_client(
            connection_string=server.connection_string.replace("cmlnaHQ=", "d3Jvbmc=")
        ) as client,
        pytest.raises(Unauthenticated) as caught,
    ):
        ServiceBusQueue(client, "jobs").send(Message(session="a", id="1", body="{}"))
    assert "d3Jvbmc" not in str(caught.value)


def test_a_client_needs_a_connection_string_or_an_identity() -> None:
    with pytest.raises(ValueError, match="namespace and a credential"):
        service_bus_client(namespace="fleet.servicebus.windows.net")
