"""What stays on a cluster although a commit takes it away: systems by their guards, and versions that run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from shared.azure.changes.field_effects import Effect
from shared.frozen import dataclass, replace
from shared.kubernetes_versions import runs_newer
from shared.language.cluster_systems import Systems, by_name, joined, systems_in
from shared.language.desired import Desired
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.plan.differences import FieldChange
from shared.plan.holds import Hold, HoldKind
from shared.plan.plan import Item, Plan, RecordedState


@dataclass(frozen=True)
class NamespaceLoss:
    """A system that loses namespaces on a cluster; ``protected``: its manifest wants an approval for that."""

    system: str
    namespaces: tuple[str, ...]
    protected: bool = False

    def __str__(self) -> str:
        return f"{self.system} ({', '.join(self.namespaces)})"


def losses(before: Systems, after: Systems) -> Sequence[NamespaceLoss]:
    """Return what the systems of a cluster lose.

    Where the first namespace changes, the Kustomization moves, and Flux deletes what the old one applied: it
    counts as the loss of that namespace.
    """
    now, found = by_name(after), []
    for name, entry in by_name(before).items():
        had = entry["namespaces"]
        has = list(now[name]["namespaces"]) if name in now else []
        lost = [
            document
            for document in had
            if document not in has or (document == had[0] and has[:1] != [document])
        ]
        if lost:
            found.append(NamespaceLoss(name, tuple(lost), bool(entry.get("protection"))))
    return found


def keeping(desired: Desired, before: Systems, names: Collection[str]) -> Desired:
    """Return a cluster whose systems of these names stay as they were."""
    if not names:
        return desired
    recorded = by_name(before)
    retained = {name: recorded[name] for name in names if name in recorded}
    return desired.with_systems(joined(desired.systems, retained, recorded))


def to_remove(
    before: Systems, after: Systems, earlier: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """Return the namespaces to remove on a cluster, by system: those that it had and has no longer."""
    wanted = {name for document in after for name in document["namespaces"]}
    gone: dict[str, tuple[str, ...]] = dict(earlier)
    for loss in losses(before, after):
        gone[loss.system] = tuple(dict.fromkeys((*gone.get(loss.system, ()), *loss.namespaces)))
    present = by_name(after)
    left = {name: tuple(name for name in lost if name not in wanted) for name, lost in gone.items()}
    return {name: lost for name, lost in left.items() if lost or name not in present}


@dataclass(frozen=True)
class RetainedSystems:
    """The systems that stay as they are on a cluster, and why."""

    names: tuple[str, ...]
    hold: Hold

    def with_names(self, other: RetainedSystems | None) -> RetainedSystems:
        """Return it with the systems that stay for another reason."""
        return replace(self, names=tuple(dict.fromkeys((*self.names, *(other.names if other else ())))))


def retained_systems(
    desired: DesiredFleet, recorded: Mapping[str, RecordedState], approved: frozenset[str]
) -> Mapping[str, RetainedSystems]:
    """Return what stays, by cluster; nothing where an operator ``approved``, or the budget allows it."""
    lost = dict(_lost(desired, recorded))
    if desired.guards is None:
        return {name: _retained(found, HoldKind.SYSTEMS_FLEET_FILE) for name, found in lost.items()}
    waiting = {name: found for name, found in lost.items() if name not in approved}
    removed = sum(len(loss.namespaces) for found in waiting.values() for loss in found)
    budget = desired.guards.namespace_budget
    if removed > budget:
        counts = {"removed": str(removed), "budget": str(budget)}
        return {
            name: _retained(found, HoldKind.NAMESPACE_BUDGET, **counts) for name, found in waiting.items()
        }
    protected = {name: [loss for loss in found if loss.protected] for name, found in waiting.items()}
    return {name: _retained(found, HoldKind.SYSTEM_PROTECTION) for name, found in protected.items() if found}


def _lost(
    desired: DesiredFleet, recorded: Mapping[str, RecordedState]
) -> Iterator[tuple[str, Sequence[NamespaceLoss]]]:
    for name, record in recorded.items():
        before = systems_in(record.document)
        if not before or (record.deleting and not record.restorable):
            continue
        cluster = desired.clusters.get(name)
        found = losses(before, cluster.systems) if cluster is not None else ()
        if found:
            yield name, found


def _retained(found: Sequence[NamespaceLoss], kind: HoldKind, **details: str) -> RetainedSystems:
    names = tuple(loss.system for loss in found)
    return RetainedSystems(names, Hold(kind, {"systems": ", ".join(map(str, found)), **details}))


# Versions that git has lowered below what runs: they stay, and a plan says so.


def with_versions_that_run(plan: Plan, recorded: Mapping[str, RecordedState]) -> Plan:
    """Return an earlier plan with the holds of versions that follow from what clusters run now.

    A cluster that was created again runs the version that git has, so no other version stays.
    """
    return replace(plan, items=tuple(_as_it_runs(item, recorded.get(item.cluster)) for item in plan.items))


def _as_it_runs(item: Item, record: RecordedState | None) -> Item:
    if not item.keeps_version or record is None or not record.running.kubernetes_version:
        return item
    return replace(item, hold=next(versions_that_stay(item.changes, record), None))


def versions_that_stay(changes: Iterable[FieldChange], record: RecordedState) -> Iterator[Hold]:
    """Yield the hold of each version that the commit lowers below the one that runs."""
    for change in changes:
        runs = record.running.version_at(change.path.removeprefix("spec."))
        lowered = change.effect is Effect.NEVER_LOWERED and runs_newer(change.new, change.old)
        if lowered and runs_newer(change.new, runs):
            details = {"field": change.path, "runs": runs, "git": change.new}
            yield Hold(HoldKind.VERSION_STAYS, details)
