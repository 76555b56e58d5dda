"""What happens to each field that differs: the policy of the manifest, and what no policy may start."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from shared.fleet.aks.change_conditions import Surroundings
from shared.fleet.aks.change_effects import effect_of
from shared.fleet.aks.field_effects import Effect
from shared.fleet.drift.differences import Difference
from shared.fleet.json_tree import Json
from shared.fleet.manifests.cluster.drift import DriftAction, DriftPolicy, DriftRule

MAX_CORRECTIONS = 3
"""After so many corrections of the same drift, something changes it back."""
_HARMLESS = (Effect.IN_PLACE, Effect.POOL_CREATED)
_IMAGE, _VERSIONS = ".minNodeImageVersion", ("kubernetesVersion", ".orchestratorVersion")
_BY_HAND = "`roadstead replay` does it"


@dataclass(frozen=True)
class Decided:
    """A difference, what happens to it, and why that is not what the policy asks for; "" where it is."""

    difference: Difference
    action: DriftAction
    note: str = ""

    @property
    def path(self) -> str:
        """The field that differs."""
        return self.difference.path


def decide(
    differences: Sequence[Difference],
    policy: DriftPolicy | None,
    existing: Json,
    *,
    exhausted: Collection[str],
    now: datetime,
) -> list[Decided]:
    """Return what happens to each difference of a cluster.

    ``exhausted`` are the fields that were corrected too often to no avail. A job writes the version of a
    cluster before anything else, so nothing is corrected while that is left to a person.
    """
    decided = [_decided(each, policy or DriftPolicy(), existing, exhausted, now) for each in differences]
    versions = [each.path for each in decided if _is_version(each.difference)]
    if not versions:
        return decided
    note = f"not corrected while {versions[0]} differs"
    return [
        replace(each, action=DriftAction.REPORT, note=note) if each.action is DriftAction.CORRECT else each
        for each in decided
    ]


def _decided(
    difference: Difference,
    policy: DriftPolicy,
    existing: Json,
    exhausted: Collection[str],
    now: datetime,
) -> Decided:
    rules = [rule for rule in policy.rules if rule.covers(difference.path)]
    wanted = _careful(rule.action for rule in rules if not rule.expired(now)) or DriftAction(policy.action)
    note = next((_expired(rule) for rule in rules if rule.expired(now)), "")
    if wanted is not DriftAction.CORRECT:
        return Decided(difference, wanted, note if wanted is DriftAction.REPORT else "")
    obstacle = _obstacle(difference, existing, exhausted)
    if obstacle:
        return Decided(difference, DriftAction.REPORT, "; ".join(filter(None, (note, obstacle))))
    return Decided(difference, DriftAction.CORRECT, note)


def _careful(actions: Iterable[str]) -> DriftAction | None:
    """Return the action that changes least, None for none."""
    order = list(DriftAction)
    return min(map(DriftAction, actions), key=order.index, default=None)


def _expired(rule: DriftRule) -> str:
    return f"the exemption {rule.name} of {rule.owner} ended on {rule.expires}"


def _obstacle(difference: Difference, existing: Json, exhausted: Collection[str]) -> str:
    """Return why a difference is not corrected, "" when it is."""
    if difference.left_alone:
        return "not corrected: no job changes it"
    if difference.path in exhausted:
        return f"something changes it back: it was corrected {MAX_CORRECTIONS} times"
    effect = _effect(difference, existing)
    if effect not in _HARMLESS:
        return f"not corrected by itself ({effect}): {_BY_HAND}"
    return ""


def _effect(difference: Difference, existing: Json) -> Effect:
    """Return what writing the value of git does."""
    path, properties = difference.path, existing["properties"]
    if path.endswith(_IMAGE):
        return Effect.REIMAGED
    if path.startswith("nodePools[") and path.endswith("]"):
        return Effect.POOL_CREATED if difference.live is None else Effect.POOL_DELETED
    around = Surroundings(properties, properties, _pool(path, properties))
    return effect_of(path, difference.live, difference.git, around)


def _pool(path: str, properties: Json) -> Mapping[str, object]:
    name = path.partition("[")[2].partition("]")[0]
    pools = properties.get("agentPoolProfiles") or ()
    return next((pool for pool in pools if pool["name"] == name), {})


def _is_version(difference: Difference) -> bool:
    return difference.path.endswith(_VERSIONS) and not difference.left_alone
