"""The HTTP server of the local cloud leaves no socket open, whatever its clients do."""

from __future__ import annotations

import gc
import socket
import struct
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytest

from localcloud.common.certificates import Authority
from localcloud.common.http_server import HttpServer
from tests.support.waiting import until

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER, on, zero seconds


def _ok(_environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]


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
    assert [str(one.exc_value) for one in unraisable] == []


def test_a_server_that_stops_listening_refuses_connections_at_once() -> None:
    with HttpServer(_ok) as server:
        socket.create_connection(("127.0.0.1", server.port)).close()
        server.stop_listening()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", server.port))
