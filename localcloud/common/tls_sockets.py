"""The server's end of TLS connections, for cheroot: keys stay in memory, and a handshake is done later."""

from __future__ import annotations

import errno
import socket
import ssl
from typing import Any

from cheroot.errors import FatalSSLAlert
from cheroot.ssl.builtin import BuiltinSSLAdapter


class TlsSocket(ssl.SSLSocket):
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


class Tls(BuiltinSSLAdapter):
    """Cheroot's TLS with a context built in memory, so that keys never reach the disk."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.certificate = self.private_key = self.certificate_chain = ""
        self.private_key_password = None
        self.ciphers = None
        self._server_env: dict[str, str] = {}
        self.context = context
        context.sslsocket_class = TlsSocket

    def wrap(self, sock: socket.socket) -> tuple[ssl.SSLSocket, dict[str, Any]]:
        """Return the socket before its handshake, and nothing about the client yet."""
        try:
            return self.context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False), {}
        except OSError as error:
            raise FatalSSLAlert(*error.args) from error

    def get_environ(self, sock: ssl.SSLSocket) -> dict[str, Any]:  # type: ignore[override]  # stub lacks it
        """Add the socket to each request's environment: a stream can see that its client hung up."""
        return {**super().get_environ(sock), "roadstead.socket": sock}  # type: ignore[no-untyped-call]
