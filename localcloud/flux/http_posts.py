"""Sends the events of Flux over HTTP, one after the other, in a thread of its own."""

from __future__ import annotations

import logging
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

log = logging.getLogger(__name__)

_SECONDS = 10.0
_ATTEMPTS = 4
"""How often a request is sent that the network or the receiver fails (``internal/notifier/client.go``)."""


class HttpPosts:
    """Posts requests to addresses of this machine; ``ca`` is the file with the authority to trust."""

    def __init__(self, ca: Path | None = None) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="flux-events")
        trust = urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=ca))
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), trust)

    def __call__(self, url: str, headers: Mapping[str, str], body: bytes) -> None:
        """Send a request soon."""
        self._thread.submit(self._send, url, headers, body)

    def close(self) -> None:
        """Wait for what is being sent, and send nothing more."""
        self._thread.shutdown(cancel_futures=True)

    def _send(self, url: str, headers: Mapping[str, str], body: bytes) -> None:
        for _ in range(_ATTEMPTS):
            request = urllib.request.Request(url, body, dict(headers), method="POST")  # noqa: S310
            try:
                with self._opener.open(request, timeout=_SECONDS):
                    return
            except urllib.error.HTTPError as error:
                log.info("%s answered an event with %d", url, error.code)
                if error.code < 500:
                    return
            except OSError as error:
                log.info("%s took no event: %s", url, error)
