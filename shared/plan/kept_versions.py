"""Versions that git has lowered below what runs: they stay, and a plan says so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from shared.azure.changes.field_effects import Effect
from shared.frozen import replace
from shared.kubernetes_versions import runs_newer
from shared.plan.differences import FieldChange
from shared.plan.holds import Hold, HoldKind
from shared.plan.plan import Item, Plan, RecordedState


def with_versions_that_run(plan: Plan, recorded: Mapping[str, RecordedState]) -> Plan:
    """Return an earlier plan with the holds of versions that follow from what clusters run now.

    A cluster that was created again runs the version that git has, so no other version stays.
    """
    return replace(plan, items=tuple(_as_it_runs(item, recorded.get(item.cluster)) for item in plan.items))


def _as_it_runs(item: Item, record: RecordedState | None) -> Item:
    if not item.keeps_version or record is None or not record.running.control_plane:
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
