"""The HTTP transport of Azure's client libraries."""

from __future__ import annotations

import requests
from azure.core.pipeline.transport import RequestsTransport
from requests.adapters import HTTPAdapter

CONNECTIONS = 64
"""How many connections to a service stay open: more than the sessions and reads of an instance at a time."""


def pooled_transport(url: str, *, connect_seconds: float, read_seconds: float) -> RequestsTransport:
    """Return the transport for a service: it keeps its connections, and reads the environment once.

    By itself, requests keeps ten connections, and reads the environment's proxies and certificates at each
    call: that is a sixth of what a call to a table costs. Safe to share between threads.
    """
    session = requests.Session()
    found = session.merge_environment_settings(url, {}, False, None, None)
    session.trust_env = False
    session.proxies = found["proxies"]
    for scheme in ("http://", "https://"):
        session.mount(scheme, HTTPAdapter(pool_maxsize=CONNECTIONS))
    return RequestsTransport(
        session=session,
        connection_verify=found["verify"],
        connection_timeout=connect_seconds,
        read_timeout=read_seconds,
    )
