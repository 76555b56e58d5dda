"""The decision behind a plan: what a commit does to each cluster, from git and the recorded state alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any

from shared.azure.changes.comparison import alike
from shared.azure.changes.field_effects import Effect
from shared.azure.changes.writes import missing_conditions
from shared.frozen import replace
from shared.language.cluster_systems import systems_in
from shared.language.desired import Desired, is_attached, normalised
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.language.resolve.repository_layout import FLEET_FILE
from shared.plan.differences import FieldChange, differences, is_beside_commit, is_commit
from shared.plan.holds import Hold, HoldKind
from shared.plan.plan import Action, Item, Plan, RecordedState
from shared.plan.platform_plan import (
    NO_PLATFORM_CHANGE,
    PlatformPlan,
    changes_flux,
    with_kept_pin,
    with_kept_pins,
)
from shared.plan.replacements import (
    Replacing,
    holds_in_doubt,
    rename_holds,
    replaced_in,
    unread_holds,
    waiting_items,
)
from shared.plan.retained import RetainedSystems, keeping, versions_that_stay
from shared.process_memory import no_garbage_collection

# Rebuilds: a manifest asks that another cluster takes the place of the one that runs.
#
# The annotation ``roadstead.dev/rebuild`` is a time. A cluster that was created for an earlier one, or for
# none, is deleted and created again from the same manifest. An earlier time, and none, ask for nothing: so
# nobody deletes a cluster by taking a commit back. A rebuild has the guards of a delete.


def asks_for_rebuild(cluster: Desired, record: RecordedState) -> bool:
    """Return whether a manifest asks for another life of its cluster."""
    return cluster.rebuild > record.rebuilt_for and not record.recovering


def deletes_of(
    desired: DesiredFleet, recorded: Mapping[str, RecordedState], approved: frozenset[str]
) -> frozenset[str]:
    """Return the clusters that a commit deletes, for good or for a rebuild, and that nobody approved."""
    present = desired.clusters.keys() | desired.invalid.keys()
    rebuilt = (
        name
        for name, cluster in desired.clusters.items()
        if cluster.rebuild and name in recorded and asks_for_rebuild(cluster, recorded[name])
    )
    names = {*(recorded.keys() - present), *rebuilt}
    return frozenset(name for name in names - approved if not recorded[name].deleting)


def guard_of_delete(record: RecordedState, deletes: int, budget: int, now: datetime) -> Hold | None:
    """Return the guard that holds the delete of a recorded cluster, None when none does."""
    spec, held = record.document["spec"], record.lifetime_hold
    suspended = _suspension(spec, now)
    if suspended:
        return suspended
    if held is not None and held.until > now:
        details = {"owner": held.by, "reason": held.reason, "until": held.until.isoformat()}
        return Hold(HoldKind.LIFETIME_HOLD, details)
    if spec.get("deletionProtection"):
        return Hold(HoldKind.DELETION_PROTECTION)
    if deletes > budget:
        return Hold(HoldKind.DELETE_BUDGET, {"removed": str(deletes), "budget": str(budget)})
    return None


def hold_of_rebuild(
    cluster: Desired,
    record: RecordedState,
    desired: DesiredFleet,
    *,
    recorded: int,
    deletes: int,
    approved: bool,
    now: datetime,
) -> Hold | None:
    """Return the guard that holds a rebuild, None when none does; no approval counts without a fleet.yaml."""
    if desired.guards is None:
        return Hold(HoldKind.INVALID_FLEET_FILE).of_rebuild(cluster.rebuild)
    if approved:
        return None
    budget = desired.guards.delete_budget.of(recorded)
    guard = guard_of_delete(record, deletes, budget, now)
    guard = guard or _suspension(cluster.document()["spec"], now)
    return guard and guard.of_rebuild(cluster.rebuild)


def _suspension(spec: Mapping[str, Any], now: datetime) -> Hold | None:
    suspended = spec.get("suspend")
    if suspended and datetime.fromisoformat(suspended["until"]) > now:
        details = {field: suspended[field] for field in ("owner", "reason", "until")}
        return Hold(HoldKind.SUSPENSION, details)
    return None


NOTHING_REPLACED: Replacing = {}
ALL_READABLE: Mapping[str, str] = {}
_UNCHANGED = Action.UNCHANGED


@no_garbage_collection()
def make_plan(
    commit: str,
    desired: DesiredFleet,
    recorded: Mapping[str, RecordedState],
    *,
    now: datetime,
    approved: frozenset[str] = frozenset(),
    reviewers: Sequence[str] = (),
    replacing: Replacing = NOTHING_REPLACED,
    unreadable: Mapping[str, str] = ALL_READABLE,
    platform: PlatformPlan = NO_PLATFORM_CHANGE,
) -> Plan:
    """Return the plan; it deletes nothing that a guard, a problem or a protection forbids.

    ``approved`` are the clusters whose deletion an operator approved at exactly this commit; ``now``
    determines whether a suspension has ended. ``reviewers`` are the teams whose reviews approve, too.
    ``replacing`` is what the plan before knew of the clusters that others are to replace. ``unreadable`` are
    the clusters whose records cannot be read, with the reason: they exist, and nothing is planned for them.
    ``platform`` is what the commit does to what Flux applies: where that keeps a pin, the rest is planned.
    """
    pins = platform.holds(approved)
    stays = changes_flux(desired, recorded, pins) | platform.earlier.waiting
    desired = with_kept_pins(desired, recorded, pins.keys() - stays)
    present = desired.clusters.keys() | desired.invalid.keys()
    removed = [name for name in sorted(recorded) if name not in present]
    gone = {name: recorded[name].document for name in removed if not recorded[name].deleting}
    new = [desired.clusters[name] for name in desired.clusters.keys() - recorded.keys() - unreadable.keys()]
    added = {cluster.name: cluster.document() for cluster in new if not cluster.adopt} if gone else {}
    replaced = replaced_in(desired, recorded, replacing)
    for old, found in replaced.items():
        if found.kind is not HoldKind.REPLACEMENT_GONE:  # it says what a rename would be a guess of
            gone.pop(old, None)
            added = {name: document for name, document in added.items() if name not in found.by}
    holds = {**unread_holds(gone, desired.invalid), **rename_holds(gone, added, approved)}
    holds |= {name: hold.of_creation() for name, hold in pins.items() if name not in recorded}
    retained = platform.staying(desired, recorded, approved)
    deletes = deletes_of(desired, recorded, approved)
    items = [unreadable_item(name, problem) for name, problem in unreadable.items()]
    for name in sorted(present - unreadable.keys()):
        record, cluster = recorded.get(name), desired.clusters.get(name)
        if (
            record is not None
            and cluster is not None
            and _is_settled(cluster, record)
            and name not in retained
            and name not in pins
        ):
            items.append(Item(name, _UNCHANGED, record.generation, record.uid))
            continue
        if (
            cluster is not None
            and cluster.rebuild
            and record is not None
            and asks_for_rebuild(cluster, record)
        ):
            guard = hold_of_rebuild(
                cluster,
                record,
                desired,
                recorded=len(recorded),
                deletes=len(deletes),
                approved=name in approved,
                now=now,
            )
            items.append(_rebuild(cluster, record, desired, guard))
            continue
        item = _wanted(name, desired, record, holds.get(name), retained.get(name))
        if record is not None and name in stays and item.hold is None:
            item = _same_spec(record, name, _UNCHANGED)
        items.append(with_kept_pin(_with_retained(item, retained.get(name)), pins.get(name)))
    waiting = waiting_items(replaced, items, recorded) if desired.guards else {}
    items += waiting.values()
    removed = [name for name in removed if name not in waiting]
    holds = {**holds, **holds_in_doubt(replaced)}
    items += _removed(removed, desired, recorded, approved, len(deletes), now, holds)
    items = [_of_attached(item, desired, recorded) for item in items]
    if lagging := platform.earlier.lagging:
        items = [replace(item, lags=True) if item.cluster in lagging else item for item in items]
    if reviewers:
        items = [replace(item, hold=item.hold and item.hold.reviewed_by(reviewers)) for item in items]
    return Plan(
        commit,
        tuple(sorted(items, key=attrgetter("cluster"))),
        tuple(map(str, (*desired.problems, *platform.problems))),
        next((str(problem) for problem in desired.problems if problem.file == FLEET_FILE), ""),
    )


def _of_attached(item: Item, desired: DesiredFleet, recorded: Mapping[str, RecordedState]) -> Item:
    """Return the item of a cluster outside Azure with the hold of a release, and any other item as it is."""
    if item.hold is None or item.retained:
        return item
    record, cluster = recorded.get(item.cluster), desired.clusters.get(item.cluster)
    attached = is_attached(record.document) if record else cluster is not None and cluster.is_attached
    return replace(item, hold=item.hold.of_release()) if attached else item


def _is_settled(cluster: Desired, record: RecordedState) -> bool:
    """Return whether a cluster is as it is recorded, and its job is neither a delete nor to be repeated."""
    same = cluster.digest == record.digest and not cluster.rebuild
    return same and not (record.deleting or record.retryable_failure)


def _with_retained(item: Item, retained: RetainedSystems | None) -> Item:
    """Return the item of a cluster with the systems that stay on it, and why."""
    if retained is None or (item.hold is not None and not item.keeps_version):
        return item
    action = Action.ON_HOLD if item.action is Action.UNCHANGED else item.action
    return replace(item, action=action, hold=retained.hold, retained=retained.names)


def _wanted(
    name: str,
    desired: DesiredFleet,
    record: RecordedState | None,
    hold: Hold | None,
    retained: RetainedSystems | None,
) -> Item:
    """Return the item of a cluster that the commit contains; ``retained`` systems do not change."""
    if name in desired.invalid:
        return _invalid(name, str(desired.invalid[name][0]), record)
    cluster = desired.clusters[name]
    if record is None and hold:
        return Item(name, Action.ON_HOLD, hold=hold)
    if record is None:
        return Item(name, Action.ADOPT if cluster.adopt else Action.CREATE, 1)
    if record.deleting and not record.restorable:
        return _awaits_deletion(record, name)
    if retained is not None:
        cluster = keeping(cluster, systems_in(record.document), retained.names)
    if cluster.digest == record.digest:
        return _unchanged(record, name)
    before, document = normalised(record.document), cluster.document()
    if alike(before, document):
        return _unchanged(record, name)
    moved = _move(before, document)
    if moved:
        return _same_spec(record, name, Action.ON_HOLD, moved)
    changed = differences(before, document, record.running)
    changes = tuple(
        _explained(change, name, desired)
        for change in changed
        if change.path not in _PLACES and not is_beside_commit(change.path)
    )
    refused = _immutable(changes)
    if refused:
        return Item(name, Action.REFUSED, record.generation, record.uid, changes, refused)
    hold = next(versions_that_stay(changes, record), None)
    return Item(name, Action.UPDATE, record.generation + 1, record.uid, changes, hold)


def _rebuild(cluster: Desired, record: RecordedState, desired: DesiredFleet, hold: Hold | None) -> Item:
    """Return the item of a cluster whose manifest asks for another one in its place."""
    name = cluster.name
    if record.deleting:
        return _awaits_deletion(record, name)
    changed = differences(normalised(record.document), cluster.document(), record.running)
    changes = tuple(
        _explained(change, name, desired) for change in changed if not is_beside_commit(change.path)
    )
    if hold:
        return Item(name, Action.ON_HOLD, record.generation, record.uid, changes, hold)
    return Item(name, Action.REBUILD, record.generation + 1, record.uid, changes)


def unreadable_item(name: str, problem: str) -> Item:
    """Return the item of a cluster of which nobody knows what is recorded, whatever git says of it."""
    return Item(name, Action.ON_HOLD, hold=Hold(HoldKind.UNREADABLE, {"problem": problem}))


def _awaits_deletion(record: RecordedState, name: str) -> Item:
    """Return the item of a cluster that is created again once its delete has finished."""
    action = Action.RETRY if record.retryable_failure else Action.ON_HOLD
    return _same_spec(record, name, action, Hold(HoldKind.AWAITS_DELETION))


def _unchanged(record: RecordedState, name: str) -> Item:
    """Return the item of a cluster with the same spec; git takes back a removal that can be taken back."""
    if record.deleting:
        return Item(name, Action.UPDATE, record.generation + 1, record.uid)
    return _same_spec(record, name, Action.RETRY if record.retryable_failure else Action.UNCHANGED)


def _invalid(name: str, problem: str, record: RecordedState | None) -> Item:
    new = Hold(HoldKind.INVALID_NEW_MANIFEST, {"problem": problem})
    if record is None:
        return Item(name, Action.INVALID, hold=new)
    if record.deleting:
        return _same_spec(record, name, Action.INVALID, new)
    return _same_spec(record, name, Action.INVALID, Hold(HoldKind.INVALID_MANIFEST, {"problem": problem}))


def _explained(change: FieldChange, name: str, desired: DesiredFleet) -> FieldChange:
    """Return the change with the source of its new value; commits are as short as everywhere."""
    if is_commit(change.path):
        return replace(change, old=change.old[:8], new=change.new[:8])
    return replace(change, source=desired.source(name, change.path))


def _immutable(changes: tuple[FieldChange, ...]) -> Hold | None:
    """Return the hold of a change that Azure cannot make, None when it can make all of them."""
    for change in changes:
        if change.effect is Effect.RECREATION:
            values = {"old": change.old or "nothing", "new": change.new or "nothing"}
            only = missing_conditions(change.path, change.old, change.new)
            details = {"field": change.path, **values, **({"only": only} if only else {})}
            return Hold(HoldKind.IMMUTABLE_FIELD, details)
    return None


def _same_spec(record: RecordedState, name: str, action: Action, hold: Hold | None = None) -> Item:
    """Return an item that does not change the spec."""
    return Item(name, action, record.generation, record.uid, hold=hold)


_PLACE = ("subscriptionId", "resourceGroup", "location")
_PLACES = {f"spec.{field}" for field in _PLACE}
"""Fields in which ``_move`` accepts only a different letter case, which Azure ignores."""


def _move(old: Mapping[str, Any], new: Mapping[str, Any]) -> Hold | None:
    """Return the hold of a change of place: it would leave the old cluster behind, unmanaged."""
    providers = [document["spec"].get("provider") or "aks" for document in (old, new)]
    if providers[0] != providers[1]:
        return Hold(HoldKind.MOVE, {"field": "spec.provider", "old": providers[0], "new": providers[1]})
    for field in _PLACE:
        before, after = old["spec"][field], new["spec"][field]
        if before.lower() != after.lower():
            return Hold(HoldKind.MOVE, {"field": f"spec.{field}", "old": before, "new": after})
    return None


def _removed(
    names: list[str],
    desired: DesiredFleet,
    recorded: Mapping[str, RecordedState],
    approved: frozenset[str],
    deletes: int,
    now: datetime,
    holds: Mapping[str, Hold],
) -> Iterator[Item]:
    """Yield the items of the clusters that the commit no longer contains."""
    for name in names:
        record = recorded[name]
        if record.deleting:
            action = Action.RETRY if record.retryable_failure else Action.UNCHANGED
            yield _same_spec(record, name, action, Hold(HoldKind.BEING_DELETED))
            continue
        if desired.guards is None:
            yield _same_spec(record, name, Action.ON_HOLD, Hold(HoldKind.INVALID_FLEET_FILE))
            continue
        budget = desired.guards.delete_budget.of(len(recorded))
        guard = holds.get(name) or guard_of_delete(record, deletes, budget, now)
        if guard and name not in approved:
            yield _same_spec(record, name, Action.ON_HOLD, guard)
        else:
            action = Action.RELEASE if is_attached(record.document) else Action.DELETE
            yield Item(name, action, record.generation + 1, record.uid)
