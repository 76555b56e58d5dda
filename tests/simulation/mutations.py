"""Mutations: each removes one safety rule, and the simulation must fail."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from localcloud.azure.world.arm_resources import WriteCondition
from localcloud.memory import memory_cloud
from localcloud.tables.memory_state import MemoryState
from localcloud.tables.memory_tables import MemoryTable
from shared.app import outbox, repository
from shared.app.planner import branch, carry_out, compute, handover
from shared.app.recovery import missed_work
from shared.app.worker import worker
from shared.app.worker.steps import cluster, registry
from shared.azure.ownership import OwnerTags
from shared.cluster.queues import envelopes
from shared.cluster.record import ClusterRecord
from shared.cluster.transitions import acceptance
from shared.cluster.transitions import lease as leases
from shared.cluster.transitions.lease import Resend, Superseded
from shared.plan import make_plan as decision
from shared.ports import FleetRecord
from simulation.simulation import simulate

SEEDS_FILE = Path(__file__).with_name("likely_seeds.json")
LIKELY_SEEDS: Mapping[str, int] = json.loads(SEEDS_FILE.read_text())


def records_are_saved_over_any_version(patch: pytest.MonkeyPatch) -> None:
    get = MemoryTable.get
    patch.setattr(MemoryTable, "_require", lambda self, partition, key, _: get(self, partition, key))


def overdue_messages_are_not_sent_again(patch: pytest.MonkeyPatch) -> None:
    timers = (timer for timer in memory_cloud.TIMERS if timer is not missed_work.resend_overdue)
    patch.setattr(memory_cloud, "TIMERS", tuple(timers))


def no_message_is_sent_again(patch: pytest.MonkeyPatch) -> None:
    decide = leases.acquire_lease

    def dropped(*args: Any, **kwargs: Any) -> Any:
        decision = decide(*args, **kwargs)
        return Superseded("dropped") if isinstance(decision, Resend) else decision

    patch.setattr(worker, "acquire_lease", dropped)
    overdue_messages_are_not_sent_again(patch)


def a_cluster_that_is_being_deleted_takes_a_new_spec(patch: pytest.MonkeyPatch) -> None:
    class Alive:
        def __init__(self, record: ClusterRecord) -> None:
            self.document, self.digest, self.uid = record.document, "", record.uid
            self.generation, self.deleting, self.retryable_failure = record.generation, False, False
            self.restorable, self.running = False, record.running
            self.recovering, self.rebuilt_for, self.ready = False, record.rebuilt_for, False
            self.lifetime_hold = record.lifetime_hold

    original = decision.make_plan

    def make_plan(commit: str, desired: Any, recorded: Mapping[str, ClusterRecord], **rest: Any) -> Any:
        alive = {name: Alive(r) if r.deleting else r for name, r in recorded.items()}
        return original(commit, desired, alive, **rest)

    patch.setattr(repository, "make_plan", make_plan)


def a_newer_spec_continues_at_the_step_of_the_older_one(patch: pytest.MonkeyPatch) -> None:
    accept = acceptance.accept_change

    def change(record: ClusterRecord, *args: Any, **rest: Any) -> ClusterRecord:
        after = accept(record, *args, **rest)
        return replace(after, job=replace(after.job, step=record.job.step)) if record.job.active else after

    patch.setattr(acceptance, "accept_change", change)


def every_cluster_counts_as_owned(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OwnerTags, "owns", lambda *_: True)


def writes_have_no_lease_guard(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(worker, "with_lease_guard", lambda _, ports: ports)


def azure_accepts_a_write_over_any_version(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(WriteCondition, "check", lambda *_: None)


def every_message_has_its_own_id(patch: pytest.MonkeyPatch) -> None:
    numbers = itertools.count()
    patch.setattr(
        envelopes, "continuation_id", lambda record, copy="": f"{record.name}:{next(numbers)}{copy and ''}"
    )


def two_planners_may_plan_at_once(patch: pytest.MonkeyPatch) -> None:
    load, save = MemoryState.fleet, MemoryState.save_fleet

    def fleet(self: MemoryState) -> FleetRecord:
        return replace(load(self), etag="any")

    def save_fleet(self: MemoryState, record: FleetRecord) -> FleetRecord:
        return replace(save(self, replace(record, etag=load(self).etag)), etag="any")

    patch.setattr(MemoryState, "fleet", fleet)
    patch.setattr(MemoryState, "save_fleet", save_fleet)


def a_planner_does_not_name_what_it_saves(patch: pytest.MonkeyPatch) -> None:
    check = handover._check
    patch.setattr(
        handover,
        "_check",
        lambda fleet, progress, ports: check(fleet, replace(progress, in_flight=()), ports),
    )


def a_hand_over_has_no_end_of_its_time(patch: pytest.MonkeyPatch) -> None:
    hand_over: Callable[..., Any] = handover.hand_over

    def hand_all_over(*args: Any, **named: Any) -> Any:
        *rest, ports = args
        backwards = itertools.count(0, -1)
        return hand_over(*rest, replace(ports, elapsed=backwards.__next__), **named)

    patch.setattr(carry_out, "hand_over", hand_all_over)


def small_changes_wait_with_the_large_ones(patch: pytest.MonkeyPatch) -> None:
    port = outbox._port
    patch.setattr(
        outbox, "_port", lambda queue, ports: ports.jobs if queue == "changes" else port(queue, ports)
    )


def every_change_is_a_small_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(compute, "small_change", lambda items, *_, **__: {item.cluster for item in items})


def leases_are_ignored(patch: pytest.MonkeyPatch) -> None:
    decide = leases.acquire_lease

    def unleased(record: ClusterRecord | None, *args: Any, **rest: Any) -> Any:
        if record is not None:
            record = replace(record, job=replace(record.job, lease=None))
        return decide(record, *args, **rest)

    patch.setattr(worker, "acquire_lease", unleased)


def a_stale_head_is_not_confirmed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(branch, "needs_confirmation", lambda *_, **__: None)


def an_old_read_of_the_branch_serves_every_request(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(branch, "serving_read", lambda _, fleet, __: fleet.reads.last)


def deletes_need_no_approval(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(decision, "guard_of_delete", lambda *_: None)


def every_app_runs_every_recipe(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(worker, "_may_run", lambda *_: True)


def a_suspension_is_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(registry, "suspended", lambda *_: None)


def a_cluster_is_adopted_with_differences(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cluster, "differing_fields", lambda *_: [])


@dataclass(frozen=True)
class Mutation:
    """A removed safety rule, and the invariants that may fail then.

    ``faults`` and ``often``, words, are the faults and the actions of operators that reveal it soon.
    The seed of ``likely_seeds.json`` that found it is tried first. That saves the time of those before it,
    for as long as it means the same: ``python -m tests.simulation.likely_seeds`` writes the file again.
    """

    remove: Callable[[pytest.MonkeyPatch], None]
    faults: str
    rules: frozenset[str]
    often: str = ""

    @property
    def name(self) -> str:
        """What it removes and which faults find it: no two have the same name."""
        return f"{self.remove.__name__} {self.faults}".strip()

    @property
    def likely(self) -> int:
        """The seed that is tried first."""
        return LIKELY_SEEDS.get(self.name, 0)

    def seeds(self, number: int) -> Iterable[int]:
        """Return so many seeds, the likely one first."""
        return (self.likely, *(seed for seed in range(number) if seed != self.likely))

    def violated(self, seed: int, *, without: str = "") -> str:
        """Return the rule that does not hold in a seed, perhaps without one of the faults, or ""."""
        faults = frozenset(self.faults.split()) - {without}
        any_fault = not self.faults and not without
        return simulate(seed, only=None if any_fault else faults, often=frozenset(self.often.split())).rule


def mutation(
    remove: Callable[[pytest.MonkeyPatch], None], faults: str, *rules: str, often: str = ""
) -> Mutation:
    """Return a mutation that the faults and actions reveal; one of the rules does not hold then."""
    return Mutation(remove, faults, frozenset(rules), often)


MUTATIONS = (
    mutation(records_are_saved_over_any_version, "freeze-before freeze-after", "lost record", "tombstone"),
    mutation(overdue_messages_are_not_sent_again, "", "lost work", "open status"),
    mutation(no_message_is_sent_again, "crash-after", "lost work"),
    mutation(
        a_cluster_that_is_being_deleted_takes_a_new_spec,
        "refused",
        *("unrequested change", "tombstone", "lost work"),
        often="remove add",
    ),
    mutation(
        a_newer_spec_continues_at_the_step_of_the_older_one,
        "refused",
        "false ready",
        often="add-pool remove-pool",
    ),
    mutation(every_cluster_counts_as_owned, "refused", "foreign write"),
    mutation(writes_have_no_lease_guard, "freeze-after", "single writer", "tombstone"),
    mutation(azure_accepts_a_write_over_any_version, "created-by-hand", "foreign write"),
    mutation(every_message_has_its_own_id, "twice crash-after answer-lost", "duplicate message"),
    mutation(
        two_planners_may_plan_at_once,
        "freeze-before freeze-after",
        "unrequested delete",
        "unrequested change",
        "untrue",
    ),
    mutation(a_planner_does_not_name_what_it_saves, "refused", "hand-over"),
    mutation(a_hand_over_has_no_end_of_its_time, "refused", "hand-over"),
    mutation(small_changes_wait_with_the_large_ones, "", "small change"),
    mutation(every_change_is_a_small_one, "", "small change"),
    mutation(leases_are_ignored, "freeze-before", "single writer"),
    mutation(
        a_stale_head_is_not_confirmed,
        "stale-head",
        *("unrequested delete", "unrequested change"),
        often="add remove",
    ),
    mutation(an_old_read_of_the_branch_serves_every_request, "", "lost work"),
    mutation(deletes_need_no_approval, "refused", "unrequested delete", often="add remove-several"),
    mutation(every_app_runs_every_recipe, "misplaced", "identity"),
    mutation(a_suspension_is_ignored, "refused", "suspended", often="suspend scale"),
    mutation(a_cluster_is_adopted_with_differences, "refused", "foreign write", often="adopt"),
)
