"""What a message may do, decided by the record alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from shared.cluster.failures.errors import NotYetVisible, Unavailable, Unexpected
from shared.cluster.job import Contest, ContestKind, Delay, Lease
from shared.cluster.outcomes import Done, Fail, GoToStep, Outcome, Restart, Retry, Wait
from shared.cluster.queues.envelopes import continuation_id, job_message
from shared.cluster.queues.messages import JobMessage
from shared.cluster.recipes import Step
from shared.cluster.record import ClusterRecord
from shared.cluster.transitions.acceptance import accept_change, accept_delete
from shared.cluster.transitions.apply_outcome import apply_outcome, postpone
from shared.cluster.transitions.lease import (
    Decision,
    NotYet,
    Resend,
    Run,
    Superseded,
    acquire_lease,
    keep_lease,
)
from tests.support.cluster_records import NOW, later, record
from tests.support.desired_clusters import desired


def decide(current: ClusterRecord | None, message: JobMessage) -> Decision:
    return acquire_lease(current, message, now=NOW, owner="me", seconds=60)


def test_the_message_that_the_record_waits_for_acquires_the_lease() -> None:
    decision = decide(record(), job_message(record()))
    assert isinstance(decision, Run)
    assert decision.record.job.lease == Lease("me", later(60), due=NOW)
    assert decision.record.etag == "v1"


def test_a_late_message_resends_the_continuation_of_the_record() -> None:
    assert isinstance(decide(record(sequence=5), job_message(record(sequence=3))), Resend)


def test_a_message_of_an_older_generation_resends_the_continuation() -> None:
    newer = accept_change(record(), desired("one", count=2), commit="d" * 40, now=NOW)
    assert isinstance(decide(newer, job_message(record())), Resend)


def test_a_message_of_an_earlier_cluster_of_the_same_name_does_nothing() -> None:
    assert isinstance(decide(replace(record(), uid="other"), job_message(record())), Superseded)


def test_a_message_for_a_deleted_record_does_nothing() -> None:
    assert isinstance(decide(None, job_message(record())), Superseded)


def test_a_message_for_a_job_that_has_ended_does_nothing() -> None:
    assert isinstance(decide(record(active=False), job_message(record())), Superseded)


def test_an_early_message_is_postponed() -> None:
    assert isinstance(decide(record(at=later(30), delay=Delay.WAIT), job_message(record())), NotYet)


@pytest.mark.parametrize("outcome", [Wait(60, ""), Retry(Unavailable("", retry_after=60)), Restart("")])
def test_a_delay_without_a_sentence_is_kept(outcome: Outcome) -> None:
    delayed = apply_outcome(record(), outcome, now=NOW, jitter=0)
    assert isinstance(decide(delayed, job_message(delayed)), NotYet)


def test_a_step_that_an_earlier_one_leads_back_to_is_due_at_once_by_any_clock() -> None:
    returned = apply_outcome(record(), GoToStep(Step.CLUSTER, "more to do"), now=later(3600), jitter=0)
    assert isinstance(decide(returned, job_message(returned)), Run)


def test_a_step_that_nothing_delays_is_due_at_once_even_by_a_clock_that_is_behind() -> None:
    assert isinstance(decide(record(at=later(3600)), job_message(record())), Run)


def test_a_leased_record_is_left_to_its_worker_until_the_lease_ends() -> None:
    leased = record(lease=Lease("other", later(20), NOW))
    assert isinstance(decide(leased, job_message(leased)), NotYet)
    ended = record(lease=Lease("other", NOW, NOW))
    assert isinstance(decide(ended, job_message(ended)), Run)


def test_a_tombstone_outlives_every_earlier_message() -> None:
    dead = accept_delete(record(sequence=7), commit="d" * 40, now=NOW)
    for sequence in range(10):
        decision = decide(dead, job_message(record(sequence=sequence)))
        assert isinstance(decision, Resend)


def test_the_same_moment_has_one_message_id_and_a_deliberate_copy_another() -> None:
    assert continuation_id(record()) == continuation_id(record()) == "one:0badcafe:1:1"
    assert continuation_id(record(), "overdue2") == "one:0badcafe:1:1@overdue2"
    longest = replace(record(sequence=10**9), name="x" * 63, generation=10**9)
    assert len(continuation_id(longest, str(int(NOW.timestamp())))) <= 128


def test_abandoned_leases_are_counted_until_there_is_an_outcome() -> None:
    current = record()
    for lost in range(3):
        decision = decide(current, job_message(current))
        assert isinstance(decision, Run)
        assert decision.record.job.step.abandoned_leases == lost
        current = replace(decision.record, job=replace(decision.record.job, lease=Lease("me", NOW, NOW)))
    assert apply_outcome(current, Wait(5, "Azure"), now=NOW, jitter=0).job.step.abandoned_leases == 0


def test_a_recheck_resets_no_counter_and_a_lost_lease_after_it_requires_another_recheck() -> None:
    died = record(abandoned_leases=1, attempts={"Unavailable": 2})
    rechecked = apply_outcome(died, Retry(NotYetVisible("not shown", retry_after=20)), now=NOW, jitter=0)
    assert (
        rechecked.job.step.rechecking,
        rechecked.job.step.abandoned_leases,
        rechecked.job.step.attempts["Unavailable"],
    ) == (True, 1, 2)
    decision = acquire_lease(rechecked, job_message(rechecked), now=later(20), owner="me", seconds=90)
    assert isinstance(decision, Run)
    assert (decision.record.job.step.rechecking, decision.record.job.step.abandoned_leases) == (True, 1)
    again = acquire_lease(decision.record, job_message(rechecked), now=later(200), owner="you", seconds=90)
    assert isinstance(again, Run)
    assert (again.record.job.step.rechecking, again.record.job.step.abandoned_leases) == (False, 2)


def test_a_rate_limited_step_remembers_its_abandoned_leases_and_its_recheck() -> None:
    waiting = postpone(
        record(abandoned_leases=2, rechecking=True), until=later(60), reason="full", reservations={}, now=NOW
    )
    assert (waiting.job.step.abandoned_leases, waiting.job.step.rechecking) == (2, True)


@pytest.mark.parametrize(
    ("suspended", "unread", "still"), [(False, True, True), (True, True, False), (False, False, False)]
)
def test_a_rate_limited_step_that_has_read_nothing_still_waits_for_a_person(
    suspended: bool, unread: bool, still: bool
) -> None:
    contest = Contest(ContestKind.INSTALLATION, ("other",))
    wait = Wait(300, "held", action_required="Act.", open_ended=True, suspended=suspended, contest=contest)
    waiting = apply_outcome(record(), wait, now=NOW, jitter=0)
    limited = postpone(waiting, until=later(60), reason="full", reservations={}, now=NOW, unread=unread)
    shown = (limited.job.reason, limited.needs_action, limited.contested)
    assert shown == (("held", True, True) if still else ("full", False, False))
    assert (limited.job.next_run.at, limited.job.next_run.delay) == (later(60), Delay.RATE_LIMIT)


def test_a_step_that_is_due_at_once_continues_the_lease_of_the_step_before() -> None:
    before = leased()
    after = keep_lease(before, apply_outcome(before, Done(), now=NOW, jitter=0), now=NOW, seconds=60)
    assert after is not None
    assert after.job.lease == Lease("me", later(60), due=NOW)
    assert (after.job.step.name, after.job.sequence) == (Step.CLUSTER, 2)


@pytest.mark.parametrize(
    "outcome", [Wait(5, "Azure"), Retry(Unavailable("down")), Restart("gone"), Fail(Unexpected("broken"))]
)
def test_a_step_that_waits_or_has_failed_keeps_no_lease(outcome: Outcome) -> None:
    before = leased()
    after = apply_outcome(before, outcome, now=NOW, jitter=0)
    assert keep_lease(before, after, now=NOW, seconds=60) is None


def test_no_lease_is_kept_after_the_last_step_or_without_time_for_another() -> None:
    done = apply_outcome(leased(), Done(), now=NOW, jitter=0)
    assert keep_lease(leased(), done, now=NOW, seconds=0) is None
    last = leased(name=Step.VERIFY)
    assert keep_lease(last, apply_outcome(last, Done(), now=NOW, jitter=0), now=NOW, seconds=60) is None


def leased(**step: Any) -> ClusterRecord:
    decision = decide(record(**step), job_message(record(**step)))
    assert isinstance(decision, Run)
    return decision.record
