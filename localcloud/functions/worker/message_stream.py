"""Messages over a socket between host and worker: each is preceded by its length in four bytes.

In Azure the same messages go through gRPC.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from typing import Any

from localcloud.functions.worker.rpc_messages import protos

_LENGTH = struct.Struct("!I")


class MessageStream:
    """One end; any thread may send, one receives. Sending raises OSError when the other end has ended."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._sending = threading.Lock()

    def send(self, **content: Any) -> None:
        """Send a message whose one field is given by name."""
        data = protos.StreamingMessage(**content).SerializeToString()
        with self._sending:
            self._connection.sendall(_LENGTH.pack(len(data)) + data)

    def received(self) -> Iterator[Any]:
        """Yield each message, until the other end has ended."""
        with self._connection.makefile("rb") as stream:
            while len(head := stream.read(_LENGTH.size)) == _LENGTH.size:
                yield protos.StreamingMessage.FromString(stream.read(*_LENGTH.unpack(head)))
