"""What happens to each field that differs: policy, exemptions, and what needs an approval.

A correction that replaces or deletes a node pool, or reimages, deletes or stops nodes, waits until somebody
approves exactly it. No job recreates a cluster because of a field.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from shared.azure.changes.conditions import ChangeSurroundings
from shared.azure.changes.field_effects import Effect
from shared.azure.changes.writes import effect_of
from shared.azure.companions.companion_kinds import kind_of
from shared.azure.differences import Difference
from shared.frozen import dataclass, replace
from shared.json_tree import Json
from shared.kubernetes_versions import is_version
from shared.language.model.cluster.drift import DriftAction, DriftPolicy, DriftRule
from shared.language.resolve.desired_fleet import DesiredFleet, warnings_in
from shared.language.resolve.problems import Problem
from shared.sentences import days_until

MAX_CORRECTIONS = 3
"""After so many corrections of the same drift, something changes it back."""
_HARMLESS = (Effect.IN_PLACE, Effect.LATER_NODES, Effect.POOL_CREATED)
_BY_APPROVAL = (
    *(Effect.REPLACEMENT, Effect.POOL_DELETED),
    *(Effect.REIMAGED, Effect.NODES_DELETED, Effect.NODES_STOPPED, Effect.INTERRUPTED, Effect.EGRESS),
)
_NOT_WRITTEN = (Effect.AZURE, Effect.RECREATION, Effect.REPLACEMENT, Effect.MAY_REPLACE)
"""Changes of a manifest that nobody makes by accident, whatever Azure has already."""
_IMAGE = ".minNodeImageVersion"
_CONTINUED = (DriftAction.APPROVE, DriftAction.CORRECT)


@dataclass(frozen=True)
class DriftDecision:
    """A difference, what happens to it, and why that is not what the policy asks for; "" where it is.

    ``effect`` is what writing git's value does, where that needs an approval; "" otherwise.
    """

    difference: Difference
    action: DriftAction
    note: str = ""
    effect: str = ""

    @property
    def path(self) -> str:
        """The field that differs."""
        return self.difference.path


def decide(
    differences: Sequence[Difference],
    policy: DriftPolicy | None,
    live: Json,
    *,
    pools: Mapping[str, Json],
    exhausted: Collection[str],
    now: datetime,
) -> list[DriftDecision]:
    """Return what happens to each difference of a cluster.

    ``pools`` are the node pools in Azure by the names that the manifest has for them. ``exhausted`` are the
    fields that were corrected too often to no avail. A job writes the version of a cluster before anything
    else: nothing is corrected while that is left to a person, and everything waits for the approval that it
    needs.
    """
    decided = [
        _decided(
            difference,
            policy or DriftPolicy(),
            _surroundings(difference.path, live, pools),
            exhausted,
            now,
        )
        for difference in differences
    ]
    versions = [
        decision for decision in decided if is_version(decision.path) and not decision.difference.left_alone
    ]
    left = next((version for version in versions if version.action not in _CONTINUED), None)
    if left:
        return [_not_while(left, decision) for decision in decided]
    if versions:
        return [_with_the_version(decision) for decision in decided]
    return [_without_half_pools(decision, decided) for decision in decided]


def released(decided: Sequence[DriftDecision]) -> list[DriftDecision]:
    """Return what happens to each difference once the corrections that need it are approved."""
    return [
        replace(decision, action=DriftAction.CORRECT) if decision.action is DriftAction.APPROVE else decision
        for decision in decided
    ]


def uncorrected(decided: Sequence[DriftDecision], why: str) -> list[DriftDecision]:
    """Return what happens to each difference of a cluster of which nothing is corrected now."""
    return [_reported(decision, why) if decision.action in _CONTINUED else decision for decision in decided]


def only_reported(decided: Sequence[DriftDecision], when: str) -> list[DriftDecision]:
    """Return what happens to each difference of a cluster that does not have its newest generation.

    Its live values are not proposed either: they may be those that the commit has just changed.
    """
    noted = {DriftAction.PROPOSE: "not proposed", **dict.fromkeys(_CONTINUED, "not corrected")}
    return [
        _reported(decision, f"{noted[decision.action]} {when}") if decision.action in noted else decision
        for decision in decided
    ]


def _reported(decided: DriftDecision, why: str) -> DriftDecision:
    return DriftDecision(decided.difference, DriftAction.REPORT, why)


def _not_while(other: DriftDecision, decided: DriftDecision) -> DriftDecision:
    """Return a difference that is not corrected while another one is left as it is."""
    if decided.action not in _CONTINUED:
        return decided
    return _reported(decided, f"not corrected while {other.path} differs")


def _with_the_version(decided: DriftDecision) -> DriftDecision:
    """Return a difference that is corrected by the job that writes the version, and not before."""
    if decided.action is not DriftAction.CORRECT:
        return decided
    return replace(decided, action=DriftAction.APPROVE, effect=Effect.IN_PLACE.value)


def _without_half_pools(decided: DriftDecision, others: Sequence[DriftDecision]) -> DriftDecision:
    """Return a difference; a pool is not replaced while another field of it is left as it is.

    A new pool has every value of git, and nothing that somebody added.
    """
    if decided.effect != Effect.REPLACEMENT:
        return decided
    pool = f"{decided.path.partition('.')[0]}."
    same_pool = (
        decision
        for decision in others
        if decision.path.startswith(pool) and decision.action not in _CONTINUED
    )
    left = next(same_pool, None)
    return _not_while(left, decided) if left else decided


def _decided(
    difference: Difference,
    policy: DriftPolicy,
    around: ChangeSurroundings,
    exhausted: Collection[str],
    now: datetime,
) -> DriftDecision:
    wanted = _wanted(policy, difference.path, now)
    if wanted is DriftAction.IGNORE:
        return DriftDecision(difference, wanted)
    rules = [rule for rule in policy.rules if rule.covers(difference.path)]
    note = next((_expired(rule) for rule in rules if rule.expired(now)), "")
    if wanted is DriftAction.PROPOSE:
        obstacle = _obstacle_to_proposal(difference, around)
        action = DriftAction.REPORT if obstacle else wanted
        return DriftDecision(difference, action, "; ".join(filter(None, (note, obstacle))))
    if wanted is not DriftAction.CORRECT:
        return DriftDecision(difference, wanted, note if wanted is DriftAction.REPORT else "")
    effect = _effect(difference, around)
    obstacle = _obstacle(difference, effect, exhausted)
    if obstacle:
        return DriftDecision(difference, DriftAction.REPORT, "; ".join(filter(None, (note, obstacle))))
    if effect in _HARMLESS:
        return DriftDecision(difference, DriftAction.CORRECT, note)
    return DriftDecision(difference, DriftAction.APPROVE, note, effect.value)


def ignores(policy: DriftPolicy | None, path: str, now: datetime) -> bool:
    """Return whether a policy has it that nothing is said of a field that differs."""
    return policy is not None and _wanted(policy, path, now) is DriftAction.IGNORE


def _wanted(policy: DriftPolicy, path: str, now: datetime) -> DriftAction:
    """Return what a policy asks for of a field."""
    if policy.is_of_azure_policy(path):
        return DriftAction.IGNORE
    rules = (rule for rule in policy.rules if rule.covers(path) and not rule.expired(now))
    return _careful(rule.action for rule in rules) or DriftAction(policy.action)


def _careful(actions: Iterable[str]) -> DriftAction | None:
    """Return the action that changes least, None for none."""
    order = list(DriftAction)
    return min(map(DriftAction, actions), key=order.index, default=None)


def _expired(rule: DriftRule) -> str:
    return f"the exemption {rule.name} of {rule.owner} ended on {rule.expires}"


def _obstacle(difference: Difference, effect: Effect, exhausted: Collection[str]) -> str:
    """Return why a difference is not corrected, also if somebody approves it; "" when it is."""
    if difference.left_alone:
        return "not corrected: no job changes it"
    if difference.path in exhausted:
        return f"something changes it back: it was corrected {MAX_CORRECTIONS} times"
    if effect not in (*_HARMLESS, *_BY_APPROVAL):
        return f"not corrected ({effect}): no job does that"
    return ""


def _obstacle_to_proposal(difference: Difference, around: ChangeSurroundings) -> str:
    """Return why no pull request takes the value of Azure into the manifest, "" when one does."""
    if _is_pool(difference.path):
        return "no pull request: one changes fields, and adds or removes no node pool"
    kind = kind_of(difference.path)
    if kind:
        return f"no pull request: a {kind.noun} is taken into the manifest by hand"
    if difference.path.endswith(_IMAGE):
        return "no pull request: a manifest names the oldest image that is allowed, and not the present one"
    effect = effect_of(difference.path, difference.git, difference.live, around)
    if effect in _NOT_WRITTEN:
        return f"no pull request: a commit that changes this field is planned as: {effect}"
    return ""


def _effect(difference: Difference, around: ChangeSurroundings) -> Effect:
    """Return what writing the value of git does."""
    path = difference.path
    if path.endswith(_IMAGE):
        return Effect.REIMAGED
    if _is_pool(path):
        return Effect.POOL_CREATED if difference.live is None else Effect.POOL_DELETED
    return effect_of(path, difference.live, difference.git, around)


def _is_pool(path: str) -> bool:
    return path.startswith("nodePools[") and path.endswith("]")


def _surroundings(path: str, live: Json, pools: Mapping[str, Json]) -> ChangeSurroundings:
    properties, name = live["properties"], path.partition("[")[2].partition("]")[0]
    return ChangeSurroundings(properties, properties, pools.get(name, {}))


# Node pools that are stopped and are to be awake, as the sleep of their cluster has it: they are started.

_POWER = re.compile(r"nodePools\[[^\]]*\]\.powerState")


def with_pools_started(decided: list[DriftDecision], exhausted: Collection[str]) -> list[DriftDecision]:
    """Return what happens to each difference where stopped pools are started, whatever the policy.

    Not where the policy ignores that, where it was done too often, or where a version is left to a person,
    because a job writes that before anything else.
    """
    versions = (found for found in decided if is_version(found.path) and not found.difference.left_alone)
    if any(version.action not in _CONTINUED for version in versions):
        return decided

    def is_started(found: DriftDecision) -> bool:
        stopped = _POWER.match(found.path) is not None and found.difference.live == "Stopped"
        return stopped and found.action is not DriftAction.IGNORE and found.path not in exhausted

    return [
        DriftDecision(found.difference, DriftAction.CORRECT) if is_started(found) else found
        for found in decided
    ]


def starts_only_pools(decided: Sequence[DriftDecision]) -> bool:
    """Return whether a job that corrects differences starts node pools, and does nothing else."""
    wanted = [found for found in decided if found.action is DriftAction.CORRECT]
    return bool(wanted) and all(_POWER.match(found.path) for found in wanted)


# The exemptions of drift policies that have ended, or will soon. Pure: the day is an argument.

AHEAD = timedelta(days=30)
"""So long before its last day an exemption is warned of."""


def exemption_warnings(desired: DesiredFleet, names: Iterable[str], today: date) -> list[Problem]:
    """Return a warning for each exemption of these clusters that has ended, or will within ``AHEAD``."""
    return warnings_in(desired, names, lambda spec: _near(spec, today))


def _near(spec: Mapping[str, Any], today: date) -> Iterator[tuple[tuple[str, ...], str]]:
    for rule in (spec.get("drift") or {}).get("rules") or ():
        if rule["action"] == DriftAction.IGNORE and date.fromisoformat(rule["expires"]) - today <= AHEAD:
            yield ("drift", "rules", str(rule["name"]), "expires"), _sentence(rule, today)


def _sentence(rule: Mapping[str, Any], today: date) -> str:
    """Return what ends when, who answers for it, and what to do."""
    last = date.fromisoformat(rule["expires"])
    what = f"the exemption {rule['name']} of {rule['owner']} ({rule['reason']})"
    if today > last:
        return f"{what} ended on {last}, and its fields are reported again: remove it, or set a later day"
    when = days_until(last, today)
    return f"{what} ends {when}, on {last}; from then on its fields are reported: decide what follows"
