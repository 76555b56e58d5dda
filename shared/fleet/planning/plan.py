"""The plan: what a commit does to each cluster, decided from git and the recorded state alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from shared.fleet.aks.change_effects import missing_conditions
from shared.fleet.aks.comparison import alike
from shared.fleet.aks.field_effects import Effect
from shared.fleet.desired import normalised
from shared.fleet.garbage_collection import no_garbage_collection
from shared.fleet.planning.differences import Change, differences
from shared.fleet.planning.holds import Hold, HoldKind
from shared.fleet.planning.renames import rename_holds
from shared.fleet.resolve.desired_fleet import DesiredFleet
from shared.fleet.resolve.repository_layout import FLEET_FILE


class Action(StrEnum):
    """What happens to a cluster."""

    CREATE = "create"
    ADOPT = "adopt"
    UPDATE = "update"
    DELETE = "delete"
    RETRY = "retry"
    UNCHANGED = "unchanged"
    ON_HOLD = "on-hold"
    REFUSED = "refused"
    INVALID = "invalid"


class Recorded(Protocol):
    """What the planner needs to know of a cluster's record."""

    @property
    def document(self) -> Mapping[str, Any]:
        """The stored form of the last accepted ``Desired``."""

    @property
    def digest(self) -> str:
        """Its digest."""

    @property
    def generation(self) -> int:
        """How many specs have been accepted so far."""

    @property
    def uid(self) -> str:
        """Distinguishes the cluster from earlier ones of the same name."""

    @property
    def deleting(self) -> bool:
        """Whether an accepted commit removed the cluster."""

    @property
    def restorable(self) -> bool:
        """Whether that removal can be taken back, because the delete has not started."""

    @property
    def retryable_failure(self) -> bool:
        """Whether its job failed for a reason that may be temporary, or is a failed delete."""


@dataclass(frozen=True)
class Item:
    """A cluster's part of the plan; ``uid`` and ``generation`` are those after the plan is carried out.

    ``hold`` is the reason why the plan does not do what the manifest requests.
    """

    cluster: str
    action: Action
    generation: int = 0
    uid: str = ""
    changes: tuple[Change, ...] = ()
    hold: Hold | None = None

    @property
    def reason(self) -> str:
        """The hold as a sentence, "" for none."""
        return str(self.hold) if self.hold else ""

    @property
    def needs_approval(self) -> bool:
        """Whether the item is a delete that needs an operator's approval."""
        return self.hold is not None and self.hold.needs_approval

    @property
    def outcome(self) -> str:
        """The action in plain language: an action on hold that an operator can approve needs approval."""
        return "needs approval" if self.needs_approval else self.action.value.replace("-", " ")

    @property
    def awaits_deletion(self) -> bool:
        """Whether the cluster will be created again as soon as its deletion has finished."""
        return self.hold is not None and self.hold.kind is HoldKind.AWAITS_DELETION

    @property
    def being_deleted(self) -> bool:
        """Whether an earlier commit removed the cluster, and its deletion has not finished."""
        return self.hold is not None and self.hold.kind is HoldKind.BEING_DELETED

    @property
    def is_new_and_invalid(self) -> bool:
        """Whether the manifest is invalid, and no cluster of an earlier valid one stays."""
        return self.hold is not None and self.hold.kind is HoldKind.INVALID_NEW_MANIFEST

    @property
    def not_carried_out(self) -> bool:
        """Whether the plan does not do what the commit requests."""
        return self.action in (Action.INVALID, Action.REFUSED, Action.ON_HOLD)

    @property
    def needs_action(self) -> bool:
        """Whether the item is not carried out until an operator acts."""
        return self.not_carried_out and not self.awaits_deletion

    @property
    def acts(self) -> bool:
        """Whether a job follows from the item."""
        return self.begins or self.action in (Action.UPDATE, Action.DELETE, Action.RETRY)

    @property
    def begins(self) -> bool:
        """Whether the job is the cluster's first one, which creates or adopts it."""
        return self.action in (Action.CREATE, Action.ADOPT)

    def accepted_before(self, earlier: Item) -> bool:
        """Return whether nothing is left to do because this earlier item was accepted."""
        unchanged = self.action is Action.UNCHANGED
        return unchanged and (self.uid, self.generation) == (earlier.uid, earlier.generation)


@dataclass(frozen=True)
class Plan:
    """What a commit does; ``applied`` once every item's job has been handed over.

    ``problems`` are those of the manifests as text; ``fleet_file_problem`` is the first one of
    fleet.yaml, on which every cluster depends, "" for none.
    """

    commit: str
    items: tuple[Item, ...] = ()
    problems: tuple[str, ...] = ()
    fleet_file_problem: str = ""
    applied: bool = False

    @property
    def deletes_needing_approval(self) -> frozenset[str]:
        """The clusters whose deletes need approval: exactly this set, at exactly this commit."""
        return frozenset(item.cluster for item in self.items if item.needs_approval)

    @property
    def counts(self) -> Mapping[str, int]:
        """How many clusters each action has."""
        return Counter(item.action.value for item in self.items)

    @property
    def summary(self) -> str:
        """The counts as text: "2 create, 5 unchanged, 1 needs approval"."""
        order = {action: place for place, action in enumerate(Action)}
        items = sorted(self.items, key=lambda item: (order[item.action], not item.needs_approval))
        counts = Counter(item.outcome for item in items)
        return ", ".join(f"{number} {outcome}" for outcome, number in counts.items()) or "no clusters"

    def resume(self, earlier: Plan | None) -> Plan:
        """Return the plan with the items that an earlier, interrupted attempt at this commit had handed over.

        An item that was accepted then appears unchanged now, but the plan must still report it and send its
        job again. Planning a finished commit again likewise still reports what the commit did.
        """
        if earlier is None or earlier.commit != self.commit:
            return self
        before = {item.cluster: item for item in earlier.items if item.acts}
        now = {item.cluster for item in self.items}
        items = [
            before[item.cluster]
            if item.cluster in before and item.accepted_before(before[item.cluster])
            else item
            for item in self.items
        ]
        # A cluster whose accepted delete has finished since no longer has a record.
        items += [item for name, item in before.items() if name not in now]
        return replace(self, items=tuple(items))


@no_garbage_collection()
def make_plan(
    commit: str,
    desired: DesiredFleet,
    recorded: Mapping[str, Recorded],
    *,
    now: datetime,
    approved: frozenset[str] = frozenset(),
    reviewers: Sequence[str] = (),
) -> Plan:
    """Return the plan; it deletes nothing that a guard, a problem or a protection forbids.

    ``approved`` are the clusters whose deletion an operator approved at exactly this commit; ``now``
    determines whether a suspension has ended. ``reviewers`` are the teams whose reviews approve, too.
    """
    present = desired.clusters.keys() | desired.invalid.keys()
    removed = [name for name in sorted(recorded) if name not in present]
    gone = {name: recorded[name].document for name in removed if not recorded[name].deleting}
    new = [desired.clusters[name] for name in desired.clusters.keys() - recorded.keys()]
    added = {one.name: one.document() for one in new if not one.adopt} if gone else {}
    holds = rename_holds(gone, added, approved)
    items = [_wanted(name, desired, recorded.get(name), holds.get(name)) for name in sorted(present)]
    items += _removed(removed, desired, recorded, approved, now, holds)
    if reviewers:
        items = [replace(item, hold=item.hold and item.hold.reviewed_by(reviewers)) for item in items]
    return Plan(
        commit,
        tuple(sorted(items, key=lambda item: item.cluster)),
        tuple(str(problem) for problem in desired.problems),
        next((str(problem) for problem in desired.problems if problem.file == FLEET_FILE), ""),
    )


def _wanted(name: str, desired: DesiredFleet, record: Recorded | None, hold: Hold | None) -> Item:
    """Return the item of a cluster that the commit contains."""
    if name in desired.invalid:
        return _invalid(name, str(desired.invalid[name][0]), record)
    cluster = desired.clusters[name]
    if record is None and hold:
        return Item(name, Action.ON_HOLD, hold=hold)
    if record is None:
        return Item(name, Action.ADOPT if cluster.adopt else Action.CREATE, 1)
    if record.deleting and not record.restorable:
        action = Action.RETRY if record.retryable_failure else Action.ON_HOLD
        return _same_spec(record, name, action, Hold(HoldKind.AWAITS_DELETION))
    update = Item(name, Action.UPDATE, record.generation + 1, record.uid)
    same = _same_spec(record, name, Action.RETRY if record.retryable_failure else Action.UNCHANGED)
    same = update if record.deleting else same
    if cluster.digest == record.digest:
        return same
    before, document = normalised(record.document), cluster.document()
    if alike(before, document):
        return same
    moved = _move(before, document)
    if moved:
        return _same_spec(record, name, Action.ON_HOLD, moved)
    changed = (change for change in differences(before, document) if change.path not in _PLACES)
    changes = tuple(_explained(change, name, desired) for change in changed)
    refused = _immutable(changes)
    if refused:
        return Item(name, Action.REFUSED, record.generation, record.uid, changes, refused)
    return replace(update, changes=changes)


def _invalid(name: str, problem: str, record: Recorded | None) -> Item:
    new = Hold(HoldKind.INVALID_NEW_MANIFEST, {"problem": problem})
    if record is None:
        return Item(name, Action.INVALID, hold=new)
    if record.deleting:
        return _same_spec(record, name, Action.INVALID, new)
    return _same_spec(record, name, Action.INVALID, Hold(HoldKind.INVALID_MANIFEST, {"problem": problem}))


def _explained(change: Change, name: str, desired: DesiredFleet) -> Change:
    """Return the change with the source of its new value."""
    return replace(change, source=desired.source(name, change.path))


def _immutable(changes: tuple[Change, ...]) -> Hold | None:
    """Return the hold of a change that Azure cannot make, None when it can make all of them."""
    for change in changes:
        if change.effect is Effect.RECREATION:
            values = {"old": change.old or "nothing", "new": change.new or "nothing"}
            only = missing_conditions(change.path, change.old, change.new)
            details = {"field": change.path, **values, **({"only": only} if only else {})}
            return Hold(HoldKind.IMMUTABLE_FIELD, details)
    return None


def _same_spec(record: Recorded, name: str, action: Action, hold: Hold | None = None) -> Item:
    """Return an item that does not change the spec."""
    return Item(name, action, record.generation, record.uid, hold=hold)


_PLACE = ("subscriptionId", "resourceGroup", "location")
_PLACES = {f"spec.{field}" for field in _PLACE}
"""Fields in which ``_move`` accepts only a different letter case, which Azure ignores."""


def _move(old: Mapping[str, Any], new: Mapping[str, Any]) -> Hold | None:
    """Return the hold of a change of place: it would leave the old cluster behind, unmanaged."""
    for field in _PLACE:
        before, after = old["spec"][field], new["spec"][field]
        if before.lower() != after.lower():
            return Hold(HoldKind.MOVE, {"field": f"spec.{field}", "old": before, "new": after})
    return None


def _removed(
    names: list[str],
    desired: DesiredFleet,
    recorded: Mapping[str, Recorded],
    approved: frozenset[str],
    now: datetime,
    holds: Mapping[str, Hold],
) -> Iterator[Item]:
    """Yield the items of the clusters that the commit no longer contains."""
    removed = sum(not recorded[name].deleting and name not in approved for name in names)
    for name in names:
        record = recorded[name]
        if record.deleting:
            action = Action.RETRY if record.retryable_failure else Action.UNCHANGED
            yield _same_spec(record, name, action, Hold(HoldKind.BEING_DELETED))
            continue
        if desired.guards is None:
            yield _same_spec(record, name, Action.ON_HOLD, Hold(HoldKind.INVALID_FLEET_FILE))
            continue
        guard = holds.get(name) or _guard(
            record, removed, desired.guards.delete_budget.of(len(recorded)), now
        )
        if guard and name not in approved:
            yield _same_spec(record, name, Action.ON_HOLD, guard)
        else:
            yield Item(name, Action.DELETE, record.generation + 1, record.uid)


def _guard(record: Recorded, removed: int, budget: int, now: datetime) -> Hold | None:
    """Return the guard that holds a delete, None when none does."""
    spec = record.document["spec"]
    suspended = spec.get("suspend")
    if suspended and datetime.fromisoformat(suspended["until"]) > now:
        return Hold(HoldKind.SUSPENSION, {"owner": suspended["owner"], "until": suspended["until"]})
    if spec.get("deletionProtection"):
        return Hold(HoldKind.DELETION_PROTECTION)
    if removed > budget:
        return Hold(HoldKind.DELETE_BUDGET, {"removed": str(removed), "budget": str(budget)})
    return None
