"""The patches of the Kubernetes API other than apply: JSON merge patch, strategic merge, JSON patch.

A strategic merge merges the lists that the published type marks (``x-kubernetes-patch-strategy``) by their
merge key, and obeys ``$patch: delete`` and ``replace``, but not ``$retainKeys``; it ignores
``$setElementOrder``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from localcloud.kubernetes.schema.definitions import ANYTHING, Type
from localcloud.kubernetes.world.api_errors import StatusError, bad_request

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
_REJECTED = "the server rejected our request due to an error in our request"


def patched(kind: Type, live: Mapping[str, Any], patch: Any, media_type: str) -> dict[str, Any]:
    """Return ``live`` after the patch; raise ApiError when the patch is invalid."""
    if media_type == JSON:
        if not isinstance(patch, list):
            raise _undecodable(patch, "[]handlers.jsonPatchOp")
        return _json_patch(live, patch)
    if media_type == APPLY or media_type not in accepted(custom=kind.custom):
        raise unknown_patch(custom=kind.custom)
    if not isinstance(patch, Mapping):
        raise _undecodable(patch, "map[string]interface {}")
    result: dict[str, Any] = _merge(live, patch) if media_type == MERGE else _strategic(kind, live, patch)
    return result


def accepted(*, custom: bool) -> tuple[str, ...]:
    """Return the media types of a PATCH; a custom resource has no strategic merge."""
    return (JSON, MERGE, APPLY) if custom else (JSON, MERGE, STRATEGIC, APPLY)


def unknown_patch(*, custom: bool) -> StatusError:
    """A PATCH in another media type; the router of built-in kinds refuses it before their handler."""
    if not custom:
        return StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type")
    types = ", ".join(accepted(custom=custom))
    message = f"the body of the request was in an unknown format - accepted media types include: {types}"
    return StatusError(415, "UnsupportedMediaType", message)


def _undecodable(patch: Any, wanted: str) -> StatusError:
    sort = {list: "array", dict: "object", str: "string", bool: "bool"}.get(type(patch), "number")
    text = f"json: cannot unmarshal {sort} into Go value of type {wanted}"
    return bad_request(f"error decoding patch: {text}")


def _merge(live: Any, patch: Any) -> Any:
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(live) if isinstance(live, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merge(merged.get(name), value)
    return merged


def _strategic(kind: Type, live: Any, patch: Any) -> Any:
    if isinstance(patch, list):
        return _strategic_list(kind, live, patch)
    if not isinstance(patch, Mapping):
        return patch
    if patch.get("$patch") == "replace":
        return {name: value for name, value in patch.items() if name != "$patch"}
    merged = dict(live) if isinstance(live, Mapping) else {}
    for name, value in patch.items():
        if name.startswith("$deleteFromPrimitiveList/"):
            field = name.split("/", 1)[1]
            merged[field] = [item for item in merged.get(field) or () if item not in value]
        elif name.startswith("$"):
            continue
        elif value is None:
            merged.pop(name, None)
        else:
            merged[name] = _strategic(kind.child(name) or ANYTHING, merged.get(name), value)
    return merged


def _strategic_list(kind: Type, live: Any, patch: list[Any]) -> Any:
    if any(isinstance(item, Mapping) and item.get("$patch") == "replace" for item in patch):
        return [item for item in patch if not (isinstance(item, Mapping) and "$patch" in item)]
    if "merge" not in str(kind.raw.get("x-kubernetes-patch-strategy", "")).split(","):
        return patch
    key = kind.raw.get("x-kubernetes-patch-merge-key")
    old = list(live) if isinstance(live, list) else []
    if key is None:
        return [*old, *(item for item in patch if item not in old)]
    for item in patch:
        _merge_item(kind, old, item, str(key))
    return old


def _merge_item(kind: Type, items: list[Any], change: Any, key: str) -> None:
    if not isinstance(change, Mapping) or key not in change:
        raise bad_request(f"map: {dict(change)} does not contain declared merge key: {key}")
    place = next((n for n, item in enumerate(items) if item.get(key) == change[key]), None)
    if change.get("$patch") == "delete":
        items[:] = [item for item in items if item.get(key) != change[key]]
    elif place is None:
        items.append(_strategic(kind.item, None, change))
    else:
        items[place] = _strategic(kind.item, items[place], change)


def _json_patch(live: Mapping[str, Any], operations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    document: Any = live
    for operation in operations:
        rule = _OPERATIONS.get(str(operation.get("op")))
        if rule is None:
            raise StatusError(422, "Invalid", _REJECTED)
        try:
            document = rule(document, operation)
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise StatusError(422, "Invalid", _REJECTED) from error
    return dict(document)


def _pointer(text: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _at(document: Any, path: Sequence[str]) -> Any:
    for part in path:
        document = document[int(part)] if isinstance(document, list) else document[part]
    return document


def _changed(document: Any, path: Sequence[str], change: Callable[[Any, str], None]) -> Any:
    """Return a copy of the document with ``change`` done to the holder of the last part."""
    copy = list(document) if isinstance(document, list) else dict(document)
    if len(path) == 1:
        change(copy, path[0])
    elif isinstance(copy, list):
        copy[int(path[0])] = _changed(copy[int(path[0])], path[1:], change)
    else:
        copy[path[0]] = _changed(copy[path[0]], path[1:], change)
    return copy


def _add(document: Any, operation: Mapping[str, Any]) -> Any:
    def change(holder: Any, name: str) -> None:
        if isinstance(holder, list):
            holder.insert(len(holder) if name == "-" else int(name), operation["value"])
        else:
            holder[name] = operation["value"]

    return _changed(document, _pointer(operation["path"]), change)


def _remove(document: Any, operation: Mapping[str, Any]) -> Any:
    def change(holder: Any, name: str) -> None:
        del holder[int(name) if isinstance(holder, list) else name]

    return _changed(document, _pointer(operation["path"]), change)


def _replace(document: Any, operation: Mapping[str, Any]) -> Any:
    def change(holder: Any, name: str) -> None:
        place: Any = int(name) if isinstance(holder, list) else name
        _ = holder[place]
        holder[place] = operation["value"]

    return _changed(document, _pointer(operation["path"]), change)


def _test(document: Any, operation: Mapping[str, Any]) -> Any:
    if _at(document, _pointer(operation["path"])) != operation["value"]:
        raise ValueError("test failed")
    return document


_OPERATIONS: Mapping[str, Callable[[Any, Mapping[str, Any]], Any]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "test": _test,
}
