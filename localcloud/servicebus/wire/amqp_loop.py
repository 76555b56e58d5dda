"""Sockets and one thread around the AMQP engine: bytes in, events to a handler, bytes out.

Everything of the handler runs on the loop's thread, except ``wake`` which any thread may call.
"""

from __future__ import annotations

import logging
import selectors
import socket
import threading
from typing import Any, Protocol

from proton import Collector, Condition, Connection, Event, ProtonException, Transport, symbol

log = logging.getLogger(__name__)
_READ_WRITE = selectors.EVENT_READ | selectors.EVENT_WRITE


class Handler(Protocol):
    """What the loop calls; the connection of an event is known by its ``Peer``."""

    def on_event(self, peer: Peer, event: Event) -> None:
        """Take one event of the engine."""
        ...

    def on_disconnect(self, peer: Peer) -> None:
        """Drop a peer whose socket is closed, cleanly or not."""
        ...

    def on_iteration(self) -> float | None:
        """Do what is due; return the seconds until it must be called again (None: when something happens)."""
        ...


class Peer:
    """One client: its socket and the state of the engine for it."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = sock
        self._collector = Collector()
        self.connection = Connection()
        self.connection.collect(self._collector)
        self._transport = Transport(Transport.SERVER)
        self._transport.sasl().allowed_mechs("ANONYMOUS")
        self._transport.bind(self.connection)

    def read(self) -> bool:
        """Read what has arrived; return whether there may be more."""
        try:
            while (room := self._transport.capacity()) > 0:
                data = self.sock.recv(room)
                if not data:
                    return False
                self._transport.push(data)
        except BlockingIOError:
            return True
        except (OSError, ProtonException):
            return False
        return bool(room == 0)

    def events(self, handler: Handler) -> None:
        """Hand every event to the handler; what it cannot digest ends the connection."""
        while (event := self._collector.peek()) is not None:
            try:
                handler.on_event(self, event)
            except Exception:
                log.exception("an AMQP event could not be handled")
                self.connection.condition = Condition(
                    "amqp:internal-error",
                    "the local Service Bus has failed",
                    {symbol("tracking-id"): "local"},
                )
                self.connection.close()
            self._collector.pop()

    def write(self) -> int | None:
        """Send what can be sent; return how many bytes wait for the socket, or None at the end."""
        try:
            while (pending := self._transport.pending()) > 0:
                sent = self.sock.send(self._transport.peek(pending))
                self._transport.pop(sent)
        except BlockingIOError:
            return int(pending)
        except (OSError, ProtonException):
            return None
        return 0 if pending == 0 else None


class Loop:
    """Listens at 127.0.0.1 and serves until closed; port 0 takes a free one."""

    def __init__(self, *, port: int = 0) -> None:
        self._listener = socket.create_server(("127.0.0.1", port), backlog=128)
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)
        self._wake_out.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._wake_out, selectors.EVENT_READ)
        self._peers: dict[int, Peer] = {}
        self._closing = False
        self._thread: threading.Thread | None = None

    def start(self, handler: Handler) -> None:
        """Serve on a thread of its own."""
        self._thread = threading.Thread(
            target=self._run, args=(handler,), daemon=True, name=f"servicebus-{self.port}"
        )
        self._thread.start()

    def wake(self) -> None:
        """Wake the loop up."""
        if threading.current_thread() is self._thread:
            return
        try:
            self._wake_in.send(b"!")
        except OSError:
            return  # full: it will wake anyway; closed: no thread is left to wake

    def close(self) -> None:
        """Drop every connection and stop."""
        self._closing = True
        self.wake()
        if self._thread is not None:
            self._thread.join(5)

    def _run(self, handler: Handler) -> None:
        while not self._closing:
            pause = self._turn(handler)
            for peer in tuple(self._peers.values()):
                self._flush(peer, handler)
            for key, mask in self._selector.select(pause):
                self._ready(key, mask, handler=handler)
        for peer in tuple(self._peers.values()):
            self._drop(peer, handler)
        for open_socket in (self._listener, self._wake_in, self._wake_out):
            open_socket.close()
        self._selector.close()

    def _turn(self, handler: Handler) -> float | None:
        try:
            return handler.on_iteration()
        except Exception:
            log.exception("an iteration of the Service Bus loop failed; the loop continues")
            return 1.0

    def _ready(self, key: selectors.SelectorKey, mask: int, *, handler: Handler) -> None:
        if key.fileobj is self._listener:
            self._accept()
        elif key.fileobj is self._wake_out:
            self._wake_out.recv(4096)
        elif mask & selectors.EVENT_READ:
            peer: Peer = key.data
            alive = peer.read()
            peer.events(handler)
            if not alive:
                peer.write()  # the answer to a clean close
                self._drop(peer, handler)

    def _accept(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except OSError:
            return  # the client has already disconnected
        peer = Peer(sock)
        self._peers[sock.fileno()] = peer
        self._selector.register(sock, selectors.EVENT_READ, peer)

    def _flush(self, peer: Peer, handler: Handler) -> None:
        waiting = peer.write()
        peer.events(handler)
        if waiting is None:
            self._drop(peer, handler)
            return
        interest: Any = _READ_WRITE if waiting else selectors.EVENT_READ
        if self._selector.get_key(peer.sock).events != interest:
            self._selector.modify(peer.sock, interest, peer)

    def _drop(self, peer: Peer, handler: Handler) -> None:
        self._selector.unregister(peer.sock)
        del self._peers[peer.sock.fileno()]
        peer.sock.close()
        handler.on_disconnect(peer)
