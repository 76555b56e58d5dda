"""Connections that look at the address that they have reached, before anything is sent there."""

from __future__ import annotations

import socket
from collections.abc import Callable

from urllib3.connection import HTTPSConnection

Reached = Callable[[socket.socket], None]
"""Looks at a connection before the TLS handshake; raises an error to leave the address alone."""


def looking(reached: Reached) -> type[HTTPSConnection]:
    """Return the class of HTTPS connections that look before they send."""

    class Looking(HTTPSConnection):
        def _new_conn(self) -> socket.socket:
            # By the address that was reached: a name may lead elsewhere when it is asked again.
            opened = super()._new_conn()
            try:
                reached(opened)
            except BaseException:
                opened.close()
                raise
            return opened

    return Looking


def address_of(opened: socket.socket) -> str:
    """Return the address at the other end of a connection."""
    return str(opened.getpeername()[0])
