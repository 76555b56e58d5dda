"""What a service says of when to come back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

_SECONDS = re.compile(r"[0-9]+(\.[0-9]+)?")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of an answer's ``Retry-After``; None when there is none, or it cannot be read.

    It may be a number or a date (RFC 9110, 10.2.3); a date counts from the answer's own ``Date``, so that
    our clock does not matter. Engine and buckets cap it at an hour.
    """
    found = {name.lower(): value.strip() for name, value in headers.items()}
    wait = found.get("retry-after", "")
    if _SECONDS.fullmatch(wait):
        return float(wait)
    try:
        pause = parsedate_to_datetime(wait) - parsedate_to_datetime(found.get("date", ""))
    except (ValueError, TypeError):  # TypeError: one of the two names no time zone
        return None
    return max(0.0, pause.total_seconds())
