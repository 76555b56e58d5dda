"""The maintenance windows of a manifest, compared with those of the cluster. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from shared.azure.changes.comparison import overlay, without_left
from shared.azure.changes.exclusive_groups import one_schedule
from shared.azure.differences import Difference
from shared.json_tree import Json, Path
from shared.language.desired import Desired


def window_bodies(desired: Desired, existing: Mapping[str, Json]) -> dict[str, Json]:
    """Return the bodies of the windows to write, by name; ``existing`` are the configurations by name.

    A window that the manifest does not name is left alone, and so are the differences that the job leaves.
    """
    bodies: dict[str, Json] = {}
    for name, body in _wanted(desired).items():
        found = existing.get(name)
        if found is None and _path(name) in desired.left:
            continue
        wanted = without_left(body, _left(desired, name))
        merged, changes = overlay(found or {}, wanted)
        if changes:
            bodies[name] = {"properties": one_schedule(merged, wanted)["properties"]}
    return bodies


def window_differences(desired: Desired, existing: Mapping[str, Json]) -> tuple[Difference, ...]:
    """Return the fields in which the windows of the manifest differ, whatever a job leaves."""
    found: list[Difference] = []
    for name, body in _wanted(desired).items():
        if name not in existing:
            found.append(Difference(_path(name), body["properties"], None))
            continue
        _, changes = overlay(existing[name], body)
        found += [Difference(_path(name, each.path), each.new, each.old) for each in changes]
    return tuple(found)


def _wanted(desired: Desired) -> dict[str, Json]:
    wanted: dict[str, Json] = {}
    for window in desired.spec.maintenance_windows:
        body: dict[str, Any] = window.model_dump(by_alias=True, mode="json", exclude_none=True)
        wanted[str(body.pop("name"))] = {"properties": body}
    return wanted


def _left(desired: Desired, name: str) -> Callable[[Path], bool]:
    return lambda path: _path(name, path) in desired.left


def _path(name: str, path: Path = ()) -> str:
    return ".".join((f"maintenanceWindows[{name}]", *path))
