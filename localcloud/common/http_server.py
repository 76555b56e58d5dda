"""The one HTTP server of the local cloud: cheroot, HTTP/1.1 with keep-alive, optional TLS.

A stand-in gives a WSGI application; ``HttpServer`` runs it on threads at a loopback port until closed.
"""

from __future__ import annotations

import errno
import json
import ssl
import threading
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from cheroot.server import HTTPConnection
from cheroot.ssl.builtin import BuiltinSSLAdapter
from cheroot.wsgi import Server
from werkzeug.wrappers import Response

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


class _TlsSocket(ssl.SSLSocket):
    """A server's end of a TLS connection that closes when its client disconnects before the handshake.

    ``SSLContext.wrap_socket`` asks for the peer first, and leaves a socket without one open.
    """

    def getpeername(self) -> Any:
        """Return the client's address, or close the socket and raise ConnectionResetError."""
        try:
            return super().getpeername()
        except OSError as error:
            self.close()
            raise ConnectionResetError(errno.ECONNRESET, "the client disconnected") from error


class _Tls(BuiltinSSLAdapter):
    """Cheroot's TLS with a context built in memory, so that keys never reach the disk."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.certificate = self.private_key = self.certificate_chain = ""
        self.private_key_password = None
        self.ciphers = None
        self._server_env: dict[str, str] = {}
        self.context = context
        context.sslsocket_class = _TlsSocket

    def get_environ(self, sock: ssl.SSLSocket) -> dict[str, Any]:  # type: ignore[override]  # stub lacks it
        """Add the socket to each request's environment: a stream can see that its client hung up."""
        return {**super().get_environ(sock), "roadstead.socket": sock}  # type: ignore[no-untyped-call]


class _Connection(HTTPConnection):
    """A connection that its server knows until it is closed: cheroot loses one that it serves as it stops."""

    def __init__(self, server: Any, *given: Any) -> None:
        super().__init__(server, *given)
        self._open: set[_Connection] = server.open_connections
        self._open.add(self)

    def close(self) -> None:
        """Close it, and what it could not write: cheroot leaves that to its destructor, which complains."""
        super().close()
        with suppress(OSError):
            self.wfile.close()
        self._open.discard(self)


class _Server(Server):
    """Cheroot's server, with the connections that are open."""

    ConnectionClass = _Connection

    def __init__(self, *given: Any, **named: Any) -> None:
        self.open_connections: set[_Connection] = set()
        super().__init__(*given, **named)


class HttpServer:
    """Serves a WSGI application at 127.0.0.1; port 0 takes a free one. A context manager.

    ``threads`` bounds the requests that run at one time; idle connections hold no thread.
    """

    def __init__(
        self,
        app: WSGIApplication,
        *,
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        threads: int = 8,
    ) -> None:
        self._server = _Server(
            ("127.0.0.1", port), app, numthreads=threads, request_queue_size=128, shutdown_timeout=1
        )
        if tls is not None:
            self._server.ssl_adapter = _Tls(tls)
        self._server.expiration_interval = 0.1  # seconds until close() is noticed
        self._server.prepare()
        self.port: int = self._server.bind_addr[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve, daemon=True, name=f"http-{self.port}")
        self._thread.start()

    def stop_listening(self) -> None:
        """Refuse new connections from now on.

        Cheroot listens until its threads have stopped; it resets a connection that comes in between.
        """
        if self._server.socket is not None:
            self._server.socket.close()

    def close(self) -> None:
        """Stop listening; requests under way may be cut off."""
        self.stop_listening()
        self._server.stop()
        self._thread.join(5)
        for connection in tuple(self._server.open_connections):
            with suppress(OSError):
                connection.close()

    def __enter__(self) -> HttpServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def json_response(
    status: int, body: Any, headers: Iterable[tuple[str, str]] | dict[str, str] | None = None
) -> Response:
    """Return a JSON reply."""
    return Response(
        json.dumps(body, separators=(",", ":")),
        status=status,
        headers=dict(headers or {}),
        content_type="application/json; charset=utf-8",
    )
