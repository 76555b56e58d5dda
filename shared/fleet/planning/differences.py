"""The fields in which two cluster documents differ, and what changing each of them does."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from shared.fleet.aks.change_effects import Effect, planned_effect
from shared.fleet.aks.comparison import alike

_POOL = re.compile(r"nodePools\[[^\]]*\]")


@dataclass(frozen=True)
class Change:
    """A field that differs: its path, and both values as short text, "" for no value.

    ``effect`` is "" before the planner has determined it; ``source`` is the "file:line" of the new value.
    """

    path: str
    old: str
    new: str
    effect: Effect | Literal[""] = ""
    source: str = ""

    @property
    def destroys(self) -> bool:
        """Whether the change removes running nodes, or the cluster."""
        return self.effect in (Effect.POOL_DELETED, Effect.ROTATION, Effect.RECREATION)


def effect_of_change(change: Change) -> Effect:
    """Return what a change of a cluster's document does in Azure."""
    path = change.path.removeprefix("spec.")
    if _POOL.fullmatch(path):
        return Effect.POOL_CREATED if change.new else Effect.POOL_DELETED
    return Effect.IN_PLACE if path == change.path else planned_effect(path, change.old, change.new)


def differences(old: Any, new: Any, path: str = "") -> Iterator[Change]:
    """Yield every leaf in which two JSON values differ; items of a list that have names are paired by name.

    A different order counts only where order has a meaning: in a list of taints it has none.
    """
    if _compared_by_field(old, new, path):
        before, after = old or {}, new or {}
        for key in sorted({*before, *after}):
            yield from differences(before.get(key), after.get(key), f"{path}.{key}" if path else key)
    elif named(old) and named(new):
        before, after = ({item["name"]: item for item in side} for side in (old, new))
        for name in dict.fromkeys([*before, *after]):
            yield from differences(before.get(name), after.get(name), f"{path}[{name}]")
    elif not alike(old, new, tuple(path.split("."))):
        yield Change(path, _short(old), _short(new))


def _compared_by_field(old: Any, new: Any, path: str) -> bool:
    """Return whether two values are compared field by field: two objects, or one that is added or removed.

    An item of a named list that is added or removed, such as a node pool, is one change.
    """
    both = isinstance(old, Mapping) and isinstance(new, Mapping)
    one = bool(old or new) and all(value is None or isinstance(value, Mapping) for value in (old, new))
    return both or (one and not path.endswith("]"))


def named(value: Any) -> bool:
    """Return whether a value is a list of objects with names."""
    return isinstance(value, list) and all(isinstance(item, Mapping) and "name" in item for item in value)


def _short(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, Mapping) and "name" in value:
        return str(value["name"])
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:77] + "..."
