"""What adapters share that read JSON of a service: the errors of another form, and checked values."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import fields
from datetime import UTC, datetime
from functools import cache
from typing import Any, TypeVar

import requests
from pydantic import TypeAdapter
from urllib3.exceptions import HTTPError

from shared.cluster.failures.errors import Unavailable

UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, RecursionError, OverflowError)
"""What reading an answer of another form raises; a ValidationError is a ValueError."""
T = TypeVar("T")
_CHUNK = 1 << 16
MOST_SECONDS = 60.0
"""For one answer: a server that sends a byte now and then keeps nobody. GitLab gives up after 60
(docs.gitlab.com/administration/operations/puma, "Change the worker timeout")."""
MOST_BYTES = 32 << 20
"""Bytes of an answer: all threads of a pull request, or a hundred notes, come in one."""


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def checked(value: T) -> T:
    """Return a dataclass whose fields have their types; raise ValidationError for others."""
    kind: Any = type(value)
    given = {known.name: getattr(value, known.name) for known in fields(kind)}
    result: T = _adapter(kind).validate_python(given)
    return result


def moment(text: Any) -> datetime:
    """Return a time of a service, in UTC; raise ValueError or TypeError for anything else."""
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError("a time without a zone")
    return at.astimezone(UTC)


def as_it_comes(response: requests.Response) -> Iterator[bytes]:
    """Yield the parts of an answer to a request with ``stream``; raise requests.ConnectionError.

    ``iter_content`` waits until a part is whole. So a server that sends a byte now and then keeps whoever
    counts bytes or seconds between parts.
    """
    try:
        while data := response.raw.read1(_CHUNK, decode_content=True):
            yield data
    except HTTPError as error:
        raise requests.ConnectionError(type(error).__name__) from None


def whole(response: requests.Response, name: str, until: float, most: int | None = None) -> bytes:
    """Return what is in the answer of a host, to a request with ``stream``, and close it.

    ``until`` is by ``time.monotonic``. Raise Unavailable for an answer that takes longer, or has more bytes
    than ``most``, by default ``MOST_BYTES``.
    """
    found, limit = bytearray(), most or MOST_BYTES
    with response:
        for chunk in as_it_comes(response):
            found += chunk
            if len(found) > limit:
                raise Unavailable(f"the answer of {name} is larger than {limit >> 20} MiB")
            if time.monotonic() > until:
                raise Unavailable(f"{name} takes longer than {MOST_SECONDS:g} seconds for an answer")
    return bytes(found)
