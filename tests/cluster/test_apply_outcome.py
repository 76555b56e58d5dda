"""How an outcome becomes the next record, and which events it has."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.cluster.failures import errors
from shared.cluster.failures.errors import (
    Conflict,
    Interrupted,
    OutOfCapacity,
    QuotaExceeded,
    ReconcileError,
    Throttled,
    Unavailable,
    Unexpected,
    from_http,
)
from shared.cluster.failures.retry import wait_before_retry
from shared.cluster.job import AcceptedWrite, Lease, WaitKind, WaitSubject, WriteKind, start_step
from shared.cluster.outcomes import Done, Fail, GoToStep, Outcome, Restart, Retry, Wait
from shared.cluster.recipes import STEPS, Recipe, Step
from shared.cluster.record import from_json, to_json
from shared.cluster.record_parts import Phase
from shared.cluster.reporting.events import events_between
from shared.cluster.transitions.acceptance import accept_change
from shared.cluster.transitions.apply_outcome import MAX_RESTARTS, apply_outcome, release
from tests.support.cluster_records import NOW, later, record
from tests.support.desired_clusters import desired


def put(digest: str, request_id: str = "") -> AcceptedWrite:
    return AcceptedWrite(WriteKind.PUT, digest=digest, request_id=request_id)


def test_done_continues_with_the_next_step_at_once() -> None:
    after = apply_outcome(
        record(reason="waited", attempts={"Conflict": 3}), Done("created it"), now=later(5), jitter=0
    )
    assert (after.job.step.name, after.job.sequence, after.job.next_run.at) == (Step.CLUSTER, 2, later(5))
    assert (after.job.reason, after.job.attempts, after.job.lease) == ("", 0, None)
    condition = after.condition("ResourceGroupReady")
    assert condition is not None
    assert (condition.status, condition.message) == (True, "created it")


def test_the_last_done_is_ready_and_observed() -> None:
    after = apply_outcome(record(step=Step.VERIFY), Done(), now=NOW, jitter=0)
    assert (after.phase, after.observed_generation, after.job.active) == (Phase.READY, 1, False)


def test_a_wait_stays_at_its_step_with_a_reason_and_a_time() -> None:
    after = apply_outcome(record(step=Step.CLUSTER), Wait(20, "Azure is creating"), now=NOW, jitter=0)
    assert (after.job.step.name, after.job.reason, after.job.next_run.at) == (
        Step.CLUSTER,
        "Azure is creating",
        later(20),
    )


def test_a_wait_over_the_deadline_is_stalled_and_still_rechecked() -> None:
    late = later(Step.CLUSTER.deadline + 1)
    after = apply_outcome(record(step=Step.CLUSTER), Wait(20, "Azure is creating"), now=late, jitter=0)
    assert (after.phase, after.job.active) == (Phase.STALLED, True)
    assert (after.job.next_run.at - late).total_seconds() == 300
    assert apply_outcome(after, Done(), now=late, jitter=0).phase is Phase.PROVISIONING


def test_a_retry_waits_longer_each_time_and_remembers_the_first_failure() -> None:
    first = apply_outcome(record(), Retry(Unavailable("down")), now=NOW, jitter=1)
    second = apply_outcome(first, Retry(Unavailable("down")), now=later(10), jitter=1)
    assert (first.job.next_run.at, second.job.next_run.at) == (later(5), later(20))
    assert second.job.attempts == 2
    assert second.job.step.failure is not None
    assert second.job.step.failure.since == NOW


def test_retry_after_wins_over_the_backoff() -> None:
    after = apply_outcome(record(), Retry(Throttled("slow down", retry_after=77)), now=NOW, jitter=0.3)
    assert after.job.next_run.at == later(77)


def test_exhausted_retries_fail_with_their_class_and_attempts() -> None:
    current = record()
    for _ in range(15):
        current = apply_outcome(current, Retry(Unavailable("down", request_id="r1")), now=NOW, jitter=0)
    assert (current.phase, current.job.active, current.job.attempts) == (Phase.FAILED, False, 15)
    assert current.job.step.failure is not None
    assert (current.job.step.failure.kind, current.job.step.failure.request_id) == ("Unavailable", "r1")


def test_conflicts_use_up_no_attempts_of_the_next_error() -> None:
    current = record()
    for _ in range(16):
        current = apply_outcome(current, Retry(Conflict("busy")), now=NOW, jitter=1)
    after = apply_outcome(current, Retry(Unavailable("one 503")), now=NOW, jitter=1)
    assert (after.job.active, after.job.attempts, after.job.next_run.at) == (True, 1, later(5))


def test_alternating_errors_fail_when_one_class_has_exhausted_its_attempts() -> None:
    current = record()
    for number in range(1, 100):
        error = Conflict("busy") if number % 3 == 0 else (Unavailable("x"), Unexpected("y"))[number % 2]
        current = apply_outcome(current, Retry(error), now=NOW, jitter=0)
        if current.failed:
            break
    assert current.job.step.attempts == {"Unavailable": 6, "Unexpected": 6, "Conflict": 5}
    assert current.job.attempts == 6


def test_a_terminal_failure_does_not_count_the_attempts_of_another_class() -> None:
    tried = apply_outcome(record(), Retry(Conflict("busy")), now=NOW, jitter=0)
    tried = apply_outcome(tried, Retry(Conflict("busy")), now=NOW, jitter=0)
    assert apply_outcome(tried, Fail(QuotaExceeded("no vCPUs")), now=NOW, jitter=0).job.attempts == 1


def test_an_interrupted_operation_is_repeated_a_limited_number_of_times() -> None:
    current, writes, write = record(step=Step.CLUSTER), 0, put("w", "r-1")
    while current.job.active:
        assert current.job.step.last_write is None
        current = apply_outcome(current, Wait(20, "Azure is creating", write), now=NOW, jitter=0)
        writes += 1
        current = apply_outcome(current, Wait(20, "Azure is creating"), now=NOW, jitter=0)
        assert current.job.step.last_write is write
        current = apply_outcome(current, Retry(Interrupted("an error inside")), now=NOW, jitter=0)
    assert (writes, current.job.attempts, current.retryable_failure) == (5, 5, True)


def test_a_write_without_a_request_id_does_not_inherit_the_previous_one() -> None:
    first = apply_outcome(record(), Wait(5, "x", put("a", "r-1")), now=NOW, jitter=0)
    for digest, request_id in (("a", "r-1"), ("b", "")):
        last = apply_outcome(first, Wait(5, "x", put(digest)), now=NOW, jitter=0).job.step.last_write
        assert last is not None
        assert last.request_id == request_id


def test_a_conflict_is_retried_indefinitely() -> None:
    assert wait_before_retry(Conflict("busy"), 10_000, 0.5) is not None


def test_a_terminal_error_fails_at_once() -> None:
    after = apply_outcome(record(), Fail(QuotaExceeded("no vCPUs")), now=NOW, jitter=0)
    assert (after.phase, after.job.active, after.job.reason) == (
        Phase.FAILED,
        False,
        "QuotaExceeded: no vCPUs",
    )
    ready = after.condition("Ready")
    assert ready is not None
    assert not ready.status


def test_a_lease_is_released_only_by_its_owner() -> None:
    newer = accept_change(record(lease=Lease("me", later(60), NOW)), desired("one"), commit="d", now=NOW)
    assert newer.job.lease == Lease("me", later(60), NOW)
    released = release(newer, "me")
    assert released is not None
    assert (released.job.lease, released.job.step.abandoned_leases) == (None, 1)
    assert release(newer, "other") is None


OUTCOMES: st.SearchStrategy[Outcome] = st.one_of(
    st.builds(Done, st.text(max_size=5)),
    st.builds(Wait, st.floats(0, 100), st.text(max_size=5)),
    st.sampled_from([Retry(Unavailable("x")), Retry(Conflict("y")), Fail(QuotaExceeded("z"))]),
)


@given(st.lists(OUTCOMES, max_size=30), st.floats(0, 1))
def test_any_sequence_of_outcomes_leaves_a_valid_record(outcomes: list[Outcome], jitter: float) -> None:
    current = record()
    for number, outcome in enumerate(outcomes):
        if not current.job.active:
            break
        after = apply_outcome(current, outcome, now=later(number), jitter=jitter)
        assert after.job.sequence == current.job.sequence + 1
        assert after.job.step.name in STEPS[Recipe.PROVISION]
        assert after.observed_generation <= after.generation
        assert after.job.active == (after.phase not in (Phase.READY, Phase.FAILED))
        assert from_json(to_json(after), "e") == after
        assert all(event.sequence == after.job.sequence for event in events_between(current, after, outcome))
        current = after


def test_a_repeated_wait_is_one_event() -> None:
    first = apply_outcome(record(), Wait(5, "busy"), now=NOW, jitter=0)
    second = apply_outcome(first, Wait(5, "busy"), now=later(5), jitter=0)
    assert [e.message for e in events_between(record(), first, Wait(5, "busy"))] == ["busy"]
    assert list(events_between(first, second, Wait(5, "busy"))) == []


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (429, "", errors.Throttled),
        (500, "", errors.Unavailable),
        (408, "", errors.Unavailable),
        (409, "OperationNotAllowed", errors.Conflict),
        (412, "", errors.Conflict),
        (400, "BadRequest", errors.InvalidManifest),
        (401, "", errors.Unauthenticated),
        (403, "", errors.Unauthorized),
        (404, "", errors.Dependency),
    ],
)
def test_every_http_response_has_an_error_class(status: int, code: str, kind: type[ReconcileError]) -> None:
    error = from_http(status, code, "a message", request_id="r")
    assert type(error) is kind
    assert (str(error), error.code, error.request_id) == ("a message", code, "r")


def test_a_lack_of_capacity_is_tried_again_for_hours_and_then_given_up() -> None:
    current, moment, waits = record(step=Step.CLUSTER), NOW, list[float]()
    while current.job.active:
        current = apply_outcome(current, Wait(20, "creating", put("w", "r-1")), now=moment, jitter=1)
        full = OutOfCapacity("no room in the zone")
        current = apply_outcome(current, Retry(full), now=moment, jitter=1)
        waits.append((current.job.next_run.at - moment).total_seconds())
        moment = current.job.next_run.at
    assert waits == [600, 1200, 2400, *[3600] * 8, 0]
    assert current.retryable_failure


def test_a_repeated_retry_is_an_event_only_when_its_attempts_double() -> None:
    current, reported = record(), list[int]()
    for number in range(1, 2001):
        outcome = Retry(Conflict("busy"))
        after = apply_outcome(current, outcome, now=NOW, jitter=0)
        reported += [number for _ in events_between(current, after, outcome)]
        current = after
    assert reported == [2**n for n in range(11)]


def test_a_retry_with_another_message_class_or_phase_is_an_event() -> None:
    current = record()
    for _ in range(5):
        current = apply_outcome(current, Retry(Conflict("busy")), now=NOW, jitter=0)
    late = later(current.job.step.name.deadline + 1)
    for error, now in (
        (Conflict("busy with another"), NOW),
        (Throttled("busy"), NOW),
        (Conflict("busy"), late),
    ):
        outcome = Retry(error)
        after = apply_outcome(current, outcome, now=now, jitter=0)
        assert [event.reason for event in events_between(current, after, outcome)] == ["Retrying"]


def test_records_compare_equal_whatever_their_etag() -> None:
    assert replace(record(), etag="v2") == record()


def test_a_step_waits_on_the_same_part_until_another_wait_replaces_it() -> None:
    drain = WaitSubject(WaitKind.DRAIN, "apps", later(10))
    first = apply_outcome(record(), Wait(5, "draining", waiting_on=drain), now=later(10), jitter=0)
    tried = apply_outcome(first, Retry(Conflict("busy")), now=later(20), jitter=0)
    assert tried.job.step.waiting_on == drain
    assert apply_outcome(tried, Wait(5, "elsewhere"), now=later(40), jitter=0).job.step.waiting_on is None


def test_a_suspended_wait_never_stalls_and_its_deadline_starts_at_its_end() -> None:
    asked = Wait(900, "until May", open_ended=True, suspended=True)
    suspended = apply_outcome(record(), asked, now=later(90_000), jitter=0)
    assert suspended.phase is Phase.SUSPENDED
    assert apply_outcome(suspended, Wait(5, "Azure"), now=later(90_005), jitter=0).phase is Phase.PROVISIONING


def test_a_step_can_send_the_job_back_to_an_earlier_one() -> None:
    at_pools = record(step=Step.NODE_POOLS, last_write=put("x"), attempts={"Conflict": 2})
    after = apply_outcome(at_pools, GoToStep(Step.CLUSTER, "on to 1.37"), now=later(5), jitter=0)
    assert after.job.step == start_step(Step.CLUSTER, later(5))
    assert (after.job.attempts, after.job.next_run.at) == (0, later(5))


def test_a_job_that_began_again_too_often_says_the_last_reason_and_that_nothing_vanished() -> None:
    often = replace(record(), job=replace(record().job, restarts=MAX_RESTARTS))
    reason = "somebody suspended the Kustomization team, and the policy resumes it"
    after = apply_outcome(often, Restart(reason), now=NOW, jitter=0)
    assert after.phase is Phase.FAILED
    assert f"{reason}; the job started again 5 times for such reasons" in after.job.reason
    assert "vanished" not in after.job.reason


def test_a_new_write_extends_the_deadline_and_a_repeated_one_does_not() -> None:
    late = Step.NODE_POOLS.deadline + 1
    first = apply_outcome(record(step=Step.NODE_POOLS), Wait(5, "Azure", put("1")), now=later(late), jitter=0)
    assert first.phase is Phase.PROVISIONING
    again = apply_outcome(first, Wait(5, "Azure", put("1")), now=later(2 * late), jitter=0)
    assert again.phase is Phase.STALLED
    assert (
        apply_outcome(again, Wait(5, "Azure", put("2")), now=later(2 * late), jitter=0).phase
        is Phase.PROVISIONING
    )
