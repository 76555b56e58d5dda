"""A cluster's own part of its spec: what its layers lack, and removals of what the cluster lacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.fleet.aks.comparison import same
from shared.fleet.json_tree import Json, Path, children, is_named_list
from shared.fleet.kubernetes_versions import numbers
from shared.fleet.yaml_tree.merging import REMOVED

OURS = ("flux", "deletionProtection", "suspend", "minNodeImageVersion", "drift")
"""Fields that Azure does not know: the cluster inherits them from its layers."""


def minimal_spec(spec: Json, short: Json, base: Json) -> dict[str, Any]:
    """Return the spec of a cluster's own file that gives ``spec`` when it is merged over ``base``.

    ``short`` is the spec without defaults; ``base`` are the merged layers with their placeholders filled in.
    What the layers have and the cluster does not is removed.
    """
    inherited = {key: value for key, value in base.items() if key not in OURS}
    version, runs = (numbers(str(one.get("kubernetesVersion") or "")) for one in (inherited, spec))
    if version and runs[: len(version)] == version:
        inherited["kubernetesVersion"] = spec["kubernetesVersion"]  # any patch satisfies "1.36"
    return _entries(spec, short, inherited, ())


def _entries(full: Json, short: Json, base: Json, path: Path) -> dict[str, Any]:
    entries: dict[str, Any] = {}
    for key, value, inherited in children(full, base) or ():
        at = (*path, key)
        if inherited is None:
            if key in short:
                entries[key] = short[key]
        elif value is None:
            if not _requests_nothing(inherited, at):
                entries[key] = None
        elif own := _own(value, short.get(key), inherited, at):
            entries[key] = own[0]
    return entries


def _own(full: Any, short: Any, base: Any, path: Path) -> tuple[Any] | tuple[()]:
    """Return the value that the cluster's file needs in place of an inherited one, () for none."""
    if isinstance(full, Mapping) and isinstance(base, Mapping):
        entries = _entries(full, short if isinstance(short, Mapping) else {}, base, path)
        return (entries,) if entries else ()
    if is_named_list(full) and is_named_list(base):
        items = _items(full, short if is_named_list(short) else [], base)
        return (items,) if items else ()
    return () if same(full, base, path) and same(base, full, path) else (full,)


def _items(full: list[Any], short: list[Any], base: list[Any]) -> list[dict[str, Any]]:
    brief = {item["name"]: item for item in short}
    items: list[dict[str, Any]] = []
    for _, item, inherited in children(full, base) or ():
        name = (item or inherited)["name"]
        if item is None:
            items.append({"name": name, REMOVED[0]: REMOVED[1]})
        elif inherited is None:
            items.append({"name": name, **(brief.get(name) or item)})
        elif entries := _entries(item, brief.get(name, {}), inherited, ()):
            items.append({"name": name, **entries})
    return items


def _requests_nothing(value: Any, path: Path) -> bool:
    """Return whether a layer's value means the default, so that there is nothing to remove."""
    if isinstance(value, Mapping):
        return all(_requests_nothing(inner, (*path, key)) for key, inner in value.items())
    return same(value, None, path)
