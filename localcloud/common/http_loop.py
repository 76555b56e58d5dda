"""Cheroot for many ports at once: one loop waits for every port and every idle connection of several servers.

A TLS handshake is a thread's work, as a request is, so that a client that is slow to begin holds up nobody.
"""

from __future__ import annotations

import math
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from selectors import EVENT_READ
from typing import TYPE_CHECKING, Any

from cheroot.connections import ConnectionManager
from cheroot.server import HTTPConnection
from cheroot.wsgi import Gateway_10, Server

from localcloud.common.tls_sockets import Tls

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

EXPIRY_SECONDS = 1.0
"""How often the loop looks for connections that are idle for too long; it sleeps until something arrives."""
_NO_TLS = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


@dataclass(eq=False)
class Listener:
    """A port and what answers there."""

    socket: socket.socket
    app: WSGIApplication
    port: int
    last_used: float = math.inf
    """As of a connection; a listener never expires."""

    def close(self) -> None:
        """Refuse new connections."""
        self.socket.close()


class LoopConnection(HTTPConnection):
    """A connection that its server knows until it is closed: cheroot loses one that it serves as it stops."""

    listener: Listener

    def __init__(self, server: Any, *given: Any) -> None:
        super().__init__(server, *given)
        self._shaken = not isinstance(self.socket, ssl.SSLSocket)
        self._open: set[LoopConnection] = server.open_connections
        self._open.add(self)

    def communicate(self) -> bool:
        """Do the handshake, or answer a request; return whether the connection stays open."""
        if self._shaken:
            return bool(super().communicate())  # type: ignore[no-untyped-call]
        try:
            self.socket.do_handshake()
            self.ssl_env = self.server.ssl_adapter.get_environ(self.socket)
        except OSError as error:
            if getattr(error, "reason", "") == "HTTP_REQUEST":
                with suppress(OSError):
                    socket.socket.sendall(self.socket, _NO_TLS)
            self.server.error_log(f"a client was lost during handshake: {error}")
            return False
        self._shaken = True
        return True

    def cut(self) -> None:
        """End both directions, which whoever reads from it or waits for it sees."""
        with suppress(OSError):
            socket.socket.shutdown(self.socket, socket.SHUT_RDWR)

    def close(self) -> None:
        """Close it, and what it could not write: cheroot leaves that to its destructor, which complains."""
        super().close()
        with suppress(OSError):
            self.wfile.close()
        self._open.discard(self)


class _Waker:
    """What ends the wait of the loop at once."""

    last_used = math.inf

    def __init__(self) -> None:
        self._send, self.socket = socket.socketpair()

    def wake(self) -> None:
        self._send.send(b"x")

    def drain(self) -> None:
        self.socket.recv(1)

    def close(self) -> None:
        self._send.close()
        self.socket.close()


class _Loop(ConnectionManager):
    """Cheroot's loop over idle connections, for any number of ports."""

    _selector: Any  # the stub lacks these
    _expire: Callable[..., None]
    _from_server_socket: Callable[[socket.socket], LoopConnection | None]

    def __init__(self, server: Any) -> None:
        super().__init__(server)
        self._selector.unregister(server.socket.fileno())
        server.socket.close()
        self._waker = _Waker()
        self._selector.register(self._waker.socket.fileno(), EVENT_READ, self._waker)

    def listen(self, listener: Listener) -> None:
        """Accept connections to a port from now on."""
        self._selector.register(listener.socket.fileno(), EVENT_READ, listener)

    def ignore(self, listener: Listener) -> None:
        """Refuse connections to a port from now on."""
        with suppress(KeyError, ValueError):
            self._selector.unregister(listener.socket.fileno())
        listener.close()

    def stop(self) -> None:
        """End the loop."""
        self._stop_requested = True
        self._waker.wake()
        super().stop()

    def _run(self, expiration_interval: float) -> None:
        expired = time.time()
        while not self._stop_requested:
            for number, ready in self._selector.select(timeout=expiration_interval):
                if isinstance(ready, _Waker):
                    ready.drain()
                elif isinstance(ready, Listener):
                    self._accept(ready)
                else:
                    self._selector.unregister(number)
                    self.server.process_conn(ready)
            now = time.time()
            if now - expired > expiration_interval:
                self._expire(threshold=now - self.server.timeout)
                expired = now

    def _accept(self, listener: Listener) -> None:
        connection = self._from_server_socket(listener.socket)
        if connection is not None:
            connection.listener = listener
            self.put(connection)


class _Gateway(Gateway_10):
    """Cheroot's WSGI, for requests at many ports."""

    def get_environ(self) -> dict[str, Any]:  # type: ignore[override]  # the stub returns None
        """Add the application that answers at the request's port."""
        listener: Listener = self.req.conn.listener
        environ: dict[str, Any] = super().get_environ()  # type: ignore[no-untyped-call]
        return {**environ, "SERVER_PORT": str(listener.port), "roadstead.app": listener.app}


def _answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    answer: Iterable[bytes] = environ["roadstead.app"](environ, start_response)
    return answer


class LoopServer(Server):
    """Cheroot's server on many ports; it starts more threads as it needs them, at most ``most``."""

    ConnectionClass = LoopConnection
    keep_alive_conn_limit = None  # type: ignore[assignment]  # no limit, by its docstring
    expiration_interval = EXPIRY_SECONDS

    def __init__(self, *, threads: int, most: int, tls: ssl.SSLContext | None) -> None:
        self.open_connections: set[LoopConnection] = set()
        super().__init__(("127.0.0.1", 0), _answer, numthreads=threads, max=most, shutdown_timeout=1)
        self.gateway = _Gateway
        self.ssl_adapter = None if tls is None else Tls(tls)
        self._growing = threading.Lock()

    def prepare(self) -> None:
        """Start the threads."""
        super().prepare()
        self._connections.close()
        self._connections: _Loop = _Loop(self)

    def listen(self, app: WSGIApplication, port: int) -> Listener:
        """Answer with an application at a port; 0 takes a free one."""
        listening = socket.create_server(("127.0.0.1", port), backlog=128)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # its connections have it too
        listening.setblocking(False)
        listener = Listener(listening, app, listening.getsockname()[1])
        self._connections.listen(listener)
        return listener

    def ignore(self, listener: Listener) -> None:
        """Refuse new connections to a port."""
        self._connections.ignore(listener)

    def process_conn(self, conn: LoopConnection) -> None:
        """Let a thread serve a connection, a new one if none is idle."""
        pool = self.requests
        with self._growing:
            if pool.idle <= pool._queue.qsize() and len(pool._threads) < pool.max:
                pool._threads.append(pool._spawn_worker())
        super().process_conn(conn)
