"""Parse and verify an event of Flux, from its headers and raw body alone.

A Provider of the type ``generic-hmac`` sends the header ``X-Signature`` with the HMAC of the raw body
(fluxcd.io/flux/components/notification/providers). The body is an event of ``fluxcd/pkg/apis/event/v1``
(fluxcd.io/flux/components/notification/events). The signature has no time of its own, so the one in the body
decides whether an event is too old.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from shared.fleet.manifests.base import shown

MAX_BODY_BYTES = 64 * 1024
OLDEST, NEWEST = timedelta(hours=1), timedelta(minutes=10)
"""How old an event may be, and how far in the future by the clock of its cluster."""
_TEXT, _NAME = 800, 253
MOST_NUMBERS = 90_000_000
"""Less than what the key of a stored event has room for."""


class _Object(BaseModel):
    model_config = ConfigDict(extra="ignore")

    kind: str = Field(min_length=1)
    name: str = Field(min_length=1)
    namespace: str = ""


class _Body(BaseModel):
    model_config = ConfigDict(extra="ignore", populate_by_name=True)

    involved: _Object = Field(alias="involvedObject")
    severity: str
    timestamp: AwareDatetime
    message: str
    reason: str = ""


@dataclass(frozen=True)
class FluxEvent:
    """What Flux reports of one of its objects; ``number`` is the same for the same body alone."""

    subject: str
    error: bool
    reason: str
    message: str
    at: datetime
    number: int

    @property
    def line(self) -> str:
        """The event as a line of the cluster's history."""
        return ": ".join(filter(None, (self.subject, self.reason, self.message)))


def is_signed(body: bytes, signature: str, key: str) -> bool:
    """Return whether a body has the signature of a key, in constant time; no key signs nothing."""
    expected = "sha256=" + hmac.new(key.encode(), body, hashlib.sha256).hexdigest()
    return bool(key) and hmac.compare_digest(expected.encode(), signature.encode(errors="replace"))


def read_event(body: bytes, now: datetime) -> FluxEvent | str:
    """Return the event in a body, or why it is none that counts."""
    try:
        read = _Body.model_validate_json(body)
    except (ValidationError, RecursionError):
        return "the body is no event of Flux"
    if not -NEWEST <= now - read.timestamp <= OLDEST:  # only of such a time UTC is sure to be a time, too
        return f"the event is of {read.timestamp:%Y-%m-%d %H:%M}, too long before or after now"
    digest = int.from_bytes(hashlib.sha256(body).digest()[:4], "big")
    place = "/".join(filter(None, (read.involved.namespace, read.involved.name)))
    return FluxEvent(
        subject=shown(f"{read.involved.kind} {place}", _NAME),
        error=read.severity == "error",
        reason=shown(read.reason, _NAME),
        message=shown(read.message, _TEXT),
        at=read.timestamp.astimezone(UTC),
        number=digest % MOST_NUMBERS,
    )
