"""Receivers of notifications on sockets: HTTPS with an authority of its own, and SMTP."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.client import parse_headers
from typing import TYPE_CHECKING, Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from werkzeug.wrappers import Request, Response

from localcloud.common.certificates import Authority
from localcloud.common.http_server import HttpServer

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


@dataclass
class Inbox:
    """What a receiver of HTTPS got, and the answers that it gives next, as (status, headers, body)."""

    url: str = ""
    got: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    answers: list[tuple[int, dict[str, str], str | bytes]] = field(default_factory=list)
    default: tuple[int, dict[str, str], str | bytes] = (200, {}, "ok")

    def app(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        request = Request(environ)
        headers = {key.lower(): value for key, value in request.headers.items()}
        self.got.append((request.full_path.rstrip("?"), headers, request.get_data()))
        status, more, body = self.answers.pop(0) if self.answers else self.default
        return Response(body, status, headers=more)(environ, start_response)


@contextmanager
def https_inbox(authority: Authority) -> Iterator[Inbox]:
    """Serve a receiver over HTTPS at a loopback address."""
    inbox = Inbox()
    with HttpServer(inbox.app, tls=authority.server_context()) as server:
        inbox.url = server.url
        yield inbox


@dataclass
class Mailbox:
    """What a mail server got; ``refuse`` is an answer instead of taking the next message."""

    port: int = 0
    got: list[EmailMessage] = field(default_factory=list)
    recipients: list[str] = field(default_factory=list)
    refuse: str = ""

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: ARG002
        if self.refuse:
            return self.refuse
        content = envelope.original_content or b""
        message = message_from_bytes(content, policy=policy.default)
        assert isinstance(message, EmailMessage)
        self.got.append(message)
        self.recipients += envelope.rcpt_tos
        return "250 taken"


def _signed_in(server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
    right = isinstance(data, LoginPassword) and data.password == b"mail-pass-9d41c7"
    return AuthResult(success=right, handled=False)  # the server says so: 535 to a wrong one (RFC 4954, 6)


@contextmanager
def mail_server(authority: Authority | None = None) -> Iterator[Mailbox]:
    """Serve SMTP at a loopback address; with an authority it asks for STARTTLS and a password."""
    box = Mailbox()
    more: dict[str, Any] = {}
    if authority is not None:
        more = {"tls_context": authority.server_context(), "require_starttls": True}
        more |= {"authenticator": _signed_in, "auth_required": True}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    controller = Controller(box, hostname="127.0.0.1", port=port, loop=asyncio.new_event_loop(), **more)
    controller.start()
    box.port = port
    try:
        yield box
    finally:
        controller.stop()


@contextmanager
def silent_server(*, closes: bool) -> Iterator[str]:
    """Accept connections over TCP and never answer, or close each at once; yield an https:// address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        kept: list[socket.socket] = []

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    connection.close() if closes else kept.append(connection)

        threading.Thread(target=accept, daemon=True).start()
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"
        for connection in kept:
            connection.close()


def _read_request(connection: socket.socket) -> None:
    # A close with a body left unread resets the connection: the client may lose the answer (RFC 9112, 9.6).
    with connection.makefile("rb") as stream:
        stream.readline()
        stream.read(int(parse_headers(stream).get("Content-Length", "0")))


@contextmanager
def answering(answer: bytes, authority: Authority | None = None) -> Iterator[str]:
    """Give each request these bytes, and close its connection; yield the address, with TLS or without."""
    context = authority.server_context() if authority else None
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    plain = listener.accept()[0]
                    with context.wrap_socket(plain, server_side=True) if context else plain as connection:
                        _read_request(connection)
                        connection.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        yield f"{'https' if context else 'http'}://127.0.0.1:{listener.getsockname()[1]}"


@contextmanager
def slow_server(length: int) -> Iterator[str]:
    """Answer each request with so many bytes of JSON, one every 50 ms; yield the address."""
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ended = threading.Event()

        def serve() -> None:
            with suppress(OSError), listener.accept()[0] as connection:
                _read_request(connection)
                connection.sendall(head.encode())
                while not ended.wait(0.05):
                    connection.sendall(b" ")

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        ended.set()
