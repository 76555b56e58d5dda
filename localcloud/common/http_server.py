"""The one HTTP server of the local cloud: cheroot, HTTP/1.1 with keep-alive, optional TLS.

A stand-in gives a WSGI application; ``HttpServer`` runs it on threads at a loopback port until closed.
``HttpServers`` runs many of them, each at a port of its own, with the threads of one.
"""

from __future__ import annotations

import json
import re
import ssl
import threading
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from werkzeug.routing import Map
from werkzeug.wrappers import Request, Response

from localcloud.common.http_loop import Listener, LoopServer

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


class RunningServer:
    """An application that answers at a port of 127.0.0.1."""

    def __init__(self, server: LoopServer, listener: Listener) -> None:
        self._server, self._listener = server, listener
        self.port: int = listener.port
        self.url = f"{'https' if server.ssl_adapter else 'http'}://127.0.0.1:{self.port}"

    def stop_listening(self) -> None:
        """Refuse new connections from now on."""
        self._server.ignore(self._listener)

    def close(self) -> None:
        """Refuse new connections, and cut off the open ones."""
        self.stop_listening()
        for connection in tuple(self._server.open_connections):
            if connection.listener is self._listener:
                connection.cut()


class HttpServers:
    """WSGI applications at ports of 127.0.0.1 that share their threads; a context manager.

    ``threads`` run from the beginning, and at ``most`` so many when so many requests run at one time. Idle
    connections and idle servers hold none.
    """

    def __init__(self, *, tls: ssl.SSLContext | None = None, threads: int = 8, most: int = 8) -> None:
        self._server = LoopServer(threads=threads, most=most, tls=tls)
        self._server.prepare()
        self._thread = threading.Thread(target=self._server.serve, daemon=True, name="http")
        self._thread.start()

    def serve(self, app: WSGIApplication, *, port: int = 0) -> RunningServer:
        """Answer with an application at a port until it is closed; port 0 takes a free one."""
        return RunningServer(self._server, self._server.listen(app, port))

    def close(self) -> None:
        """Stop listening; requests under way may be cut off."""
        self._server.stop()
        self._thread.join(5)
        for connection in tuple(self._server.open_connections):
            with suppress(OSError):
                connection.close()

    def __enter__(self) -> HttpServers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class HttpServer:
    """Serves one WSGI application at 127.0.0.1; port 0 takes a free one. A context manager.

    ``threads`` bounds the requests that run at one time.
    """

    def __init__(
        self,
        app: WSGIApplication,
        *,
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        threads: int = 8,
    ) -> None:
        self._servers = HttpServers(tls=tls, threads=threads, most=threads)
        try:
            self._served = self._servers.serve(app, port=port)
        except OSError:
            self._servers.close()
            raise
        self.port, self.url = self._served.port, self._served.url

    def stop_listening(self) -> None:
        """Refuse new connections from now on."""
        self._served.stop_listening()

    def close(self) -> None:
        """Stop listening; requests under way may be cut off."""
        self.stop_listening()
        self._servers.close()

    def __enter__(self) -> HttpServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def matched(routes: Map, request: Request) -> tuple[Any, dict[str, Any]]:
    """Return the endpoint of a request, and the variables of its path, or raise werkzeug's HTTPException.

    The server has left slashes in them encoded (RFC 3986, 2.2).
    """
    endpoint, found = routes.bind_to_environ(request.environ).match()
    return endpoint, {
        name: re.sub("%2f", "/", value, flags=re.IGNORECASE) if isinstance(value, str) else value
        for name, value in found.items()
    }


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
