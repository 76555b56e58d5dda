"""A PUT that is needed, the effect of each change, and the changes that no PUT can make."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from shared.azure.changes.comparison import Leaf
from shared.azure.changes.conditions import ChangeSurroundings, text_of
from shared.azure.changes.field_effects import FIELD_EFFECTS, Effect, FieldEffect, Way
from shared.frozen import dataclass
from shared.json_tree import Json, digest_of
from shared.kubernetes_versions import needs_upgrade, runs_newer

_UNKNOWN = ChangeSurroundings()
_WITHOUT_OLD_VALUE = {Effect.RECREATION: Effect.CHECKED, Effect.REPLACEMENT: Effect.MAY_REPLACE}
"""The effect where the older manifest has no value: the value in Azure is then unknown here."""


def effect_of(path: str, old: Any, new: Any, around: ChangeSurroundings = _UNKNOWN) -> Effect:
    """Return the effect of changing a field of an existing resource from ``old`` to ``new``.

    None and "" stand for no value. ``path`` is that of the manifest: with or without ``spec.``, a node pool
    as ``nodePools[name]``. A condition of which ``around`` knows nothing does not hold.
    """
    entry = field_effect(path)
    if entry is None:
        return Effect.IN_PLACE
    applying = (way.effect for way in entry.ways if _applies(way, old, new, around))
    effect = next(applying, entry.effect)
    made = effect not in (Effect.RECREATION, Effect.REPLACEMENT)
    return Effect.REIMAGED if made and _reimages(entry, around) else effect


def _reimages(entry: FieldEffect, around: ChangeSurroundings) -> bool:
    return bool(entry.reimages_from) and around.version >= entry.reimages_from


def _applies(way: Way, old: Any, new: Any, around: ChangeSurroundings) -> bool:
    covered = way.covers(text_of(old), text_of(new))
    return covered and all(condition.holds(around, old, new) for condition in way.conditions)


def planned_effect(path: str, old: Any, new: Any, around: ChangeSurroundings = _UNKNOWN) -> Effect:
    """Return the effect of a change between two manifests: the older one may lack what Azure has."""
    if text_of(new) == "" and (_leaf(path) not in _REMOVED or _normal(path).startswith(_KEPT)):
        return Effect.UNMANAGED
    if text_of(old) == text_of(new):
        return Effect.IN_PLACE  # ARM ignores the letter case of sizes, ids and enums
    effect = effect_of(path, old, new, around)
    return _WITHOUT_OLD_VALUE.get(effect, effect) if text_of(old) == "" else effect


_REMOVED = (
    *("nodePools[]", "nodePools[].nodeLabels", "nodePools[].nodeTaints"),
    *("nodePools[].minCount", "nodePools[].maxCount"),  # the autoscaler ends
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
    texts = {", ".join(condition.text for condition in way.conditions): None for way in ways}
    wider = [text for text in texts if text and not any(text.startswith(f"{other},") for other in texts)]
    return " or ".join(wider)


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


class ImmutableChange(ValueError):
    """The manifest changes a field that is fixed on the existing resource."""


@dataclass(frozen=True)
class PlannedWrite:
    """A PUT that is needed: its body, and what it changes; nothing where it repeats a failed write."""

    body: dict[str, Any]
    changes: tuple[Leaf, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """The fields that are written, by ARM's names."""
        return tuple(str(leaf) for leaf in self.changes)

    @property
    def digest(self) -> str:
        """Identifies the write by what it changes, because the rest of the body is as Azure has it."""
        return digest_of([[str(leaf), leaf.new] for leaf in self.changes] or self.body)


def profiles_of(live: Json) -> Sequence[Json]:
    """Return the node pools that a cluster shows."""
    return live["properties"].get("agentPoolProfiles") or ()


def is_stopped(live: Json) -> bool:
    """Return whether a cluster is stopped: Azure then allows only a start or a delete; its API is down."""
    return (live["properties"].get("powerState") or {}).get("code") == "Stopped"


def pool_is_stopped(profile: Json) -> bool:
    """Return whether a node pool is stopped, or stopping: it then has no nodes, and shows a count of 0."""
    return (profile.get("powerState") or {}).get("code") == "Stopped"


def is_final(state: str) -> bool:
    """Return whether a provisioning state is final; in any other, Azure is at work and refuses writes."""
    return state in ("Succeeded", "Failed", "Canceled", "")


def last_write_failed(properties: Json) -> bool:
    """Return whether the last write failed: Azure tries again once the same body is written."""
    return properties.get("provisioningState") in ("Failed", "Canceled")


def running_version(properties: Json, name: str) -> str:
    """Return the version that runs; ``name`` is the property with the version that was requested."""
    current = properties.get("current" + name[0].upper() + name[1:])
    return str(current or properties.get(name) or "")


def at_running_version(properties: Json, name: str) -> Json:
    """Return properties that request the running version where an upgrade or a rollback has failed.

    A PUT of the properties as they were read would resume it, whatever git requests by then.
    """
    requested, running = str(properties.get(name) or ""), running_version(properties, name)
    other = needs_upgrade(requested, running) or runs_newer(requested, running)
    return {**properties, name: running} if other else properties


_WAYS_OUT = {
    Effect.RECREATION: "restore the old value, or add a cluster under another name and remove this one",
    Effect.REPLACEMENT: "restore the old value, or add a pool under another name and remove this one",
    Effect.AZURE: "only Azure writes it; remove it from the manifest",
}


def refuse_fixed(
    leaves: Iterable[Leaf], what: str, prefix: str, around: ChangeSurroundings | None = None
) -> None:
    """Raise ImmutableChange for the first difference that no PUT can resolve; ``prefix`` begins its path."""
    for leaf in leaves:
        path = f"{prefix}{leaf}"
        way_out = _WAYS_OUT.get(effect_of(path, leaf.old, leaf.new, around or ChangeSurroundings()))
        if way_out:
            only = missing_conditions(path, leaf.old, leaf.new)
            raise ImmutableChange(
                f"{what}: {leaf} cannot be changed from {leaf.shown_old} to {leaf.new} once it exists"
                f"{f' (Azure changes it only {only})' if only else ''}; {way_out}"
            )
