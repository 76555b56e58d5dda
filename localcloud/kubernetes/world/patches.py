"""The patches of the Kubernetes API other than apply: JSON merge patch, strategic merge, JSON patch.

A strategic merge here merges the lists that ``kubernetes_fields`` knows by their keys and obeys
``$patch: delete`` and ``replace``, but not ``$retainKeys``; the order of ``$setElementOrder`` is not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from localcloud.kubernetes.world.api_errors import ApiError, bad_request
from localcloud.kubernetes.world.field_paths import Path, items_by_key

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"


def patched(live: Mapping[str, Any], patch: Any, media_type: str) -> dict[str, Any]:
    """Return ``live`` after the patch; raise ApiError when the patch makes no sense."""
    if media_type == JSON:
        if not isinstance(patch, list):
            raise bad_request("a JSON patch is a list of operations")
        return _json_patch(live, patch)
    rules: dict[str, Callable[[Any, Any, Path], Any]] = {MERGE: _merge, STRATEGIC: _strategic}
    rule = rules.get(media_type)
    if rule is None:
        message = f"the body of the request was in an unknown format - {media_type} is not a patch"
        raise ApiError(415, "UnsupportedMediaType", message)
    if not isinstance(patch, Mapping):
        raise bad_request("a merge patch is an object")
    result: dict[str, Any] = rule(live, patch, ())
    return result


def _merge(live: Any, patch: Any, _path: Path = ()) -> Any:
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(live) if isinstance(live, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merge(merged.get(name), value)
    return merged


def _strategic(live: Any, patch: Any, path: Path) -> Any:
    if isinstance(patch, list):
        return _strategic_list(live, patch, path)
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
            merged[name] = _strategic(merged.get(name), value, (*path, f"f:{name}"))
    return merged


def _strategic_list(live: Any, patch: list[Any], path: Path) -> Any:
    if any(isinstance(item, Mapping) and item.get("$patch") == "replace" for item in patch):
        return [item for item in patch if not (isinstance(item, Mapping) and "$patch" in item)]
    new = items_by_key(path, patch, custom=False)
    old = items_by_key(path, live, custom=False) or {}
    if new is None or (live and not old):
        return patch
    for key, item in new.items():
        if isinstance(item, Mapping) and item.get("$patch") == "delete":
            old.pop(key, None)
        else:
            old[key] = _strategic(old.get(key), item, (*path, key))
    return list(old.values())


def _json_patch(live: Mapping[str, Any], operations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    document: Any = live
    for operation in operations:
        rule = _OPERATIONS.get(str(operation.get("op")))
        if rule is None:
            raise bad_request(f"unknown JSON patch operation {operation.get('op')!r}")
        try:
            document = rule(document, operation)
        except (KeyError, IndexError, ValueError, TypeError) as error:
            message = f"the JSON patch does not fit the object at {operation.get('path')}"
            raise ApiError(422, "Invalid", message) from error
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
