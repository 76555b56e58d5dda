"""Server-side apply, and the owners of fields (``metadata.managedFields``); pure functions over objects.

An apply merges the configuration into the object, removes what the manager no longer lists and no other
manager owns, and fails on fields whose value another manager set to something else, unless it is forced. The
writer of every other write owns the fields that it changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from localcloud.kubernetes.schema.definitions import Type
from localcloud.kubernetes.world.api_errors import field_conflict
from localcloud.kubernetes.world.writes.field_paths import (
    Fields,
    Path,
    dotted,
    flatten,
    from_wire,
    merge,
    remove,
    to_wire,
)

_NOBODYS = {
    ("f:apiVersion",),
    ("f:kind",),
    ("f:metadata",),
    *(
        ("f:metadata", f"f:{name}")
        for name in ("name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp")
    ),
    *(
        ("f:metadata", f"f:{name}")
        for name in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")
    ),
}


@dataclass(frozen=True)
class Writer:
    """Who writes, when ("2026-01-01T00:00:00Z"), in which version, to which subresource."""

    manager: str
    api_version: str
    time: str
    kind: Type
    subresource: str = ""
    force: bool = False


@dataclass(frozen=True)
class _Entry:
    manager: str
    operation: str
    api_version: str
    time: str
    subresource: str
    fields: Fields

    @property
    def key(self) -> tuple[str, str, str]:
        return (self.manager, self.operation, self.subresource)


_Entries = dict[tuple[str, str, str], _Entry]


def updated(live: Mapping[str, Any] | None, new: Mapping[str, Any], writer: Writer) -> dict[str, Any]:
    """Return ``new`` with the ownership after a create, replace or patch over ``live``.

    ``new`` has the managedFields from before the write.
    """
    entries = _read(new)
    changed, removed = _difference(writer.kind, live or {}, new)
    for key, entry in list(entries.items()):
        entries[key] = _with(entry, entry.fields - changed - removed)
    mine = _entry(writer, "Update", changed)
    before = entries.get(mine.key)
    entries[mine.key] = mine if before is None else _with(before, before.fields | changed, writer.time)
    return _write(new, _capped(entries))


def applied(live: Mapping[str, Any] | None, wanted: Mapping[str, Any], writer: Writer) -> dict[str, Any]:
    """Return the object after a server-side apply of ``wanted``; raise ApiError on conflicts."""
    kind = writer.kind
    config = dict(wanted) if kind.custom else _without_nulls(wanted)
    entries = _read(live or {})
    mine = _entry(writer, "Apply", _owned(kind, config))
    before = entries.get(mine.key)
    unchanged = before is not None and before.fields == mine.fields
    entries[mine.key] = before if unchanged and before is not None else mine
    if live is None:
        return _write(config, entries)
    merged = merge(kind, live, config)
    if before is not None:
        owned = frozenset[Path]().union(*(entry.fields for entry in entries.values()))
        merged = remove(kind, merged, _dropped(before.fields - mine.fields, owned), owned)
    changed, removed = _difference(kind, live, merged)
    others = [entry for key, entry in entries.items() if key != mine.key]
    if not writer.force:
        _refuse(others, changed)
    for entry in others:
        entries[entry.key] = _with(entry, entry.fields - changed - removed)
    return _write(merged, entries)


_MOST_UPDATERS = 10
_BUCKET = "ancient-changes"


def _capped(entries: _Entries) -> _Entries:
    """Return at most ten managers of updates: the oldest are merged, by version, into one.

    Source: kubernetes/apimachinery ``pkg/util/managedfields/internal/capmanagers.go``.
    """
    capped = {key: entry for key, entry in entries.items() if entry.fields}
    updates = sorted(
        (entry for entry in capped.values() if entry.operation == "Update"),
        key=lambda entry: (entry.time, entry.manager),
    )
    first: dict[str, _Entry] = {}
    left = len(updates)
    for entry in updates:
        if left <= _MOST_UPDATERS:
            break
        seen = first.get(entry.api_version)
        if seen is None:
            first[entry.api_version] = entry
            continue
        bucket = _Entry(_BUCKET, "Update", entry.api_version, entry.time, "", seen.fields | entry.fields)
        del capped[seen.key], capped[entry.key]
        capped[bucket.key] = first[entry.api_version] = bucket
        left -= 1
    return capped


def same(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Return whether two objects are equal, but for the times in their managedFields."""
    contents = (
        {name: inner for name, inner in value.items() if name != "metadata"} for value in (before, after)
    )
    return next(contents) == next(contents) and _timeless(before) == _timeless(after)


def _timeless(value: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the metadata of an object, and apart from it the owners, each without its time."""
    metadata = dict(value.get("metadata") or {})
    managed = metadata.pop("managedFields", None) or ()
    owners = [{key: inner for key, inner in entry.items() if key != "time"} for entry in managed]
    by_name = sorted(owners, key=lambda entry: (entry["manager"], entry["operation"], str(entry)))
    return metadata, by_name


def _refuse(others: list[_Entry], changed: Fields) -> None:
    found = [(entry, field) for entry in others for field in sorted(entry.fields & changed)]
    if not found:
        return
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {_shown(entry)}",
            "field": dotted(field),
        }
        for entry, field in found
    ]
    raise field_conflict(f"Apply failed with {_conflicts(found)}", causes)


def _conflicts(found: list[tuple[_Entry, Path]]) -> str:
    if len(found) == 1:
        return f"1 conflict: conflict with {_shown(found[0][0])}: {dotted(found[0][1])}"
    fields: dict[str, list[str]] = {}
    for entry, field in found:
        fields.setdefault(_shown(entry), []).append(dotted(field))
    lines = [
        line
        for manager, paths in sorted(fields.items())
        for line in (f"conflicts with {manager}:", *(f"- {path}" for path in paths))
    ]
    return f"{len(found)} conflicts: " + "\n".join(lines)


def _shown(entry: _Entry) -> str:
    """Return a manager as conflicts name it; an apply needs no version."""
    text = f'"{entry.manager}"' + (f' with subresource "{entry.subresource}"' if entry.subresource else "")
    return text if entry.operation == "Apply" else f"{text} using {entry.api_version}"


def _dropped(candidates: Fields, owned: Fields) -> Fields:
    above = {field[:end] for field in owned for end in range(1, len(field) + 1)}
    return candidates - above


def _difference(kind: Type, old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[Fields, Fields]:
    equal = {name for name in old.keys() & new.keys() if old[name] == new[name]}
    before, after = (
        _flat(kind, {name: inner for name, inner in value.items() if name not in equal})
        for value in (old, new)
    )
    changed = {field for field, value in after.items() if field not in before or before[field] != value}
    return frozenset(changed), frozenset(before.keys() - after.keys())


def _owned(kind: Type, value: Mapping[str, Any]) -> Fields:
    return frozenset(_flat(kind, value))


def _flat(kind: Type, value: Mapping[str, Any]) -> dict[Path, Any]:
    found = flatten(kind, value)
    managed = ("f:metadata", "f:managedFields")
    return {path: inner for path, inner in found.items() if path not in _NOBODYS and path[:2] != managed}


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(inner) for name, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value]
    return value


def _entry(writer: Writer, operation: str, fields: Fields) -> _Entry:
    return _Entry(writer.manager, operation, writer.api_version, writer.time, writer.subresource, fields)


def _with(entry: _Entry, fields: Fields, time: str | None = None) -> _Entry:
    when = entry.time if fields == entry.fields or time is None else time
    return _Entry(entry.manager, entry.operation, entry.api_version, when, entry.subresource, fields)


def given_owners(body: Any) -> list[Mapping[str, Any]]:
    """Return the managedFields of a replacement: valid ones replace those of the object, others do not count.

    Source: kubernetes/apimachinery ``pkg/util/managedfields/internal/fieldmanager.go``, ``Update``.
    """
    metadata = body.get("metadata") if isinstance(body, dict) else None
    given = metadata.get("managedFields") if isinstance(metadata, dict) else None
    whole = isinstance(given, list) and all(
        isinstance(entry, dict) and {"manager", "operation", "apiVersion", "fieldsV1"} <= entry.keys()
        for entry in given
    )
    return list(given or ()) if whole else []


def _read(value: Mapping[str, Any]) -> _Entries:
    entries = [
        _Entry(
            entry["manager"],
            entry["operation"],
            entry["apiVersion"],
            entry.get("time", ""),
            entry.get("subresource", ""),
            from_wire(entry["fieldsV1"]),
        )
        for entry in value.get("metadata", {}).get("managedFields") or ()
    ]
    return {entry.key: entry for entry in entries}


def _write(value: Mapping[str, Any], entries: _Entries) -> dict[str, Any]:
    ordered = sorted(entries.values(), key=lambda entry: (entry.operation, entry.time, entry.manager))
    managed: list[dict[str, Any]] = []
    for entry in ordered:
        if not entry.fields:
            continue
        wire: dict[str, Any] = {
            "manager": entry.manager,
            "operation": entry.operation,
            "apiVersion": entry.api_version,
            "time": entry.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": to_wire(entry.fields),
        }
        managed.append({**wire, "subresource": entry.subresource} if entry.subresource else wire)
    return {**value, "metadata": {**value.get("metadata", {}), "managedFields": managed}}
