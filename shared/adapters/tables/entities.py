"""The keys and properties of an entity; a text of any length is stored as properties.

Limits (learn.microsoft.com/rest/api/storageservices/understanding-the-table-service-data-model): a string
property holds 32 Ki characters, a binary one 64 KiB, an entity 1 MiB; keys may not contain ``/ \\ # ?``.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any
from unicodedata import category

_TEXT_LIMIT = 30_000
_BYTES_LIMIT = 60_000
_KEY_LIMIT = 1024
_LAST = 10**13


def newest_first(moment: datetime) -> str:
    """Return a key prefix that sorts later moments first, to the millisecond."""
    return f"{_LAST - int(moment.timestamp() * 1000):013d}"


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
    """Return the text as properties: readable if it is short, compressed if it is long."""
    if len(text) <= 8 * _TEXT_LIMIT:
        parts = [text[i : i + _TEXT_LIMIT] for i in range(0, len(text), _TEXT_LIMIT)]
        return {f"body{n}": part for n, part in enumerate(parts)}
    data = zlib.compress(text.encode())
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
