"""What adapters share that read JSON of a service: the errors of another form, and checked values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from datetime import UTC, datetime
from functools import cache
from typing import Any, TypeVar

import requests
from pydantic import TypeAdapter
from urllib3.exceptions import HTTPError

UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, RecursionError, OverflowError)
"""What reading an answer of another form raises; a ValidationError is a ValueError."""
T = TypeVar("T")
_CHUNK = 1 << 16


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
