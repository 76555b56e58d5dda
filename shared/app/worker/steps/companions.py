"""The steps of companions: what differs from the manifest is written, and what git took back is removed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from shared.app.access.companions import (
    CREDENTIALS,
    IDENTITIES,
    POLICIES,
    ROLES,
    WINDOWS,
    Reads,
    WrittenCompanions,
)
from shared.app.access.contests import NotWritten, exists_again
from shared.app.access.context import StepContext
from shared.azure.companions.companion import Companion, writes_of
from shared.cluster.failures.errors import NOT_FOUND, Dependency
from shared.cluster.outcomes import Done, Outcome
from shared.cluster.recipes import Step
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import ConditionReason
from shared.json_tree import Json
from shared.sentences import many

StepFunction = Callable[[StepContext], Outcome]


def ensure(*kinds: WrittenCompanions[Any]) -> StepFunction:
    """Return the step that brings the companions of some kinds to the manifest, one kind after the other."""

    def step(context: StepContext) -> Outcome:
        reads = Reads(context)
        return Done("; ".join(note for kind in kinds for note in _ensured(kind, reads) if note))

    return step


def remove(*kinds: WrittenCompanions[Any]) -> StepFunction:
    """Return the step that removes all companions of some kinds of a deleted cluster: Azure keeps them."""

    def step(context: StepContext) -> Outcome:
        record, known = context.record, {kind: _known(kind, context.record) for kind in kinds}
        if not any(known.values()) or not record.azure.creation_requested:
            return Done()
        deleted = record.condition(Step.DELETE_CLUSTER.condition)
        if deleted is not None and deleted.reason == ConditionReason.RETAINED:
            what = " and ".join(f"{kind.companion.noun}s" for kind in kinds)
            return Done(f"left its {what}: the cluster {record.name} stays", retained=True)
        again = exists_again(context)
        if again:
            return again
        reads = Reads(context)
        going = {kind: kind.going(reads, kind.live(reads, ()), (), known[kind]) for kind in kinds}
        notes = (_removed(kind, context, sorted(resources)) for kind, resources in going.items())
        return Done("; ".join(filter(None, notes)))

    return step


ENSURES = {
    Step.MAINTENANCE: ensure(WINDOWS),
    Step.IDENTITY_ACCESS: ensure(IDENTITIES, CREDENTIALS, ROLES),
    Step.POLICIES: ensure(POLICIES),
}
REMOVALS = {
    Step.DELETE_IDENTITY_ACCESS: remove(CREDENTIALS, ROLES, IDENTITIES),
    Step.DELETE_POLICIES: remove(POLICIES),
}


def differing_windows(context: StepContext) -> list[str]:
    """Return the paths of the maintenance windows that differ; no call where the manifest has none."""
    if not WINDOWS.concerns(context.record):
        return []
    reads = Reads(context)
    wanted, left = WINDOWS.wanted(reads), context.desired.left
    live = WINDOWS.live(reads, wanted)
    return [window.path for window in wanted if window.written(live.get(window.key), left) is not None]


def _known(kind: WrittenCompanions[Any], record: ClusterRecord) -> Sequence[str]:
    """Return the ids of all that present and earlier manifests have of a kind."""
    former = kind.companion.ids_among(record.removals.companions)
    return tuple(dict.fromkeys((*former, *kind.companion.stored(record.document))))


def _ensured(kind: WrittenCompanions[Any], reads: Reads) -> Iterator[str]:
    """Write what differs of one kind, and remove what git does not have; yield notes, "" for nothing."""
    context = reads.context
    former = kind.companion.ids_among(context.record.removals.companions)
    if not (former or kind.concerns(context.record)):
        return
    wanted = kind.wanted(reads)
    missing = next(filter(None, (kind.homeless(reads, companion) for companion in wanted)), "")
    if missing:
        raise Dependency(missing)
    live = kind.live(reads, wanted)
    hindered = kind.hindrance(reads, wanted, live)
    if hindered:
        raise NotWritten(hindered)
    going = kind.going(reads, live, wanted, former)
    upkeep = writes_of(wanted, live, going, context.desired.left)
    if upkeep.first or upkeep.bodies or upkeep.last:
        reads.require_ours()
    yield _removed(kind, context, upkeep.first)
    for companion, body in upkeep.bodies:
        _write(kind, context, companion, body)
    names = [companion.name for companion, _ in upkeep.bodies]
    yield f"wrote {many(len(names), kind.companion.noun)}: {', '.join(names)}" if names else ""
    for companion in upkeep.foreign:
        asked = f"the {kind.companion.noun} that {companion.name} asks for"
        yield f"left {asked}: it exists, under a name that is not ours"
    yield _removed(kind, context, upkeep.last)


def _write(kind: WrittenCompanions[Any], context: StepContext, companion: Companion, body: Json) -> None:
    """Write a companion; one that is not below the cluster says that it is what lacks its place."""
    try:
        context.azure(kind.put(context.cluster, *kind.place(companion.id), body))
    except Dependency as error:
        if error.code not in NOT_FOUND or companion.key.startswith(context.cluster.resource.lower()):
            raise
        what = f"the {kind.companion.noun} {companion.name}"
        missing = f"the place of {what} does not exist: {error}"
        raise Dependency(missing, request_id=error.request_id) from None


def _removed(kind: WrittenCompanions[Any], context: StepContext, resources: Sequence[str]) -> str:
    if kind.delete is None:
        return ""
    for resource in resources:
        context.azure(kind.delete(context.cluster, *kind.place(resource)))
    return f"removed {many(len(resources), kind.companion.noun)}" if resources else ""
