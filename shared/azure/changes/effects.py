"""The effect of one change of an existing cluster, from the table of fields and what surrounds the change."""

from __future__ import annotations

import re
from typing import Any

from shared.azure.changes.conditions import Surroundings, text_of
from shared.azure.changes.field_effects import FIELD_EFFECTS, Effect, FieldEffect, Way

_UNKNOWN = Surroundings()
_WITHOUT_OLD_VALUE = {Effect.RECREATION: Effect.CHECKED, Effect.REPLACEMENT: Effect.MAY_REPLACE}
"""The effect where the older manifest has no value: the value in Azure is then unknown here."""


def effect_of(path: str, old: Any, new: Any, around: Surroundings = _UNKNOWN) -> Effect:
    """Return the effect of changing a field of an existing resource from ``old`` to ``new``.

    None and "" stand for no value. ``path`` is that of the manifest: with or without ``spec.``, a node pool
    as ``nodePools[name]``. A condition of which ``around`` knows nothing does not hold.
    """
    entry = field_effect(path)
    if entry is None:
        return Effect.IN_PLACE
    applying = (way.effect for way in entry.ways if _applies(way, old, new, around))
    effect = next(applying, entry.effect)
    reimages = entry.reimages_from and around.version >= entry.reimages_from
    return Effect.REIMAGED if effect is Effect.IN_PLACE and reimages else effect


def _applies(way: Way, old: Any, new: Any, around: Surroundings) -> bool:
    covered = way.covers(text_of(old), text_of(new))
    return covered and all(condition.holds(around, old, new) for condition in way.conditions)


def planned_effect(path: str, old: Any, new: Any, around: Surroundings = _UNKNOWN) -> Effect:
    """Return the effect of a change between two manifests: the older one may lack what Azure has."""
    if text_of(new) == "" and (_leaf(path) not in _REMOVED or _normal(path).startswith(_KEPT)):
        return Effect.UNMANAGED
    if text_of(old) == text_of(new):
        return Effect.IN_PLACE  # ARM ignores the letter case of sizes, ids and enums
    effect = effect_of(path, old, new, around)
    return _WITHOUT_OLD_VALUE.get(effect, effect) if text_of(old) == "" else effect


_REMOVED = (
    *("nodePools[]", "nodePools[].nodeLabels", "nodePools[].nodeTaints"),
    *(
        "identities[]",
        "federatedCredentials[]",
        "roleAssignments[]",
        "policies[]",
        "bootstrapSecrets[]",
        "flux",
    ),
    *("suspend", "drift", "lifetime", "expires", "lifetimeEnd", "sleep"),
)
"""What is removed when git no longer has it: from Azure, from the cluster, or from what Roadstead does."""
_KEPT = ("flux.extension.configurationSettings", "flux.extension.releaseTrain")
"""What of that stays in Azure."""


def missing_conditions(path: str, old: Any, new: Any) -> str:
    """Return the circumstances in which Azure would make a fixed change, "" where it never does."""
    entry = field_effect(path)
    ways = [way for way in entry.ways if way.covers(text_of(old), text_of(new))] if entry else []
    texts = (", ".join(condition.text for condition in way.conditions) for way in ways)
    return " or ".join(dict.fromkeys(filter(None, texts)))


def field_effect(path: str) -> FieldEffect | None:
    """Return the entry of a field, None when it is changed in place."""
    keys = _normal(path).split(".")
    return next((entry for entry in FIELD_EFFECTS if _covers(entry.pattern.split("."), keys)), None)


def _covers(pattern: list[str], keys: list[str]) -> bool:
    return len(pattern) <= len(keys) and all(p in ("*", key) for p, key in zip(pattern, keys, strict=False))


def _normal(path: str) -> str:
    path = path.removeprefix("spec.")
    path = re.sub(r"\[[^\]]*\]", "[]", path)
    return path.replace("azure.properties.", "")


def _leaf(path: str) -> str:
    keys = _normal(path).split(".")
    return ".".join(keys[:2]) if keys[0] == "nodePools[]" else keys[0]
