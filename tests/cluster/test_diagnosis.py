"""Why a cluster is in its state, for an operator."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from shared.cluster.divergence.drift import Drift, DriftedField
from shared.cluster.failures.errors import (
    NotYetVisible,
    ReconcileError,
    Retryable,
    TooLarge,
    Unavailable,
    classes,
)
from shared.cluster.failures.remedies import REMEDIES, suggested_action
from shared.cluster.failures.retry import RetryPolicy, policy_for
from shared.cluster.job import Lease
from shared.cluster.outcomes import Done, Fail, Retry, Wait
from shared.cluster.recipes import STEPS, Recipe, Step
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Divergence, Phase
from shared.cluster.reporting.diagnosis import NewestPlan, diagnose
from shared.cluster.reporting.job_diagnosis import Diagnosis
from shared.cluster.transitions.apply_outcome import apply_outcome
from shared.plan.holds import Hold, HoldKind
from shared.plan.plan import Action, Item
from tests.support.cluster_records import NOW, later, record

FOREVER = {ReconcileError: RetryPolicy(5, 60, None)}
ONCE = {ReconcileError: RetryPolicy(5, 60, 1)}
"""A delete that is refused fails after its last attempt; any other refusal at once."""
ALL = len(STEPS[Recipe.PROVISION])
WRITES = "the next commit that changes the cluster, or a replay, writes the values of git"


def explained(current: ClusterRecord, seconds: float = 0) -> Diagnosis:
    return diagnose(current, now=later(seconds))


def test_exactly_the_error_classes_have_remedies() -> None:
    assert set(classes()) == set(REMEDIES)
    assert all(remedy.meaning and remedy.action for remedy in REMEDIES.values())


@pytest.mark.parametrize("failed", [False, True])
def test_no_advice_says_a_sentence_twice(failed: bool) -> None:
    for kind in classes():
        sentences = suggested_action(kind.__name__, failed=failed).split(". ")
        assert len(sentences) == len({sentence.strip(". ") for sentence in sentences}), kind


def test_a_new_job_is_about_to_run() -> None:
    diagnosis = explained(record())
    assert diagnosis.activity == f"is about to run the step resource-group (1 of {ALL} of provision)"
    assert diagnosis.next_at == NOW


def test_a_lease_means_that_a_worker_runs_the_step_now() -> None:
    diagnosis = explained(record(lease=Lease("w", later(30), NOW)))
    assert (diagnosis.activity[:13], diagnosis.next_at) == ("runs the step", later(30))


def test_a_wait_shows_its_reason_and_its_next_check() -> None:
    waiting = apply_outcome(
        record(step=Step.CLUSTER), Wait(20, "Azure is creating the cluster"), now=NOW, jitter=0
    )
    diagnosis = explained(waiting)
    assert (
        diagnosis.activity
        == f"waits in the step cluster (2 of {ALL} of provision): Azure is creating the cluster"
    )
    assert (diagnosis.next, diagnosis.next_at) == ("checks again", later(20))
    assert diagnosis.suggested_action == "No action needed."


def test_a_retry_shows_the_error_the_attempt_and_the_suggested_action() -> None:
    error = Unavailable("no answer", code="ServiceUnavailable", request_id="r-1")
    diagnosis = explained(apply_outcome(record(attempts={"Unavailable": 2}), Retry(error), now=NOW, jitter=0))
    assert "retries the step resource-group" in diagnosis.activity
    assert diagnosis.activity.endswith("after Unavailable: no answer")
    assert diagnosis.next == "attempt 4 of 15"
    assert diagnosis.failure is not None
    assert (diagnosis.attempts, diagnosis.failure.code, diagnosis.failure.request_id) == (
        3,
        "ServiceUnavailable",
        "r-1",
    )
    assert diagnosis.suggested_action == "Check the service's health page."


@pytest.mark.parametrize("kind", list(classes(Retryable)), ids=lambda kind: kind.__name__)
def test_a_retry_names_the_last_attempt_before_the_job_fails(kind: type[ReconcileError]) -> None:
    once = apply_outcome(record(), Retry(kind("an error")), now=NOW, jitter=0)
    limit = None if kind.outside else policy_for(kind).attempts
    assert explained(once).next == ("attempt 2" if limit is None else f"attempt 2 of {limit}")
    if limit is not None:
        tried = record(attempts={kind.__name__: limit - 1})
        assert apply_outcome(tried, Retry(kind("an error")), now=NOW, jitter=0).failed


@pytest.mark.parametrize(
    "kind", [kind for kind in classes(Retryable) if kind.outside], ids=lambda kind: kind.__name__
)
def test_what_a_person_outside_has_to_change_counts_as_failed_after_its_attempts_and_goes_on(
    kind: type[ReconcileError],
) -> None:
    limit = policy_for(kind).attempts
    assert limit is not None
    for tried, counts in ((limit - 2, False), (limit - 1, True), (50, True)):
        stuck = apply_outcome(
            record(attempts={kind.__name__: tried}), Retry(kind("an error")), now=NOW, jitter=1
        )
        assert (stuck.job.active, stuck.refused) == (True, counts)
    assert stuck.job.next_run.at == NOW + timedelta(seconds=policy_for(kind).longest)
    deleting = record(recipe=Recipe.DELETE, step=Step.DELETE_CLUSTER, attempts={kind.__name__: 50})
    assert not apply_outcome(deleting, Retry(kind("an error")), now=NOW, jitter=0).refused


def test_an_overdue_job_is_left_to_the_timer() -> None:
    late = explained(record(), seconds=300)
    assert late.next == "its message is late; the timer sends it again within minutes"
    assert late.next_at is None


def test_a_failed_job_shows_its_remedy() -> None:
    diagnosis = explained(
        apply_outcome(record(), Fail(TooLarge("too many tags")), now=NOW, jitter=0), seconds=60
    )
    assert diagnosis.activity.endswith("TooLarge: too many tags")
    assert (diagnosis.since, diagnosis.next_at) == (NOW, None)
    assert "a commit that changes the cluster, or a replay" in diagnosis.next
    assert "Make the manifest" in diagnosis.suggested_action


def test_a_retryable_failure_is_retried_by_any_commit() -> None:
    tried = record(attempts={"Unavailable": 14})
    failed = apply_outcome(tried, Retry(Unavailable("gone")), now=NOW, jitter=0)
    assert "the next commit, whatever it changes" in explained(failed).next
    assert (
        explained(failed).suggested_action
        == "Check the service's health page. `roadstead replay one` starts the job again."
    )


@pytest.mark.parametrize(
    ("step", "action"),
    [
        (Step.CLUSTER, "Azure's activity log of the resource group"),
        (Step.VERIFY, "`kubectl -n flux-system get pods,gitrepositories,kustomizations`"),
        (Step.SYSTEMS, "`kubectl get namespaces,kustomizations --all-namespaces`"),
    ],
)
def test_a_stalled_job_shows_its_deadline_and_where_to_look(step: Step, action: str) -> None:
    long_ago = record(step, since=NOW - timedelta(hours=2), last_progress=NOW - timedelta(hours=2))
    diagnosis = explained(apply_outcome(long_ago, Wait(20, "it takes long"), now=NOW, jitter=0))
    assert diagnosis.suggested_action.startswith(action)
    assert f"more than its {step.deadline / 60:g} minutes" in diagnosis.suggested_action


def test_a_ready_cluster_does_nothing() -> None:
    ready = replace(record(active=False), phase=Phase.READY, observed_generation=1)
    assert explained(ready).activity == "is idle: generation 1 was verified Ready"


@pytest.mark.parametrize(
    ("alone", "following"),
    [
        ([True], ""),
        ([True, False], f"; {WRITES}, but for what no job changes"),
        ([False], f"; {WRITES}"),
    ],
)
def test_only_what_a_job_changes_is_written_by_the_next_one(alone: list[bool], following: str) -> None:
    fields = tuple(
        DriftedField(f"tags.{left}", "", '"a"', NOW, left_alone=left) for left in dict.fromkeys(alone)
    )
    ready = replace(record(active=False), phase=Phase.READY, observed_generation=1)
    differing = replace(ready, divergence=Divergence(Drift(fields)))
    assert explained(differing).next == f"the next sweep compares it again{following}"


def test_a_job_that_does_not_continue_by_itself_never_says_that_no_action_is_needed() -> None:
    for recipe in Recipe:
        for kind in classes():
            for step in STEPS[recipe]:
                began = record(step=step, recipe=recipe)
                failed = apply_outcome(began, Fail(kind("an error")), now=NOW, jitter=0, retries=ONCE)
                late = replace(
                    began, job=replace(began.job, step=replace(began.job.step, last_progress=later(-7200)))
                )
                stalled = apply_outcome(late, Retry(kind("an error")), now=NOW, jitter=0, retries=FOREVER)
                assert (failed.phase, stalled.phase) == (Phase.FAILED, Phase.STALLED), (kind, recipe)
                for stuck in (failed, stalled):
                    action = explained(stuck).suggested_action
                    assert action, (kind, recipe)
                    assert "no action" not in action.lower(), (kind, recipe)
                assert "`roadstead replay one`" in explained(failed).suggested_action or not issubclass(
                    kind, Retryable
                ), (kind, recipe)
                by_time = not (kind.outside and not recipe.removes)
                assert ("more than its" in explained(stalled).suggested_action) is by_time, (kind, recipe)


@pytest.mark.parametrize("step", list(Step))
def test_a_wait_that_only_a_person_ends_says_what_to_do_in_every_step_and_phase(step: Step) -> None:
    recipe = next(recipe for recipe in Recipe if step in STEPS[recipe])
    for seconds, suspended in ((0.0, False), (0.0, True), (7200.0, False)):
        begun = record(step=step, recipe=recipe, last_progress=later(-seconds))
        wait = Wait(20, "the cluster is stopped", action_required="Start it.", suspended=suspended)
        waiting = apply_outcome(begun, wait, now=NOW, jitter=0)
        assert explained(waiting).suggested_action.startswith("Start it.")


def test_a_stalled_step_that_reads_once_more_still_names_where_to_look() -> None:
    late = record(step=Step.DELETE_CLUSTER, recipe=Recipe.DELETE, last_progress=later(-7200))
    again = Retry(NotYetVisible("Azure does not show the cluster one", retry_after=20))
    stalled = apply_outcome(late, again, now=NOW, jitter=0)
    assert stalled.phase is Phase.STALLED
    assert "activity log" in explained(stalled).suggested_action


def test_a_delete_says_since_when_the_cluster_for_which_it_waits_has_failed() -> None:
    old = apply_outcome(record(step=Step.VERIFY), Done(), now=NOW, jitter=0)
    new = apply_outcome(
        replace(record(step=Step.CLUSTER), name="two"), Fail(TooLarge("none")), now=later(7200), jitter=0
    )
    item = Item("one", Action.DELETE, hold=Hold(HoldKind.AWAITS_REPLACEMENT, {"new": "two", "first": "two"}))
    said = diagnose(old, NewestPlan("c" * 40, item, successors={"two": new}), now=later(7300)).activity
    assert "; two is Failed since 2026-01-01 14:00 UTC: TooLarge: none" in said
