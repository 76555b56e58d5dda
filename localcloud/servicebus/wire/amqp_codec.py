"""AMQP messages to and from the broker's values.

A message is a sequence of described sections; a batch is a message whose data sections are messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from proton import Data, Described, symbol, timestamp, uint, ulong

from localcloud.servicebus.world.broker_values import Draft, InvalidArgument, StoredMessage

HEADER, ANNOTATIONS, PROPERTIES, APPLICATION, DATA = 0x70, 0x72, 0x73, 0x74, 0x75
SYSTEM = (
    "message-id",
    "user-id",
    "to",
    "subject",
    "reply-to",
    "correlation-id",
    "content-type",
    "content-encoding",
    "absolute-expiry-time",
    "creation-time",
    "group-id",
    "group-sequence",
    "reply-to-group-id",
)
"""The fields of the properties section, in order."""
SYMBOLS = ("content-type", "content-encoding")
OWN = ("message-id", "content-type", "group-id")
"""Those that a Draft has fields for."""

SCHEDULED_AT = "x-opt-scheduled-enqueue-time"
_EPOCH_TICKS = 621_355_968_000_000_000


def milliseconds(moment: datetime) -> timestamp:
    """Return a time as AMQP writes it: milliseconds since 1970."""
    return timestamp(round(moment.timestamp() * 1000))


def ticks(moment: datetime) -> int:
    """Return a time as .NET counts it: 100 ns since the year 1."""
    return _EPOCH_TICKS + round(moment.timestamp() * 10_000_000)


def drafts(payload: bytes) -> list[Draft]:
    """Read what a client has sent: one message, or a batch of them."""
    content = [(int(s.descriptor), plain(s.value)) for s in _sections(payload)]
    bodies = [value for kind, value in content if kind == DATA]
    if bodies and all(_is_message(body) for body in bodies):
        return [draft for body in bodies for draft in drafts(body)]
    if any(kind > DATA for kind, _ in content):
        raise InvalidArgument("the local Service Bus takes messages with a body of bytes only")
    sections = dict(content)
    system = dict(zip(SYSTEM, sections.get(PROPERTIES, ()), strict=False))
    at = sections.get(ANNOTATIONS, {}).get(SCHEDULED_AT)
    return [
        Draft(
            b"".join(bodies),
            id=str(system.get("message-id") or ""),
            session=str(system.get("group-id") or ""),
            at=datetime.fromtimestamp(at / 1000, UTC) if at is not None else None,
            content_type=str(system.get("content-type") or ""),
            properties=sections.get(APPLICATION, {}),
            system={k: v for k, v in system.items() if v is not None and k not in OWN},
        )
    ]


def encode(message: StoredMessage, *, locked_until: datetime | None = None) -> bytes:
    """Write a stored message as the service delivers it; without a lock, as a peek returns it."""
    draft = message.draft
    annotations = {
        symbol("x-opt-sequence-number"): message.sequence,
        symbol("x-opt-enqueued-time"): milliseconds(message.enqueued_at),
        symbol("x-opt-message-state"): 2 if message.scheduled else 0,
    }
    if locked_until is not None:
        annotations[symbol("x-opt-locked-until")] = milliseconds(locked_until)
    if draft.at is not None:
        annotations[symbol(SCHEDULED_AT)] = milliseconds(draft.at)
    own = {"message-id": draft.id, "content-type": draft.content_type, "group-id": draft.session}
    system = {**draft.system, **{k: v for k, v in own.items() if v}}
    sections = [
        (HEADER, [None, None, None, None, uint(message.delivery_count)]),
        (ANNOTATIONS, annotations),
        (PROPERTIES, [_field(name, system.get(name)) for name in SYSTEM]),
        (APPLICATION, dict(draft.properties)),
        (DATA, draft.body),
    ]
    return b"".join(_described(kind, value) for kind, value in sections)


def plain(value: Any) -> Any:
    """Copy a decoded value out of the decoder's memory."""
    if isinstance(value, memoryview):
        return bytes(value)
    if isinstance(value, dict):
        return {plain(k): plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [plain(v) for v in value]
    return value


def elements(value: Any) -> list[Any]:
    """Return the items of an AMQP array or list."""
    return list(value.elements if hasattr(value, "elements") else value or ())


def delivery_tag(token: UUID) -> bytes:
    """Return a lock token as a delivery tag, in .NET's order of bytes."""
    return token.bytes_le


def _field(name: str, value: Any) -> Any:
    return symbol(value) if name in SYMBOLS and value is not None else value


def _is_message(body: bytes) -> bool:
    """Return whether bytes start as a section does: with a numeric descriptor, which no text has."""
    return body[:2] in (b"\x00\x53", b"\x00\x80")


def _sections(payload: bytes) -> Iterator[Described]:
    data = Data()
    while payload:
        data.clear()
        used = data.decode(payload)
        data.rewind()
        data.next()
        section = data.get_object()
        if not isinstance(section, Described):
            raise InvalidArgument("the message is not a sequence of described sections")
        yield section
        payload = payload[used:]


def _described(kind: int, value: Any) -> bytes:
    data = Data()
    data.put_object(Described(ulong(kind), value))
    return bytes(data.encode())
