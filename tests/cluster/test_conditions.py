"""The conditions of a cluster as a whole: Ready, and Stalled."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from shared.azure.differences import Difference
from shared.azure.drift.policy import DriftDecision
from shared.cluster.failures.errors import ClusterStopped, QuotaExceeded, Throttled, Unavailable
from shared.cluster.findings.conditions import STALLED
from shared.cluster.outcomes import Done, Fail, Outcome, Restart, Retry, Wait
from shared.cluster.recipes import Step
from shared.cluster.record import READY, ClusterRecord
from shared.cluster.record_parts import Condition, Phase
from shared.cluster.reporting.summary import summary_of
from shared.cluster.transitions.acceptance import accept_change, accept_delete, accept_retry
from shared.cluster.transitions.apply_comparison import start_correction
from shared.cluster.transitions.apply_outcome import apply_outcome
from shared.language.model.cluster.drift import DriftAction
from tests.support.cluster_records import NOW, later, record
from tests.support.desired_clusters import desired


def of(current: ClusterRecord, kind: str) -> Condition:
    found = current.condition(kind)
    assert found is not None
    return found


def shown(current: ClusterRecord, kind: str) -> tuple[bool | None, str, int]:
    found = of(current, kind)
    return found.status, found.reason, found.observed_generation


def after(current: ClusterRecord, outcome: Outcome, seconds: float = 0) -> ClusterRecord:
    return apply_outcome(current, outcome, now=later(seconds), jitter=0)


def verified() -> ClusterRecord:
    return after(record(step=Step.VERIFY), Done("Flux applied it"))


def change(current: ClusterRecord, seconds: float = 60) -> ClusterRecord:
    return accept_change(current, desired("one"), commit="d" * 40, now=later(seconds))


def test_a_new_cluster_is_not_ready_and_not_stalled() -> None:
    assert shown(record(), READY) == (False, "Provisioning", 1)
    assert shown(record(), STALLED) == (False, "Provisioning", 1)


def test_a_verified_cluster_is_ready_for_its_generation_since_and_as_of_the_verification() -> None:
    ready = of(verified(), READY)
    assert (ready.status, ready.reason, ready.observed_generation) == (True, "Done", 1)
    assert (ready.since, ready.verified, ready.message) == (NOW, NOW, "Flux applied it")


def test_a_cluster_that_is_updated_to_a_newer_generation_is_not_ready_from_its_acceptance_on() -> None:
    updated = change(verified())
    ready = of(updated, READY)
    assert (ready.status, ready.reason, ready.observed_generation) == (False, "Updating", 2)
    assert (ready.since, ready.message) == (later(60), "generation 2 is not verified yet")
    waits = of(after(updated, Wait(20, "Azure is updating the cluster"), 90), READY)
    assert (waits.message, waits.since) == ("Azure is updating the cluster", later(60))
    assert waits.verified == later(90)


def test_a_cluster_that_is_deleted_or_replayed_is_not_ready() -> None:
    assert shown(accept_delete(verified(), commit="d" * 40, now=NOW), READY) == (False, "Deleting", 2)
    failed = after(record(), Fail(QuotaExceeded("no vCPUs")))
    assert shown(accept_retry(failed, now=NOW), READY) == (False, "Provisioning", 1)
    assert shown(accept_retry(failed, now=NOW), STALLED) == (False, "Provisioning", 1)


def test_only_a_cluster_that_was_verified_and_has_no_job_is_idle() -> None:
    lost = after(verified(), Fail(ClusterStopped("somebody stopped it")))
    for current in (verified(), lost):
        assert current.idle
    failed = after(change(verified()), Fail(QuotaExceeded("no vCPUs")))
    for current in (record(), change(verified()), accept_retry(lost, now=NOW), failed):
        assert not current.idle


def test_what_a_change_took_is_not_what_a_later_correction_of_it_took() -> None:
    ready = after(record(step=Step.VERIFY), Done(), 2400)
    assert summary_of(ready).times.took == 2400
    wanted = [DriftDecision(Difference("tags.cost", "a", "b"), DriftAction.CORRECT)]
    started, _ = start_correction(ready, wanted, now=later(9000))
    corrected = after(
        replace(started, job=replace(started.job, step=record(step=Step.VERIFY).job.step)), Done(), 9060
    )
    assert corrected.phase is Phase.READY
    assert summary_of(corrected).times.took == 0


def test_a_first_creation_that_failed_is_neither_ready_nor_going_on() -> None:
    failed = after(record(step=Step.CLUSTER), Fail(QuotaExceeded("no vCPUs")), 60)
    assert shown(failed, READY) == (False, "QuotaExceeded", 1)
    assert shown(failed, STALLED) == (True, "QuotaExceeded", 1)
    assert "no vCPUs" in of(failed, STALLED).message


def test_a_step_beyond_its_deadline_stalls_the_cluster_until_it_progresses() -> None:
    late = Step.CLUSTER.deadline + 1
    stalled = after(record(step=Step.CLUSTER), Wait(20, "it takes long"), late)
    assert shown(stalled, STALLED) == (True, "Stalled", 1)
    assert shown(stalled, READY) == (False, "Stalled", 1)
    again = after(stalled, Wait(20, "it still does"), late + 300)
    assert (of(again, STALLED).since, of(again, STALLED).verified) == (later(late), later(late + 300))
    assert shown(after(again, Done(), late + 400), STALLED) == (False, "Provisioning", 1)


def test_a_suspended_cluster_is_not_ready_because_it_is_suspended() -> None:
    waits = after(change(verified()), Wait(20, "suspended by team-a", suspended=True))
    assert shown(waits, READY) == (False, "Suspended", 2)
    assert shown(waits, STALLED) == (False, "Suspended", 2)


def test_what_a_sweep_finds_makes_an_idle_cluster_not_ready_and_ready_again() -> None:
    lost = after(verified(), Fail(ClusterStopped("somebody stopped it")), 60)
    assert shown(lost, READY) == (False, "ClusterStopped", 1)
    assert shown(lost, STALLED) == (True, "ClusterStopped", 1)
    found = after(lost, Done("as it was"), 120)
    assert shown(found, READY) == (True, "Done", 1)
    assert shown(found, STALLED) == (False, "Ready", 1)


def test_the_condition_of_a_step_says_for_which_generation_and_as_of_when() -> None:
    done = after(change(verified()), Done(), 90)
    group = of(done, "ResourceGroupReady")
    assert (group.observed_generation, group.verified) == (2, later(90))


OUTCOMES: st.SearchStrategy[Outcome] = st.one_of(
    st.builds(Done),
    st.builds(Wait, st.just(20.0), st.just("waits"), suspended=st.booleans()),
    st.sampled_from([Retry(Unavailable("no answer")), Retry(Throttled("slower"))]),
    st.sampled_from([Fail(QuotaExceeded("no vCPUs")), Restart("it vanished")]),
)


@given(st.lists(st.tuples(st.one_of(OUTCOMES, st.just(None)), st.integers(1, 2000)), max_size=30))
def test_whatever_happens_ready_and_stalled_are_as_the_phase_says(
    history: list[tuple[Outcome | None, int]],
) -> None:
    current, seconds = record(), 0.0
    for outcome, passed in history:
        seconds += passed
        if outcome is None or not current.job.active:
            current = change(current, seconds)
        else:
            current = after(current, outcome, seconds)
        ready, stalled = of(current, READY), of(current, STALLED)
        assert ready.status == (current.phase is Phase.READY and not current.job.active)
        assert stalled.status == (current.phase in (Phase.STALLED, Phase.FAILED))
        assert ready.observed_generation == stalled.observed_generation == current.generation
        assert ready.since <= later(seconds)
        assert stalled.verified == later(seconds)
        assert current == replace(current, conditions=tuple(dict.fromkeys(current.conditions)))
