"""Texts and times as keys and properties of an entity; a text may have any length."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, TypeVar

from shared.cluster.failures.errors import Stale, TooLarge
from shared.cluster.forms import WrongText
from shared.ports.tables import Entity, Key, Properties, Table

T = TypeVar("T")
ENTITY_BYTES = 700_000
"""What one entity holds of a text: it grows by a third in transit, and other properties need room."""
MAX_PARTS = 64
_TEXT_LIMIT = 30_000
_BYTES_LIMIT = 60_000
_LAST = 10**13


def newest_first(moment: datetime) -> str:
    """Return a key prefix that sorts later moments first, to the millisecond.

    A moment before 1970 has the prefix of its first millisecond, one after 2286 that of its last: of what is
    stored, none is that old or that late, and another number of digits would not sort.
    """
    milliseconds = min(max(int(moment.timestamp() * 1000), 1), _LAST)
    return f"{_LAST - milliseconds:013d}"


def safe_key(text: str) -> str:
    """Return a text as a key: a character that a key may not contain becomes "_"."""
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in text)[:200]


def moment_in(entity: Entity) -> datetime:
    """Return the time of a record, in its property ``at``; raise WrongText."""
    moment = entity.get("at")
    if not isinstance(moment, datetime):
        raise WrongText("at is missing, or is no time")
    return moment


def packed(text: str) -> dict[str, Any]:
    """Return the text as properties: readable if it is short, compressed if it is long.

    Raise TooLarge for one of more than ``ENTITY_BYTES``.
    """
    if _is_short(text):
        parts = [text[i : i + _TEXT_LIMIT] for i in range(0, len(text), _TEXT_LIMIT)]
        return {f"body{n}": part for n, part in enumerate(parts)}
    data = zlib.compress(text.encode())
    if len(data) > ENTITY_BYTES:
        size = f"it has {len(text.encode())} bytes, and {len(data)} compressed"
        raise TooLarge(f"the record is too large: {size}, of which an entity holds {ENTITY_BYTES}")
    return _chunks(data)


def _is_short(text: str) -> bool:
    return len(text) <= 8 * _TEXT_LIMIT and text.isascii()  # others take more room


def _chunks(data: bytes) -> dict[str, Any]:
    chunks = [data[i : i + _BYTES_LIMIT] for i in range(0, len(data), _BYTES_LIMIT)]
    return {f"zip{n}": chunk for n, chunk in enumerate(chunks)}


def text_of(entity: Entity) -> str:
    """Return the text that ``packed`` stored; raise WrongText where a part is missing, damaged or no text."""
    if not ("body0" in entity or "zip0" in entity):
        raise WrongText("the text is missing: there is neither body0 nor zip0")
    return _together(_unzipped, [entity]) if "zip0" in entity else _together(_joined, entity)


def _joined(entity: Entity) -> str:
    return "".join(_numbered(entity, "body"))


def _unzipped(entities: Sequence[Entity]) -> str:
    return zlib.decompress(
        b"".join(part for entity in entities for part in _numbered(entity, "zip"))
    ).decode()


def _numbered(entity: Entity, prefix: str) -> Iterator[Any]:
    number = 0
    while f"{prefix}{number}" in entity:
        yield entity[f"{prefix}{number}"]
        number += 1


def _together(put: Callable[[T], str], stored: T) -> str:
    try:
        return put(stored)
    except (TypeError, zlib.error, UnicodeDecodeError):
        raise WrongText("a part of the text is missing, damaged or of a wrong type") from None


# A document: a text of up to 64 entities' size. Its parts have a partition of their own.


def write_document(table: Table, place: Key, properties: Properties, text: str, etag: str | None) -> str:
    """Write an entity with a document as ``Table.write`` does; return its new etag, raise Stale or TooLarge.

    Without an etag (None), write it over any version; its new one is unknown then ("").

    The parts are written first, under the version of their text, and the entity names them. So whoever reads
    meanwhile finds the parts of the version that the entity names. Those that nothing names go afterwards.
    """
    named, parts = _split(text)
    own = f"{named.get('version')}-"
    before = [entity.place for entity in table.query(_parts_of(place), select=("PartitionKey", "RowKey"))]
    table.put(_parts_of(place), {f"{own}{number:03d}": part for number, part in enumerate(parts)})
    written, whole = "", {**properties, **named}
    try:
        if etag is None:
            table.put(place[0], {place[1]: whole})
        else:
            written = table.write(*place, whole, etag)
    except Stale:
        current = table.get(*place)
        if parts and (current is None or current.get("version") != named["version"]):
            table.remove((_parts_of(place), f"{own}{number:03d}") for number in range(len(parts)))
        raise
    table.remove(part for part in before if not part[1].startswith(own))
    return written


def document(entity: Entity) -> str | None:
    """Return the document of an entity; None when another writer has just replaced its parts.

    Raise WrongText for one that cannot be put together.
    """
    if "parts" not in entity:
        return text_of(entity)
    number, version = entity["parts"], entity.get("version")
    if not (isinstance(number, int) and 0 < number <= MAX_PARTS and isinstance(version, str)):
        raise WrongText("parts or version is missing, or has a wrong type or value")
    read = (entity.table.get(_parts_of(entity.place), f"{version}-{part:03d}") for part in range(number))
    parts = [part for part in read if part is not None]
    if len(parts) == number:
        return _together(_unzipped, parts)
    current = entity.table.get(*entity.place)
    if current is None or current.etag != entity.etag:
        return None
    raise WrongText("a part of the text is missing")


def remove_documents(table: Table, places: Sequence[Key]) -> int:
    """Remove entities with all their parts, also of versions whose writers did not come to their end."""
    removed = table.remove(places)
    for place in places[:removed]:
        parts = table.query(_parts_of(place), select=("PartitionKey", "RowKey"))
        table.remove([part.place for part in parts])
    return removed


def _split(text: str) -> tuple[dict[str, Any], Sequence[dict[str, Any]]]:
    """Return a text as properties of an entity, and of as many parts as it needs besides; raise TooLarge.

    With parts, the entity has their number and version, which is a digest of the text.
    """
    if _is_short(text):
        return packed(text), ()
    data = zlib.compress(text.encode())
    if len(data) <= ENTITY_BYTES:
        return _chunks(data), ()
    parts = [data[i : i + ENTITY_BYTES] for i in range(0, len(data), ENTITY_BYTES)]
    if len(parts) > MAX_PARTS:
        most = MAX_PARTS * ENTITY_BYTES
        size = f"it has {len(data)} bytes compressed"
        raise TooLarge(f"the record is too large: {size}, at most {most} are stored")
    version = hashlib.sha256(data).hexdigest()[:16]
    return {"parts": len(parts), "version": version}, [_chunks(part) for part in parts]


def _parts_of(place: Key) -> str:
    return f"parts|{place[0]}|{place[1]}"
