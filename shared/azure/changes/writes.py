"""A PUT that is needed, and the changes that no PUT can make."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from shared.azure.changes.comparison import Leaf
from shared.azure.changes.conditions import Surroundings
from shared.azure.changes.effects import effect_of, missing_conditions
from shared.azure.changes.field_effects import Effect
from shared.frozen import dataclass
from shared.json_tree import Json, digest_of
from shared.kubernetes_versions import needs_upgrade, runs_newer


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


def refuse_fixed(leaves: Iterable[Leaf], what: str, prefix: str, around: Surroundings | None = None) -> None:
    """Raise ImmutableChange for the first difference that no PUT can resolve; ``prefix`` begins its path."""
    for leaf in leaves:
        path = f"{prefix}{leaf}"
        way_out = _WAYS_OUT.get(effect_of(path, leaf.old, leaf.new, around or Surroundings()))
        if way_out:
            only = missing_conditions(path, leaf.old, leaf.new)
            raise ImmutableChange(
                f"{what}: {leaf} cannot be changed from {leaf.shown_old} to {leaf.new} once it exists"
                f"{f' (Azure changes it only {only})' if only else ''}; {way_out}"
            )
