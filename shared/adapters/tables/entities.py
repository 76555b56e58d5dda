"""The keys and properties of an entity; a text of any length is stored as properties.

Limits (learn.microsoft.com/rest/api/storageservices/understanding-the-table-service-data-model): a string
property holds 32 Ki characters, a binary one 64 KiB, an entity 1 MiB; keys may not contain ``/ \\ # ?``.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from unicodedata import category

from shared.cluster.failures.errors import TooLarge

ENTITY_BYTES = 700_000
"""What one entity holds of a text: it grows by a third in transit, and other properties need room."""
MAX_PARTS = 64
_TEXT_LIMIT = 30_000
_BYTES_LIMIT = 60_000
_KEY_LIMIT = 1024
_LAST = 10**13


def newest_first(moment: datetime) -> str:
    """Return a key prefix that sorts later moments first, to the millisecond.

    A moment before 1970 has the prefix of its first millisecond, one after 2286 that of its last: of what is
    stored, none is that old or that late, and another number of digits would not sort.
    """
    milliseconds = min(max(int(moment.timestamp() * 1000), 1), _LAST)
    return f"{_LAST - milliseconds:013d}"


def is_key(text: str) -> bool:
    """Return whether an entity can have this key: at most 1 KiB, and no ``/ \\ # ?`` or control character."""
    size = len(text.encode("utf-16-le", errors="surrogatepass"))
    return size <= _KEY_LIMIT and not any(
        letter in "/\\#?" or category(letter) in ("Cc", "Cs") for letter in text
    )


def safe_key(text: str) -> str:
    """Return a text as a key: a character that a key may not contain becomes "_"."""
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in text)[:200]


def packed(text: str) -> dict[str, Any]:
    """Return the text as properties: readable if it is short, compressed if it is long; raise TooLarge."""
    if len(text) <= 8 * _TEXT_LIMIT and text.isascii():  # others take more room
        parts = [text[i : i + _TEXT_LIMIT] for i in range(0, len(text), _TEXT_LIMIT)]
        return {f"body{n}": part for n, part in enumerate(parts)}
    data = zlib.compress(text.encode())
    if len(data) > ENTITY_BYTES:
        size = f"it has {len(text.encode())} bytes, and {len(data)} compressed"
        raise TooLarge(f"the record is too large: {size}, of which an entity holds {ENTITY_BYTES}")
    return _chunks(data)


def split(text: str) -> tuple[dict[str, Any], Sequence[dict[str, Any]]]:
    """Return a text as properties of an entity, and of as many parts as it needs besides; raise TooLarge.

    With parts, the entity has their number and version, which is a digest of the text.
    """
    data = zlib.compress(text.encode())
    if len(data) <= ENTITY_BYTES:
        return packed(text), ()
    parts = [data[i : i + ENTITY_BYTES] for i in range(0, len(data), ENTITY_BYTES)]
    if len(parts) > MAX_PARTS:
        most = MAX_PARTS * ENTITY_BYTES
        size = f"it has {len(data)} bytes compressed"
        raise TooLarge(f"the record is too large: {size}, at most {most} are stored")
    version = hashlib.sha256(data).hexdigest()[:16]
    return {"parts": len(parts), "version": version}, [_chunks(part) for part in parts]


def joined(parts: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of the parts that ``split`` created."""
    return zlib.decompress(b"".join(chunk for part in parts for chunk in _numbered(part, "zip"))).decode()


def _chunks(data: bytes) -> dict[str, Any]:
    chunks = [data[i : i + _BYTES_LIMIT] for i in range(0, len(data), _BYTES_LIMIT)]
    return {f"zip{n}": chunk for n, chunk in enumerate(chunks)}


def unpacked(entity: Mapping[str, Any]) -> str:
    """Return the text of properties that ``packed`` created."""
    if "zip0" in entity:
        return zlib.decompress(b"".join(_numbered(entity, "zip"))).decode()
    return "".join(_numbered(entity, "body"))


def _numbered(entity: Mapping[str, Any], prefix: str) -> Iterator[Any]:
    number = 0
    while f"{prefix}{number}" in entity:
        yield entity[f"{prefix}{number}"]
        number += 1
