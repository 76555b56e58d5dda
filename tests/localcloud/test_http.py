"""The HTTP server of the local cloud leaves no socket open, whatever its clients do."""

from __future__ import annotations

import gc
import socket
import ssl
import struct
import sys
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from http.client import HTTPConnection, HTTPSConnection
from typing import TYPE_CHECKING, Any

import pytest

from localcloud.common.certificates import Authority
from localcloud.common.http_server import HttpServer, HttpServers
from tests.support.waiting import until

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER, on, zero seconds


def _ok(_environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]


@pytest.mark.lives
def test_a_client_that_disconnects_before_the_tls_handshake_leaves_no_socket(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    unraisable: list[Any] = []
    gc.collect()
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    with HttpServer(_ok, tls=Authority().server_context()) as server:
        address = "127.0.0.1", server.port
        with socket.create_connection(address):  # the server waits for this handshake meanwhile
            client = socket.create_connection(address)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
            client.close()
        errors: list[str] = []

        def both_are_lost() -> bool:
            errors.append(capfd.readouterr().err)
            return "".join(errors).count("during handshake") == 2

        until(both_are_lost)
    gc.collect()
    assert [str(document.exc_value) for document in unraisable] == []


def test_a_server_that_stops_listening_refuses_connections_at_once() -> None:
    with HttpServer(_ok) as server:
        socket.create_connection(("127.0.0.1", server.port)).close()
        server.stop_listening()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", server.port))


def _named(name: bytes) -> WSGIApplication:
    def app(_environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        start_response("200 OK", [("Content-Length", str(len(name)))])
        return [name]

    return app


def _get(port: int, tls: ssl.SSLContext | None = None) -> bytes:
    opened = HTTPSConnection("127.0.0.1", port, context=tls, timeout=30) if tls else None
    with closing(opened or HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        connection.request("GET", "/")
        return connection.getresponse().read()


def test_servers_that_share_threads_answer_at_their_own_ports_and_need_no_more_threads() -> None:
    with HttpServers(threads=2, most=2) as servers:
        before = threading.active_count()
        served = [servers.serve(_named(f"app {number}".encode())) for number in range(50)]
        assert [_get(server.port) for server in served] == [f"app {number}".encode() for number in range(50)]
        assert threading.active_count() <= before


def test_a_closed_server_refuses_and_cuts_off_its_clients_and_its_neighbours_serve_on() -> None:
    with HttpServers() as servers:
        first, second = servers.serve(_named(b"first")), servers.serve(_named(b"second"))
        with closing(HTTPConnection("127.0.0.1", first.port, timeout=30)) as kept:
            kept.request("GET", "/")
            assert kept.getresponse().read() == b"first"
            first.close()
            assert kept.sock.recv(1) == b""
        with pytest.raises(ConnectionRefusedError):
            _get(first.port)
        assert _get(second.port) == b"second"


def test_clients_that_do_not_begin_their_handshake_hold_up_nobody() -> None:
    authority = Authority()
    with HttpServer(_ok, tls=authority.server_context(), threads=1) as server, ExitStack() as stack:
        for _ in range(5):
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
        trust = ssl.create_default_context(cadata=authority.pem.decode())
        assert _get(server.port, trust) == b"ok"


def test_a_client_without_tls_gets_a_bad_request() -> None:
    with (
        HttpServer(_ok, tls=Authority().server_context()) as server,
        closing(HTTPConnection("127.0.0.1", server.port, timeout=30)) as connection,
    ):
        connection.request("GET", "/")
        assert connection.getresponse().status == 400


def test_more_requests_than_threads_start_more_threads_until_the_most() -> None:
    met = threading.Barrier(4)

    def wait_for_three_others(_environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        met.wait(5)
        return _ok(_environ, start_response)

    with HttpServers(threads=1, most=4) as servers, ThreadPoolExecutor(4) as pool:
        served = servers.serve(wait_for_three_others)
        assert list(pool.map(_get, [served.port] * 4)) == [b"ok"] * 4
