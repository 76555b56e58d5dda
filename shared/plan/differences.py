"""The fields in which two cluster documents differ, and what changing each of them does."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any, Literal

from shared.azure.changes.comparison import alike
from shared.azure.changes.conditions import ChangeSurroundings
from shared.azure.changes.field_effects import Effect
from shared.azure.changes.writes import planned_effect
from shared.azure.running_versions import CONTROL_PLANE, UNKNOWN, RunningVersions
from shared.frozen import dataclass
from shared.json_tree import Children, Json, Path, children, differing, path_text
from shared.kubernetes_versions import is_version, needs_upgrade, stays_newer
from shared.language.pin import short_commit
from shared.masking import without_secrets

_PIN = re.compile(r"(systems\[[^\]]*\]\.)?pin\.([a-z]+)")
_POOL = re.compile(r"nodePools\[([^\]]*)\](.*)", re.DOTALL)


_DESTROYING = (*(Effect.POOL_DELETED, Effect.REPLACEMENT, Effect.NODES_DELETED, Effect.NAMESPACES_DELETED),)
_NAMESPACES = re.compile(r"systems\[[^\]]*\](\.namespaces)?")


@dataclass(frozen=True)
class FieldChange:
    """A field that differs: its path, and both values as short text, "" for no value.

    ``effect`` is decided from the whole values; ``source`` is the "file:line" of the new value, "" before the
    planner has added it.
    """

    path: str
    old: str
    new: str
    effect: Effect | Literal[""] = ""
    source: str = ""

    @property
    def destroys(self) -> bool:
        """Whether the change removes nodes or namespaces for good; a refused or reimaging one does not."""
        return self.effect in _DESTROYING


_IMAGE = "minNodeImageVersion"


def differences(old: Any, new: Any, runs: RunningVersions = UNKNOWN) -> Iterator[FieldChange]:
    """Yield every leaf in which two JSON values differ; items of a list that have names are paired by name.

    The order of a list counts only where it has a meaning; for taints it has none. ``runs`` are the versions
    that the cluster ran when it was read last.
    """
    pairs = differing(
        *map(_with_systems, (old, new)),
        below=_fields,
        equal=lambda path, value, other: alike(value, other, path),
    )
    specs = _spec(old), _spec(new)
    return (_change(path_text(path), before, after, specs, runs) for path, before, after in pairs)


def is_commit(path: str) -> bool:
    """Return whether a path is that of a commit that Flux pulls: no file has it."""
    found = _PIN.fullmatch(path)
    return found is not None and found[2] == "commit"


def is_beside_commit(path: str) -> bool:
    """Return whether a path is of what goes with the commit of a pin."""
    return _PIN.fullmatch(path) is not None and not is_commit(path)


def _with_systems(document: Any) -> Any:
    """Return a cluster's document with a list of systems, so that each one is a difference of its own."""
    if isinstance(document, Mapping) and "spec" in document:
        return {**document, "systems": document.get("systems") or []}
    return document


def _spec(document: Any) -> Json:
    spec = document.get("spec") if isinstance(document, Mapping) else None
    return spec if isinstance(spec, Mapping) else {}


def _change(path: str, old: Any, new: Any, specs: tuple[Json, Json], runs: RunningVersions) -> FieldChange:
    if is_commit(path):
        old, new = (commit and short_commit(commit) for commit in (old, new))
    # A pool without a version of its own follows its control plane's.
    wanted = new or specs[1].get(CONTROL_PLANE) if is_version(path) else new
    effect, field = _effect(path, old, wanted, specs), path.removeprefix("spec.")
    if is_version(path) and _lowered(field, old, wanted, specs[0], runs):
        effect = Effect.ROLLED_BACK if _rolls_back(path, specs) else Effect.NEVER_LOWERED
    elif is_version(path) and runs.has_version(field, str(wanted or ""), *specs):
        effect = Effect.RUNS_ALREADY
    elif field == _IMAGE and effect is Effect.REIMAGED:
        raised = needs_upgrade(str(new), str(old)) if old else True
        already = Effect.RUNS_ALREADY if runs.has_image(str(new), specs[1]) else effect
        effect = already if raised else Effect.IN_PLACE
    return FieldChange(path, _short(old), _short(new), effect)


def _lowered(field: str, old: Any, new: Any, before: Json, runs: RunningVersions) -> bool:
    """Return whether a version is to go down; a pool without one of its own follows its control plane's."""
    had = str(old or before.get(CONTROL_PLANE, ""))
    return stays_newer(str(new or ""), had, runs.version_at(field))


def _rolls_back(path: str, specs: tuple[Json, Json]) -> bool:
    """Return whether a version goes down because a commit asks for a rollback of its pool."""
    pool = _POOL.fullmatch(path.removeprefix("spec."))
    before, after = (
        [p for p in spec.get("nodePools") or () if pool and p.get("name") == pool[1]] for spec in specs
    )
    asked = [document.get("rollback") for document in after]
    return any(asked) and asked != [document.get("rollback") for document in before]


def _effect(path: str, old: Any, new: Any, specs: tuple[Json, Json]) -> Effect:
    """Return what a change of a field of a cluster's document does in Azure."""
    if _NAMESPACES.fullmatch(path):
        lost = new is None or (isinstance(old, list) and bool({*old} - {*new}))
        return Effect.NAMESPACES_DELETED if lost else Effect.IN_PLACE
    field = path.removeprefix("spec.")
    pool = _POOL.fullmatch(field)
    if pool and not pool[2]:
        return Effect.POOL_DELETED if new is None else Effect.POOL_CREATED
    if field == path:
        return Effect.IN_PLACE
    pools = {pool.get("name"): pool for pool in specs[1].get("nodePools") or ()}
    return planned_effect(field, old, new, ChangeSurroundings(*specs, pools.get(pool[1], {}) if pool else {}))


def _fields(path: Path, old: Any, new: Any) -> Children | None:
    """Pair the fields of two values; also those of an object that is added or removed as a whole."""
    is_item = bool(path) and path[-1].endswith("]")
    objects = bool(old or new) and all(value is None or isinstance(value, Mapping) for value in (old, new))
    if objects and not is_item:
        old, new = old or {}, new or {}
    pairs = children(old, new)
    return sorted(pairs, key=itemgetter(0)) if pairs and isinstance(old, Mapping) else pairs


def _short(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, Mapping) and "name" in value:
        spaces = value.get("namespaces")  # those of a system
        return f"{value['name']} ({', '.join(spaces)})" if spaces else str(value["name"])
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) <= 80:
        return text
    safe = without_secrets(text)
    return safe if len(safe) <= 80 else f"{safe[:38]}...{safe[-39:]}"
