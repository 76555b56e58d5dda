"""A cluster's spec beside the layers below it: only what they do not say, or say and it does not have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.fleet.aks.comparison import Path, same
from shared.fleet.aks.versions import numbers
from shared.fleet.planning.differences import named
from shared.fleet.resolve.yaml_tree import REMOVED

OURS = ("flux", "deletionProtection", "suspend", "minNodeImageVersion")
"""Fields of which Azure knows nothing: they stay as the layers say."""


def beside(spec: Mapping[str, Any], short: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a cluster's own file has to say on ``base``, so that the whole asks for ``spec``.

    ``short`` is the spec without what means the same unsaid; ``base`` are the merged layers with their
    texts filled in. What the layers say and the cluster does not have is taken away.
    """
    kept = {key: value for key, value in base.items() if key not in OURS}
    version, runs = (numbers(str(said.get("kubernetesVersion") or "")) for said in (kept, spec))
    if version and runs[: len(version)] == version:
        kept["kubernetesVersion"] = spec["kubernetesVersion"]  # "1.33" is met by each of its patches
    return _map(spec, short, kept, ())


def _map(
    full: Mapping[str, Any], short: Mapping[str, Any], base: Mapping[str, Any], path: Path
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key in dict.fromkeys([*full, *base]):
        below = (*path, key)
        if key not in base:
            if key in short:
                found[key] = short[key]
        elif key not in full:
            if not _nothing(base[key], below):
                found[key] = None
        else:
            _value(full[key], short.get(key), base[key], below, found)
    return found


def _value(full: Any, short: Any, base: Any, path: Path, found: dict[str, Any]) -> None:
    if isinstance(full, Mapping) and isinstance(base, Mapping):
        said = _map(full, short if isinstance(short, Mapping) else {}, base, path)
        if said:
            found[path[-1]] = said
    elif named(full) and named(base):
        items = _items(full, short if named(short) else [], base)
        if items:
            found[path[-1]] = items
    elif not (same(full, base, path) and same(base, full, path)):
        found[path[-1]] = full


def _items(full: list[Any], short: list[Any], base: list[Any]) -> list[dict[str, Any]]:
    brief = {item["name"]: item for item in short}
    below = {item["name"]: item for item in base}
    found = []
    for item in full:
        name = item["name"]
        said = _map(item, brief.get(name, {}), below[name], ()) if name in below else brief.get(name, item)
        if said:
            found.append({"name": name, **said})
    names = {item["name"] for item in full}
    return [*found, *({"name": name, REMOVED[0]: REMOVED[1]} for name in below if name not in names)]


def _nothing(value: Any, path: Path) -> bool:
    """Tell whether a layer asks for nothing, so that there is nothing to take away."""
    if isinstance(value, Mapping):
        return all(_nothing(inner, (*path, key)) for key, inner in value.items())
    return same(value, None, path)
