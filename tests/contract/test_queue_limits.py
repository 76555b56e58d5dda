"""The real client of Service Bus over TLS: what it waits for, it waits for within a limit."""

from __future__ import annotations

import gc
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.servicebus import ServiceBusClient, TransportType

from localcloud.common.certificates import Authority
from localcloud.common.clock import ManualClock
from localcloud.servicebus.wire.servicebus_server import ServiceBusServer
from localcloud.servicebus.world.broker import Broker, QueueConfig
from shared.adapters import servicebus
from shared.adapters.servicebus import ServiceBusQueue, client_options
from shared.cluster.failures.errors import Unavailable
from shared.ports import Message

KEY = "c2VjcmV0"
MESSAGE = Message(session="a", id="1", body="{}")


@contextmanager
def listening(answer: Callable[[socket.socket], None]) -> Iterator[int]:
    """Accept connections, each answered in a thread; yield the port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        kept: list[socket.socket] = []

        def accept() -> None:
            with suppress(OSError):
                while True:
                    kept.append(listener.accept()[0])
                    threading.Thread(target=answer, args=(kept[-1],), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]
        for connection in kept:
            connection.close()


@contextmanager
def queue_at(port: int, authority: Authority) -> Iterator[ServiceBusQueue]:
    """Yield a queue over TLS at a port of this machine, which has no public certificate."""
    options = client_options()
    options["ssl_context"].load_verify_locations(cadata=authority.pem.decode())
    place: dict[str, Any] = {
        "custom_endpoint_address": f"sb://127.0.0.1:{port}",
        "transport_type": TransportType.Amqp,
    }
    credential = AzureNamedKeyCredential("RootManageSharedAccessKey", KEY)
    with ServiceBusClient("127.0.0.1", credential, **place, **options) as client:
        yield ServiceBusQueue(client, "jobs")


def passing_on(authority: Authority, port: int) -> Callable[[socket.socket], None]:
    """Return what ends TLS in front of a service without it."""
    context = authority.server_context()

    def pump(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)

    def answer(connection: socket.socket) -> None:
        with (
            suppress(OSError),
            context.wrap_socket(connection, server_side=True) as outside,
            socket.create_connection(("127.0.0.1", port)) as inside,
        ):
            back = threading.Thread(target=pump, args=(inside, outside), daemon=True)
            back.start()
            pump(outside, inside)

    return answer


def test_messages_are_sent_over_tls_and_the_link_is_opened_again(authority: tuple[Authority, Path]) -> None:
    broker = Broker([QueueConfig("jobs")], ManualClock())
    with (
        ServiceBusServer(broker, key=KEY, idle_seconds=0.2) as server,
        listening(passing_on(authority[0], server.port)) as port,
        queue_at(port, authority[0]) as queue,
    ):
        for number in range(2):
            queue.send(Message(session="a", id=str(number), body="{}"))
            time.sleep(0.4)
        assert broker.counts("jobs").active == 2


@pytest.mark.lives
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.parametrize("handshake", [False, True], ids=["no TLS", "TLS and no frame"])
def test_a_service_that_takes_a_connection_and_never_answers_is_unavailable(
    handshake: bool, authority: tuple[Authority, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servicebus, "OPENING_SECONDS", 0.3)
    context = authority[0].server_context()
    ended = threading.Event()

    def answer(connection: socket.socket) -> None:
        with (
            suppress(OSError),
            context.wrap_socket(connection, server_side=True) if handshake else connection,
        ):
            ended.wait(60)

    with ThreadPoolExecutor(1) as pool, listening(answer) as port, queue_at(port, authority[0]) as queue:
        try:
            assert type(pool.submit(queue.send, MESSAGE).exception(timeout=20)) is Unavailable
        finally:
            ended.set()
    gc.collect()  # the client leaves the socket of a connection that was not opened to the collector


def test_a_send_waits_for_others_no_longer_than_it_may_take_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servicebus, "SEND_SECONDS", 0.2)
    begun, over = threading.Event(), threading.Event()

    class Sender:
        def send_messages(self, _: Any, *, timeout: float) -> None:
            assert timeout == 0.2
            begun.set()
            over.wait(60)

    class Client:
        def get_queue_sender(self, name: str) -> Sender:
            assert name == "jobs"
            return Sender()

    queue = ServiceBusQueue(cast(ServiceBusClient, Client()), "jobs")
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(queue.send, MESSAGE)
        assert begun.wait(20)
        second = pool.submit(queue.send, MESSAGE)
        try:
            assert isinstance(second.exception(timeout=20), Unavailable)
        finally:
            over.set()
        assert first.exception(timeout=20) is None
    queue.send(MESSAGE)
