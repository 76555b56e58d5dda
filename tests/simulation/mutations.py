"""Each rule of safety, taken away: what the simulation must find out."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from localcloud.azure.world.arm_resources import Condition
from localcloud.tables.memory_state import MemoryState
from shared.fleet.aks.ownership import Owner
from shared.fleet.planning import plan
from shared.jobs import lease as leases
from shared.jobs import record as records
from shared.jobs.lease import Resend, Superseded
from shared.jobs.record import ClusterRecord
from shared.pipeline import outbox
from shared.pipeline.planner import planner
from shared.pipeline.recovery import missed_work
from shared.pipeline.worker import worker
from shared.pipeline.worker.steps import cluster, registry
from shared.ports import FleetRecord


def rows_are_saved_over_any_version(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MemoryState, "_check", lambda *_: None)


def nothing_overdue_is_sent_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(missed_work, "resend_overdue", lambda _: 0)


def nothing_is_sent_again(patch: pytest.MonkeyPatch) -> None:
    decide = leases.acquire_lease

    def dropped(*args: Any, **kwargs: Any) -> Any:
        decision = decide(*args, **kwargs)
        return Superseded("dropped") if isinstance(decision, Resend) else decision

    patch.setattr(worker, "acquire_lease", dropped)
    nothing_overdue_is_sent_again(patch)


def a_cluster_that_is_being_deleted_takes_a_new_spec(patch: pytest.MonkeyPatch) -> None:
    class Alive:
        def __init__(self, record: ClusterRecord) -> None:
            self.document, self.digest, self.uid = record.document, "", record.uid
            self.generation, self.deleting, self.retryable_failure = record.generation, False, False

    made = plan.make_plan

    def make_plan(commit: str, desired: Any, recorded: Mapping[str, ClusterRecord], **rest: Any) -> Any:
        return made(commit, desired, {n: Alive(r) if r.deleting else r for n, r in recorded.items()}, **rest)

    patch.setattr(planner, "make_plan", make_plan)


def a_newer_spec_goes_on_where_the_older_one_was(patch: pytest.MonkeyPatch) -> None:
    accept = records.accept_change

    def change(record: ClusterRecord, *args: Any, **rest: Any) -> ClusterRecord:
        after = accept(record, *args, **rest)
        return replace(after, job=replace(after.job, step=record.job.step)) if record.job.active else after

    patch.setattr(planner, "accept_change", change)


def every_cluster_is_taken_for_ours(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Owner, "owns", lambda *_: True)


def writes_are_not_fenced(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(worker, "with_lease_guard", lambda _, ports: ports)


def azure_is_written_over_any_version(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Condition, "check", lambda *_: None)


def every_message_has_its_own_id(patch: pytest.MonkeyPatch) -> None:
    numbers = itertools.count()
    patch.setattr(
        outbox, "continuation_id", lambda record, copy="": f"{record.name}:{next(numbers)}{copy and ''}"
    )


def two_planners_may_plan_at_once(patch: pytest.MonkeyPatch) -> None:
    load, save = MemoryState.fleet, MemoryState.save_fleet

    def fleet(self: MemoryState) -> FleetRecord:
        return replace(load(self), etag="any")

    def save_fleet(self: MemoryState, record: FleetRecord) -> FleetRecord:
        return replace(save(self, replace(record, etag=load(self).etag)), etag="any")

    patch.setattr(MemoryState, "fleet", fleet)
    patch.setattr(MemoryState, "save_fleet", save_fleet)


def claims_are_not_waited_for(patch: pytest.MonkeyPatch) -> None:
    decide = leases.acquire_lease

    def unclaimed(record: ClusterRecord | None, *args: Any, **rest: Any) -> Any:
        if record is not None:
            record = replace(record, job=replace(record.job, lease=None))
        return decide(record, *args, **rest)

    patch.setattr(worker, "acquire_lease", unclaimed)


def an_old_head_is_believed_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(planner, "needs_confirmation", lambda *_, **__: None)


def deletes_are_not_guarded(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(plan, "_guard", lambda *_: "")


def a_suspension_is_overlooked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(registry, "suspended", lambda *_: None)


def a_cluster_is_taken_over_as_it_is(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cluster, "all_differences", lambda *_: [])


@dataclass(frozen=True)
class Mutation:
    """A rule that is taken away, the faults that show it soon, and which of the checker's rules may trip."""

    take_away: Callable[[pytest.MonkeyPatch], None]
    faults: str
    rules: frozenset[str]


def _mutation(take_away: Callable[[pytest.MonkeyPatch], None], faults: str, *rules: str) -> Mutation:
    return Mutation(take_away, faults, frozenset(rules))


MUTATIONS = (
    _mutation(rows_are_saved_over_any_version, "freeze-before freeze-after", "lost row", "tombstone"),
    _mutation(nothing_overdue_is_sent_again, "", "lost work"),
    _mutation(nothing_is_sent_again, "crash-after", "lost work"),
    _mutation(a_cluster_that_is_being_deleted_takes_a_new_spec, "refused", "unasked change", "tombstone"),
    _mutation(a_newer_spec_goes_on_where_the_older_one_was, "refused", "ahead of the real"),
    _mutation(every_cluster_is_taken_for_ours, "refused", "foreign"),
    _mutation(writes_are_not_fenced, "freeze-after", "one worker", "tombstone"),
    _mutation(azure_is_written_over_any_version, "somebody-first", "foreign"),
    _mutation(every_message_has_its_own_id, "twice crash-after answer-lost", "doubled"),
    _mutation(
        two_planners_may_plan_at_once, "freeze-before freeze-after", "unasked delete", "unasked change"
    ),
    _mutation(claims_are_not_waited_for, "freeze-before", "one worker"),
    _mutation(an_old_head_is_believed_at_once, "old-head", "unasked delete"),
    _mutation(deletes_are_not_guarded, "refused", "unasked delete"),
    _mutation(a_suspension_is_overlooked, "refused", "suspended"),
    _mutation(a_cluster_is_taken_over_as_it_is, "refused", "foreign"),
)
