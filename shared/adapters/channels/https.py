"""One POST over HTTPS, to an address that is a secret: no error names more of it than the status."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

import requests
from urllib3.exceptions import HTTPError

from shared.jobs.failures.errors import (
    Dependency,
    ReconcileError,
    Throttled,
    TooLarge,
    Unauthenticated,
    Unavailable,
    Unexpected,
)
from shared.jobs.failures.retry import retry_after

CONNECT_SECONDS, READ_SECONDS = 5.0, 10.0
_REASON_BYTES = 100


def post(address: str, body: bytes, headers: Mapping[str, str] | None = None) -> None:
    """Send JSON; any answer of the 2xx is a success. Raise ReconcileError by the status.

    A redirect is not followed: it would lead the app to a host that nobody configured.
    """
    try:
        parts = urlsplit(address)
        usable = parts.scheme == "https" and bool(parts.hostname)
    except ValueError:
        usable = False
    if not usable:
        raise Dependency("the address of the channel is not an https:// URL")
    sent = {"Content-Type": "application/json; charset=utf-8", "User-Agent": "roadstead", **(headers or {})}
    try:
        with requests.post(
            address,
            data=body,
            headers=sent,
            timeout=(CONNECT_SECONDS, READ_SECONDS),
            allow_redirects=False,
            stream=True,
        ) as response:
            if not 200 <= response.status_code < 300:
                raise _refused(response)
    except requests.RequestException as error:
        # Not chained: the library's text has the path of the address.
        raise Unavailable(f"the channel does not answer: {type(error).__name__}") from None


def _refused(response: requests.Response) -> ReconcileError:
    status = response.status_code
    described = f"the channel answers with the status {status}"
    reason = _reason(response)
    described += f": {reason}" if reason else ""
    wait = retry_after(dict(response.headers))
    if status == 429:
        return Throttled(described, retry_after=wait)
    if status >= 500 or status == 408:
        return Unavailable(described, retry_after=wait)
    if status in (401, 403):
        return Unauthenticated(described)
    if status in (404, 410):
        return Dependency(described)
    if status == 413:
        return TooLarge(described)
    return Unexpected(f"{described}; a redirect is not followed" if 300 <= status < 400 else described)


def _reason(response: requests.Response) -> str:
    """Return a short code that the service gives as plain text, such as Slack's "no_service", or ""."""
    try:
        text = response.raw.read(_REASON_BYTES + 1, decode_content=True).decode(errors="replace")
    except (OSError, ValueError, HTTPError):
        return ""
    word = text.strip() if len(text) <= _REASON_BYTES else ""  # what is cut may end with a part of a secret
    return word if word.replace("_", "").isalnum() and word.isascii() else ""
