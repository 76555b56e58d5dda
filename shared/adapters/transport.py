"""The HTTP transport of client libraries, and connections that look at the address reached."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import requests
from azure.core.credentials import TokenCredential
from azure.core.exceptions import AzureError
from azure.core.pipeline.transport import RequestsTransport
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPSConnection

from shared.cluster.failures.errors import Unauthenticated

CONNECTIONS = 64
"""How many connections to a service stay open: more than the sessions and reads of an instance at a time."""

TOKEN_SECONDS = 5
"""Time limit on connecting to what issues tokens, and on its answer, at each of three attempts."""


def app_credential() -> TokenCredential:
    """Return the identity of the app, which issues a token or an error within a call's time.

    By itself, the library waits five minutes for an answer: longer than a lease, and than a function may run.
    """
    from azure.identity import DefaultAzureCredential

    return DefaultAzureCredential(
        connection_timeout=TOKEN_SECONDS,
        read_timeout=TOKEN_SECONDS,
        retry_total=2,
        retry_backoff_factor=0.4,
    )


def entra_token(credential: TokenCredential, scope: str, service: str) -> str:
    """Return a token of the app for a service; raise Unauthenticated, without parts of an answer."""
    try:
        return credential.get_token(scope).token
    except AzureError as error:
        # Not chained: the library's text may have parts of an answer.
        raise Unauthenticated(f"the app got no token for {service}: {type(error).__name__}") from None


class _CountingAdapter(HTTPAdapter):
    """Connections that report each request, before they send it, by its method and its address."""

    def __init__(self, sends: Callable[[str, str], None] | None) -> None:
        super().__init__(pool_maxsize=CONNECTIONS)
        self._sends = sends

    def send(self, request: requests.PreparedRequest, *given: Any, **named: Any) -> requests.Response:
        """Send a request."""
        if self._sends is not None:
            self._sends(request.method or "", request.url or "")
        return super().send(request, *given, **named)


def pooled_session(url: str, sends: Callable[[str, str], None] | None = None) -> requests.Session:
    """Return a session for a service: it keeps its connections, and reads the environment once.

    By itself, requests keeps ten connections, and reads the environment's proxies and certificates at each
    call: that is a sixth of what a call to a table costs. Safe to share between threads. ``sends`` is called
    with the method and the address of each request.
    """
    session = requests.Session()
    found = session.merge_environment_settings(url, {}, False, None, None)
    session.trust_env = False
    session.proxies, session.verify = found["proxies"], found["verify"]
    for scheme in ("http://", "https://"):
        session.mount(scheme, _CountingAdapter(sends))
    return session


def pooled_transport(
    url: str,
    *,
    connect_seconds: float,
    read_seconds: float,
    sends: Callable[[str, str], None] | None = None,
) -> RequestsTransport:
    """Return the transport for a service, over such a session; ``sends`` is called with each request."""
    session = pooled_session(url, sends)
    return RequestsTransport(
        session=session,
        connection_verify=session.verify,
        connection_timeout=connect_seconds,
        read_timeout=read_seconds,
    )


# Connections that look at the address that they have reached, before anything is sent there.

Reached = Callable[[socket.socket], None]
"""Looks at a connection before the TLS handshake; raises an error to leave the address alone."""


def looking(reached: Reached) -> type[HTTPSConnection]:
    """Return the class of HTTPS connections that look before they send."""

    class CheckedConnection(HTTPSConnection):
        def _new_conn(self) -> socket.socket:
            # By the address that was reached: a name may lead elsewhere when it is asked again.
            opened = super()._new_conn()
            try:
                reached(opened)
            except BaseException:
                opened.close()
                raise
            return opened

    return CheckedConnection


def address_of(opened: socket.socket) -> str:
    """Return the address at the other end of a connection."""
    return str(opened.getpeername()[0])
