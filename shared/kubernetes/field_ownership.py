"""Who owns which fields of an object (``metadata.managedFields``), and what an apply of ours changes.

Server-side apply leaves a field alone that another manager set and we do not, such as a ``ref.tag`` next to
our ``ref.branch``. So the fields of former managers are transferred to us before we apply, and the apply then
removes those that our manifest lacks. client-go does the same (``util/csaupgrade``), as does Flux itself.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from shared.json_tree import Json
from shared.kubernetes.flux_objects import is_ours
from shared.kubernetes.flux_readiness import REQUESTED_AT
from shared.sentences import some_of

MANAGER = "roadstead"
"""The field manager under which Roadstead writes."""
INSTALLERS = frozenset({"flux", "kubectl", "kubectl-client-side-apply", "before-first-apply"})
"""The managers of those who install Flux by hand, with ``flux install`` or ``kubectl apply``."""
_CONTENT = ("f:spec", "f:data", "f:stringData", "f:type")
"""What an object holds besides its metadata and status."""
_OPERATORS = ("f:spec", "f:suspend")
"""The field with which operators suspend Flux: it stays theirs, unless a policy says otherwise."""
_SERVERS = ("managedFields", "resourceVersion", "generation")
SHOWN = 3

Fields = Mapping[str, Any]
"""``fieldsV1``: a tree whose keys are path elements such as "f:spec"; "." stands for the element itself."""


def same(state: Json, other: Json) -> bool:
    """Return whether two states of an object have the same content: its metadata and all but the status."""
    return _content(state) == _content(other)


def _content(value: Json) -> dict[str, Any]:
    metadata = {key: inner for key, inner in value["metadata"].items() if key not in _SERVERS}
    return {**{key: inner for key, inner in value.items() if key != "status"}, "metadata": metadata}


def transferred(live: Json, *, entirely: bool, resumes: bool = False) -> Json | None:
    """Return the object with the fields of former managers as ours, None when they own none that we lack.

    ``entirely``: the object is ours alone, so that whoever set a field of its content is a former manager;
    otherwise only those who install Flux by hand are. ``resumes``: so is whoever suspended it.
    """
    entries = list(live["metadata"].get("managedFields") or ())
    ours = our_entry(live)
    fields: Fields = dict(ours["fieldsV1"]) if ours else {}
    mine, kept, found = _with_branches(_leaves(fields)), [], False
    for entry in entries:
        if entry is ours:
            continue
        part = _former(entry, entirely=entirely, resumes=resumes)
        found = found or bool(set(_leaves(part)) - mine)
        fields = _union(fields, part)
        rest = _without(entry.get("fieldsV1") or {}, part)
        if rest:
            kept.append({**entry, "fieldsV1": rest})
    if not found:
        return None
    own = {**(ours or _new_entry(live, entries)), "fieldsV1": fields}
    return {**live, "metadata": {**live["metadata"], "managedFields": [*kept, own]}}


def data_changed_by_others(live: Json, names: Collection[str]) -> frozenset[str]:
    """Return the keys of the data that others set, and the ``names`` that we lost.

    Whoever changes a value takes the field from us, so no value is looked at.
    """
    ours = our_entry(live)
    kept = _names(ours, "f:data") if ours else frozenset()
    others = (_names(entry, "f:data") for entry in _entries(live) if entry is not ours)
    return (frozenset(names) - kept).union(*others)


def spec_writers(live: Json, names: Collection[str]) -> list[tuple[str, str]]:
    """Return the other managers that set one of these fields of the spec, each with its time."""
    entries = (entry for entry in _entries(live) if entry is not our_entry(live))
    theirs = (entry for entry in entries if not _names(entry, "f:spec").isdisjoint(names))
    return [(str(entry["manager"]), str(entry.get("time") or "")) for entry in theirs]


def _names(entry: Json, below: str) -> frozenset[str]:
    fields = (entry.get("fieldsV1") or {}).get(below) or {}
    return frozenset(name.removeprefix("f:") for name in fields if name != ".")


def owned_annotation(live: Json, name: str) -> str | None:
    """Return the value of an annotation that we applied, None where nobody or somebody else set it."""
    ours = our_entry(live) or {}
    fields = ((ours.get("fieldsV1") or {}).get("f:metadata") or {}).get("f:annotations") or {}
    value = (live["metadata"].get("annotations") or {}).get(name)
    return str(value) if value is not None and f"f:{name}" in fields else None


def our_entry(live: Json) -> Json | None:
    """Return the entry of an object's managedFields with the fields that we applied."""
    return next((entry for entry in _entries(live) if _place(entry) == (MANAGER, "Apply", "")), None)


def _new_entry(live: Json, entries: Sequence[Json]) -> dict[str, Any]:
    times = [str(entry["time"]) for entry in entries if entry.get("time")]
    entry = {
        "manager": MANAGER,
        "operation": "Apply",
        "apiVersion": live["apiVersion"],
        "fieldsType": "FieldsV1",
    }
    return {**entry, "time": max(times)} if times else entry


def _former(entry: Json, *, entirely: bool, resumes: bool) -> Fields:
    """Return the fields of another manager that become ours."""
    if entry.get("subresource"):
        return {}
    fields = {name: inner for name, inner in (entry.get("fieldsV1") or {}).items() if name in _CONTENT}
    if entirely and resumes:
        return fields
    if entirely:
        top, name = _OPERATORS
        rest = {key: inner for key, inner in fields.get(top, {}).items() if key != name}
        return {
            **{key: inner for key, inner in fields.items() if key != top},
            **({top: rest} if rest else {}),
        }
    return fields if entry.get("manager") in INSTALLERS else {}


def appliers(live: Json) -> frozenset[str]:
    """Return the managers that apply an object, as Flux and we do, without those who install by hand."""
    managers = {str(entry.get("manager")) for entry in _entries(live) if _applies(entry)}
    return frozenset(managers - INSTALLERS)


def is_applied_by_us(live: Json) -> bool:
    """Return whether Roadstead applied an object; a copy of one has our annotation, and another manager."""
    return is_ours(live) and MANAGER in appliers(live)


def other_managers(live: Json, *, whole: bool) -> list[str]:
    """Return the other managers that apply an object; with ``whole`` also those that wrote it in another way.

    Who writes a status is none of them.
    """
    found = appliers(live)
    if whole:
        found = frozenset(
            str(entry.get("manager")) for entry in _entries(live) if not entry.get("subresource")
        )
    return sorted(found - {MANAGER})


def _applies(entry: Json) -> bool:
    return entry.get("operation") == "Apply" and not entry.get("subresource")


def lost_fields(before: Json, after: Json) -> list[str]:
    """Describe the fields that an apply of ours took from other managers: "spec.path of kubectl-edit"."""
    now = {_place(entry): set(_leaves(entry.get("fieldsV1") or {})) for entry in _entries(after)}
    described = []
    for entry in _entries(before):
        if entry.get("manager") == MANAGER or entry.get("subresource") == "status":
            continue
        lost = set(_leaves(entry.get("fieldsV1") or {})) - now.get(_place(entry), set())
        names = sorted(_dotted(path) for path in lost if path[-1] != f"f:{REQUESTED_AT}")
        if names:
            described.append(f"{some_of(names, SHOWN)} of {entry.get('manager')}")
    return described


def _entries(value: Json) -> Sequence[Json]:
    return value["metadata"].get("managedFields") or ()


def _place(entry: Json) -> tuple[str, str, str]:
    return str(entry.get("manager")), str(entry.get("operation")), str(entry.get("subresource", ""))


def _leaves(fields: Fields, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, inner in fields.items():
        if name == ".":
            continue
        below = list(_leaves(inner, (*path, name)))
        yield from below or [(*path, name)]


def _with_branches(leaves: Iterator[tuple[str, ...]]) -> set[tuple[str, ...]]:
    return {path[:end] for path in leaves for end in range(1, len(path) + 1)}


def _union(fields: Fields, other: Fields) -> dict[str, Any]:
    return {name: _union(fields.get(name, {}), other.get(name, {})) for name in sorted({*fields, *other})}


def _without(fields: Fields, part: Fields) -> dict[str, Any]:
    """Return the fields without those of ``part``; a branch without leaves is dropped."""
    rest: dict[str, Any] = {}
    for name, inner in fields.items():
        if name not in part:
            rest[name] = inner
        elif part[name]:
            left = _without(inner, part[name])
            if set(left) - {"."}:
                rest[name] = left
    return rest if set(rest) - {"."} else {}


def _dotted(path: tuple[str, ...]) -> str:
    return ".".join(name.partition(":")[2] for name in path)


# Whether an object shows by itself that applying its manifest again would change nothing.
#
# It does when the manager Roadstead owns exactly the fields of the manifest (``metadata.managedFields``),
# and the object has their values. Whoever changes a value takes the field from us
# (kubernetes.io/docs/reference/using-api/server-side-apply). Of an object that the API server stores in
# other words, such as the quantity "1000m" as "1", only a dry run can show it.

_IDENTITY = ("apiVersion", "kind", "metadata")
_NAMES = ("name", "namespace")
"""What identifies an object belongs to no manager."""


def is_held(manifest: Json, live: Json) -> bool:
    """Return True when an apply of the manifest would change nothing of the object; False when it may."""
    entry = our_entry(live)
    if entry is None or entry.get("apiVersion") != manifest["apiVersion"]:
        return False
    wanted = {key: value for key, value in manifest.items() if key not in _IDENTITY}
    metadata = {key: value for key, value in manifest["metadata"].items() if key not in _NAMES}
    if metadata:
        wanted["metadata"] = metadata
    return _holds(live, wanted, entry.get("fieldsV1") or {})


def _holds(live: Any, wanted: Any, fields: Fields) -> bool:
    """Return whether we own all of a value and nothing below it that we do not want, and it is there."""
    below = fields.keys() - {"."}
    if not below:  # owned as a whole: a scalar, or what Kubernetes never merges
        return _equal(live, wanted)
    if isinstance(wanted, dict) and isinstance(live, dict):
        return below == {f"f:{name}" for name in wanted} and all(
            name in live and _holds(live[name], value, fields[f"f:{name}"]) for name, value in wanted.items()
        )
    if isinstance(wanted, list) and isinstance(live, list):
        return len(below) == len(wanted) and _items_hold(live, wanted, fields)
    return False


def _items_hold(live: Sequence[Any], wanted: Sequence[Any], fields: Fields) -> bool:
    """Return whether each item that we own is one that we want, and the object has it, in our order."""
    found: list[tuple[int, int]] = []
    for element, below in fields.items():
        if element == ".":
            continue
        ours, theirs = list(_places(wanted, element)), list(_places(live, element))
        if len(ours) != 1 or len(theirs) != 1 or not _holds(live[theirs[0]], wanted[ours[0]], below):
            return False
        found.append((ours[0], theirs[0]))
    there = [place for _, place in sorted(found)]
    return len({place for place, _ in found}) == len(wanted) and there == sorted(there)


def _places(items: Sequence[Any], element: str) -> Iterator[int]:
    """Yield where a list has an element: 'k:{"name":"x"}' by its keys, 'v:"x"' by its value."""
    sort, _, text = element.partition(":")
    key = json.loads(text)
    for place, item in enumerate(items):
        if sort == "v" and _equal(item, key):
            yield place
        if sort == "k" and isinstance(item, Mapping) and key.items() <= item.items():
            yield place


def _equal(value: Any, other: Any) -> bool:
    """Return whether two values are equal in JSON, where true is not 1."""
    if not isinstance(value, dict | list):
        return type(value) is type(other) and bool(value == other)
    return json.dumps(value, sort_keys=True) == json.dumps(other, sort_keys=True)
