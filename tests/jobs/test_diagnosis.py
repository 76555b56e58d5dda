"""Why a cluster is as it is, told to a person."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from shared.jobs.apply_outcome import apply_outcome
from shared.jobs.diagnosis import Diagnosis, diagnose
from shared.jobs.errors import QuotaExceeded, Unavailable
from shared.jobs.job import Lease
from shared.jobs.outcomes import Fail, Retry, Wait
from shared.jobs.recipes import STEPS, Recipe, Step, deadline
from shared.jobs.record import ClusterRecord, Phase
from shared.jobs.remedies import REMEDIES, classes
from tests.support.cluster_records import NOW, later, record

ALL = len(STEPS[Recipe.PROVISION])


def told(found: ClusterRecord, seconds: float = 0) -> Diagnosis:
    return diagnose(found, now=later(seconds))


def test_exactly_the_error_classes_have_remedies() -> None:
    assert set(classes()) == set(REMEDIES)
    assert all(remedy.meaning and remedy.action for remedy in REMEDIES.values())


def test_a_new_job_is_about_to_run() -> None:
    found = told(record())
    assert found.activity == f"is about to run the step resource-group (1 of {ALL} of provision)"
    assert found.next_at == NOW


def test_a_lease_means_that_a_worker_runs_the_step_now() -> None:
    found = told(record(lease=Lease("w", later(30))))
    assert (found.activity[:13], found.next_at) == ("runs the step", later(30))


def test_a_wait_shows_its_reason_and_its_next_check() -> None:
    waiting = apply_outcome(
        record(step=Step.CLUSTER), Wait(20, "Azure is creating the cluster"), now=NOW, jitter=0
    )
    found = told(waiting)
    assert (
        found.activity
        == f"waits in the step cluster (2 of {ALL} of provision): Azure is creating the cluster"
    )
    assert (found.next, found.next_at) == ("checks again", later(20))
    assert found.suggested_action == "No action needed."


def test_a_retry_shows_the_error_the_attempt_and_the_suggested_action() -> None:
    error = Unavailable("no answer", code="ServiceUnavailable", request_id="r-1")
    found = told(apply_outcome(record(attempts={"Unavailable": 2}), Retry(error), now=NOW, jitter=0))
    assert "retries the step resource-group" in found.activity
    assert found.activity.endswith("after Unavailable: no answer")
    assert found.next == "attempt 4 of 15"
    assert found.failure is not None
    assert (found.attempts, found.failure.code, found.failure.request_id) == (3, "ServiceUnavailable", "r-1")
    assert found.suggested_action == "Check the service's health page."


def test_an_overdue_job_is_left_to_the_timer() -> None:
    late = told(record(), seconds=300)
    assert late.next == "its message is late; the timer sends it again within minutes"
    assert late.next_at is None


def test_a_failed_job_shows_its_remedy() -> None:
    found = told(apply_outcome(record(), Fail(QuotaExceeded("no vCPUs")), now=NOW, jitter=0), seconds=60)
    assert found.activity.endswith("QuotaExceeded: no vCPUs")
    assert (found.since, found.next_at) == (NOW, None)
    assert "a commit that changes the cluster, or a replay" in found.next
    assert "Raise the quota" in found.suggested_action


def test_a_retryable_failure_is_retried_by_any_commit() -> None:
    tried = record(attempts={"Unavailable": 14})
    failed = apply_outcome(tried, Retry(Unavailable("gone")), now=NOW, jitter=0)
    assert "the next commit, whatever it changes" in told(failed).next
    assert (
        told(failed).suggested_action
        == "Check the service's health page. `roadstead replay one` starts the job again."
    )


@pytest.mark.parametrize(
    ("step", "look"),
    [
        (Step.CLUSTER, "Azure's activity log of the resource group"),
        (Step.VERIFY, "`kubectl -n flux-system get pods,gitrepositories,kustomizations`"),
    ],
)
def test_a_stalled_job_shows_its_deadline_and_where_to_look(step: Step, look: str) -> None:
    long_ago = record(step, since=NOW - timedelta(hours=2), last_progress=NOW - timedelta(hours=2))
    found = told(apply_outcome(long_ago, Wait(20, "it takes long"), now=NOW, jitter=0))
    assert found.suggested_action.startswith(look)
    assert f"more than its {deadline(step) / 60:g} minutes" in found.suggested_action


def test_a_ready_cluster_does_nothing() -> None:
    ready = replace(record(active=False), phase=Phase.READY, observed_generation=1)
    assert told(ready).activity == "is idle: generation 1 was verified Ready"
