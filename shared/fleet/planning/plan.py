"""The plan: what a commit will do to each cluster, decided from git and the recorded state alone."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from operator import itemgetter
from typing import Any, Protocol

from shared.fleet.aks.change_effects import Effect, planned_effect
from shared.fleet.aks.comparison import alike
from shared.fleet.desired import normalised
from shared.fleet.json_tree import Children, Path, children, differing, path_text
from shared.fleet.resolve.desired_fleet import DesiredFleet

BEING_DELETED = "it is still being deleted; it will be created again once that has finished"
POOL_DELETED = "the node pool is deleted"


class Action(StrEnum):
    """What happens to a cluster."""

    CREATE = "create"
    ADOPT = "adopt"
    UPDATE = "update"
    DELETE = "delete"
    RETRY = "retry"
    UNCHANGED = "unchanged"
    HELD = "held"
    REFUSED = "refused"
    INVALID = "invalid"


class Recorded(Protocol):
    """What the planner needs to know of a cluster's row."""

    @property
    def document(self) -> Mapping[str, Any]:
        """The stored form of the last accepted ``Desired``."""

    @property
    def digest(self) -> str:
        """Its digest."""

    @property
    def generation(self) -> int:
        """How many specs were accepted so far."""

    @property
    def uid(self) -> str:
        """Which life of that name this is."""

    @property
    def deleting(self) -> bool:
        """Whether an accepted commit removed the cluster."""

    @property
    def retryable_failure(self) -> bool:
        """Whether its job failed over something that may have passed by now, or is a delete."""


@dataclass(frozen=True)
class Change:
    """One field that differs: its path and both values as short text; "" where there is none.

    ``effect`` is what the change does, in words; ``source`` the "file:line" that the new value is from.
    """

    path: str
    old: str
    new: str
    effect: str = ""
    source: str = ""

    @property
    def destroys(self) -> bool:
        """Whether nodes that run, or the cluster, would be gone."""
        return self.effect in (POOL_DELETED, Effect.ROTATION, Effect.RECREATION)


@dataclass(frozen=True)
class Item:
    """A cluster's part of the plan; (``uid``, ``generation``) is what it will have, or has.

    ``held_delete``: a delete that a guard holds until a person approves it.
    """

    cluster: str
    action: Action
    generation: int = 0
    uid: str = ""
    changes: tuple[Change, ...] = ()
    reason: str = ""
    held_delete: bool = False

    @property
    def awaits_deletion(self) -> bool:
        """Whether the cluster is wanted again as soon as its deletion has finished."""
        return self.reason == BEING_DELETED

    @property
    def acts(self) -> bool:
        """Whether a job follows."""
        return self.begins or self.action in (Action.UPDATE, Action.DELETE, Action.RETRY)

    def same_as(self, begun: Item) -> bool:
        """Tell whether nothing is to be done now because this earlier item was accepted."""
        unchanged = self.action is Action.UNCHANGED
        return unchanged and (self.uid, self.generation) == (begun.uid, begun.generation)

    @property
    def begins(self) -> bool:
        """Whether a cluster's first job follows: it is made, or one that is there is taken over."""
        return self.action in (Action.CREATE, Action.ADOPT)


@dataclass(frozen=True)
class Plan:
    """What a commit will do. ``applied`` once every item's job was handed over."""

    commit: str
    items: tuple[Item, ...] = ()
    problems: tuple[str, ...] = ()
    applied: bool = False

    @property
    def held_deletes(self) -> frozenset[str]:
        """The clusters whose deletes wait for an approval: exactly this set, at exactly this commit."""
        return frozenset(item.cluster for item in self.items if item.held_delete)

    @property
    def counts(self) -> Mapping[str, int]:
        """How many clusters each action has."""
        return Counter(item.action.value for item in self.items)

    @property
    def summary(self) -> str:
        """The counts in words, as "2 create, 1 delete, 5 unchanged"."""
        counts = self.counts
        return ", ".join(f"{counts[a]} {a}" for a in Action if a in counts) or "no clusters"

    def resume(self, earlier: Plan | None) -> Plan:
        """Take over what an interrupted attempt at the same commit had begun.

        What it already accepted looks unchanged now; it must still be reported, and its job re-sent. So it
        is with a plan that was carried out, and is made once more: it still says what the commit did.
        """
        if earlier is None or earlier.commit != self.commit:
            return self
        begun = {item.cluster: item for item in earlier.items if item.acts}
        now = {item.cluster for item in self.items}
        items = [
            begun[item.cluster] if item.cluster in begun and item.same_as(begun[item.cluster]) else item
            for item in self.items
        ]
        # A delete that was accepted and finished meanwhile has no row any more.
        items += [item for name, item in begun.items() if name not in now]
        return Plan(self.commit, tuple(items), self.problems)


def make_plan(
    commit: str,
    desired: DesiredFleet,
    recorded: Mapping[str, Recorded],
    *,
    now: datetime,
    approved: frozenset[str] = frozenset(),
) -> Plan:
    """Return the plan; it deletes nothing that a guard, a problem or a protection forbids.

    ``approved`` are the clusters whose deletion a person has approved at this very commit; ``now`` tells
    whether a suspension has ended.
    """
    items = [
        _kept(name, desired, recorded.get(name)) for name in sorted({*desired.clusters, *desired.invalid})
    ]
    gone = [name for name in sorted(recorded) if name not in desired.clusters and name not in desired.invalid]
    items += _removed(gone, desired, recorded, approved, now)
    return Plan(
        commit,
        tuple(sorted(items, key=lambda item: item.cluster)),
        tuple(str(problem) for problem in desired.problems),
    )


def _kept(name: str, desired: DesiredFleet, record: Recorded | None) -> Item:
    if name in desired.invalid:
        first = str(desired.invalid[name][0])
        if record is None:
            return Item(name, Action.INVALID, reason=first)
        return _still(record, name, Action.INVALID, f"{first} (the cluster stays at its last good spec)")
    cluster = desired.clusters[name]
    if record is None:
        return Item(name, Action.ADOPT if cluster.adopt else Action.CREATE, 1)
    if record.deleting:
        return _still(record, name, Action.RETRY if record.retryable_failure else Action.HELD, BEING_DELETED)
    same = _still(record, name, Action.RETRY if record.retryable_failure else Action.UNCHANGED)
    if cluster.digest == record.digest:
        return same
    before, document = normalised(record.document), cluster.document()
    if alike(before, document):
        return same
    moved = _moved(before, document)
    if moved:
        return _still(record, name, Action.HELD, moved)
    found = (change for change in differences(before, document) if change.path not in _PLACES)
    changes = tuple(_told(change, name, desired) for change in found)
    refused = _refused(changes)
    if refused:
        return Item(name, Action.REFUSED, record.generation, record.uid, changes, refused)
    return Item(name, Action.UPDATE, record.generation + 1, record.uid, changes)


def _told(change: Change, name: str, desired: DesiredFleet) -> Change:
    """Return the change with its effect, and the place that its new value is from."""
    return replace(change, effect=_effect(change), source=desired.source(name, change.path))


def _effect(change: Change) -> str:
    path = change.path.removeprefix("spec.")
    if re.fullmatch(r"nodePools\[[^\]]*\]", path):
        return "a new node pool" if change.new else POOL_DELETED
    return (
        planned_effect(path, change.old, change.new).value if path != change.path else Effect.IN_PLACE.value
    )


def _refused(changes: tuple[Change, ...]) -> str:
    """Return why the changes cannot be made, and the way out; "" when they can."""
    for change in changes:
        if change.effect == Effect.RECREATION:
            what = f"{change.path} cannot change from {change.old or 'nothing'} to {change.new or 'nothing'}"
            return f"{what}: it is fixed once a cluster exists; put it back, or add a cluster of another name"
    return ""


def _still(record: Recorded, name: str, action: Action, reason: str = "") -> Item:
    """Return an item that leaves the spec as it is."""
    return Item(name, action, record.generation, record.uid, reason=reason)


_PLACE = ("subscriptionId", "resourceGroup", "location")
_PLACES = {f"spec.{field}" for field in _PLACE}
"""What differs in these after ``_moved`` is the case of letters, which means nothing to Azure."""


def _moved(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Return why a change of place is held: it would leave the old cluster behind, unmanaged."""
    for field in _PLACE:
        before, after = old["spec"][field], new["spec"][field]
        if before.lower() != after.lower():
            return (
                f"spec.{field} cannot change from {before} to {after}: a cluster does not move; "
                "put it back, remove its folder, or add the new one under another name"
            )
    return ""


def _removed(
    gone: list[str],
    desired: DesiredFleet,
    recorded: Mapping[str, Recorded],
    approved: frozenset[str],
    now: datetime,
) -> Iterator[Item]:
    fresh = [name for name in gone if not recorded[name].deleting and name not in approved]
    for name in gone:
        record = recorded[name]
        if record.deleting:
            action = Action.RETRY if record.retryable_failure else Action.UNCHANGED
            yield _still(record, name, action, "it is being deleted")
            continue
        if desired.guards is None:
            yield _still(record, name, Action.HELD, "nothing is deleted while fleet.yaml cannot be used")
            continue
        guard = _guard(record, len(fresh), desired.guards.delete_budget.of(len(recorded)), now)
        if guard and name not in approved:
            yield replace(_still(record, name, Action.HELD, guard), held_delete=True)
        else:
            yield Item(name, Action.DELETE, record.generation + 1, record.uid)


def _guard(record: Recorded, removed: int, budget: int, now: datetime) -> str:
    """Return why a delete is held, and the two ways out; "" when nothing holds it."""
    suspended = record.document["spec"].get("suspend")
    if suspended and datetime.fromisoformat(suspended["until"]) > now:
        return (
            f"the cluster is suspended by {suspended['owner']} until {suspended['until']}; "
            "roadstead approve releases the delete, or a commit after that time"
        )
    if record.document["spec"].get("deletionProtection"):
        return (
            "deletionProtection is on; roadstead approve releases the delete, "
            "or a commit that switches it off before the folder is removed"
        )
    if removed > budget:
        return (
            f"the commit removes {removed} clusters, guards.deleteBudget in fleet.yaml allows {budget}; "
            "roadstead approve releases the deletes, or a commit that raises the budget"
        )
    return ""


def differences(old: Any, new: Any) -> Iterator[Change]:
    """Yield every leaf that differs between two JSON values; lists of named items are paired by name.

    Another order is no difference where it means nothing, as in a list of taints.
    """
    pairs = differing(old, new, below=_fields, equal=lambda path, one, other: alike(one, other, path))
    return (Change(path_text(path), _short(before), _short(after)) for path, before, after in pairs)


def _fields(path: Path, old: Any, new: Any) -> Children | None:
    """Pair the fields of two values; also those of an object that is added or removed as a whole.

    A named item that is added or removed, such as a node pool, is one difference.
    """
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
        return str(value["name"])
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:77] + "..."
