"""What a step's outcome adds to the metrics and to the trace of its commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from shared.cluster.divergence.drift import Drift, DriftedField
from shared.cluster.failures.errors import QuotaExceeded, Throttled
from shared.cluster.findings.conditions import with_condition, with_in_sync
from shared.cluster.history import Gaps
from shared.cluster.job import Delay, JobQueue, NextRun
from shared.cluster.outcomes import Done, Fail, Outcome, Restart, Retry, Wait
from shared.cluster.queues.continuations import continuation_of
from shared.cluster.recipes import Step
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Condition, Phase
from shared.cluster.reporting.measurements import (
    CLUSTERS,
    CONDITIONS,
    DRIFT,
    FAILURES,
    GAPS,
    JOB_DURATION,
    METRICS,
    QUEUE_AGE,
    RETRIES,
    STEP_DURATION,
    Measurement,
    Metric,
    Span,
    of_fleet,
    of_outcome,
    of_queues,
)
from shared.cluster.reporting.summary import summary_of
from shared.cluster.transitions.apply_outcome import apply_outcome
from shared.language.model.cluster.drift import DriftAction
from tests.support.cluster_records import NOW, record

LATER = NOW + timedelta(seconds=90)


def measured(before: ClusterRecord, outcome: Outcome) -> tuple[dict[Metric, Measurement], list[Span]]:
    after = apply_outcome(before, outcome, now=LATER, jitter=0)
    found = list(of_outcome(before, after, outcome))
    measurements = {
        measurement.metric: measurement for measurement in found if isinstance(measurement, Measurement)
    }
    return measurements, [measurement for measurement in found if isinstance(measurement, Span)]


def test_a_step_that_is_done_is_a_span_of_its_commit_from_its_start_to_its_end() -> None:
    before = record(Step.CLUSTER)
    measurements, spans = measured(before, Done())
    assert measurements == {STEP_DURATION: Measurement(STEP_DURATION, 90, {"step": "cluster"})}
    (span,) = spans
    assert (span.name, span.commit, span.failed) == ("cluster", before.commit, "")
    assert (span.started, span.ended) == (before.job.step.since, LATER)
    assert span.attributes == {"cluster": before.name, "generation": "1"}


def test_the_last_step_ends_the_job_and_its_time_to_ready() -> None:
    started = NOW - timedelta(seconds=600)
    before = record(Step.VERIFY, started=started)
    measurements, spans = measured(before, Done())
    assert measurements[JOB_DURATION] == Measurement(
        JOB_DURATION, 690, {"recipe": "provision", "result": "Ready"}
    )
    assert [(span.name, span.started) for span in spans] == [
        ("verify", before.job.step.since),
        (f"provision {before.name}", started),
    ]


def test_a_retry_is_counted_by_the_class_of_its_error_and_ends_no_step() -> None:
    measurements, spans = measured(record(Step.CLUSTER), Retry(Throttled("slow down")))
    expected = Measurement(RETRIES, 1, {"error": "Throttled", "step": "cluster"})
    assert measurements == {RETRIES: expected}
    assert spans == []


def test_a_failure_ends_the_step_and_the_job_with_its_class() -> None:
    measurements, spans = measured(record(Step.CLUSTER), Fail(QuotaExceeded("no cores")))
    assert measurements[FAILURES].attributes == {"error": "QuotaExceeded", "step": "cluster"}
    assert measurements[JOB_DURATION].attributes["result"] == "Failed"
    assert {span.failed for span in spans} == {"QuotaExceeded"}


def test_a_wait_and_a_restart_are_no_end() -> None:
    for outcome in (Wait(20, "Azure creates the cluster"), Restart("the group has vanished")):
        assert measured(record(Step.CLUSTER), outcome) == ({}, [])


def of_metric(metric: Metric, found: Sequence[Measurement]) -> dict[tuple[str, ...], float]:
    """Return the values of a metric by those of its attributes."""
    return {
        tuple(measurement.attributes.values()): measurement.value
        for measurement in found
        if measurement.metric is metric
    }


def test_each_phase_has_a_value_also_when_no_cluster_is_in_it() -> None:
    ready = replace(summary_of(record(Step.VERIFY)), shown_phase=Phase.READY)
    found = list(of_fleet([ready, ready], Gaps()))
    assert of_metric(CLUSTERS, found) == {(phase.value,): 2 * (phase is Phase.READY) for phase in Phase}
    assert of_metric(GAPS, found) == {(): 0}


def test_conditions_drift_and_gaps_are_counted() -> None:
    stored = [action for action in DriftAction if action is not DriftAction.IGNORE]
    first, *rest = (DriftedField(f"tags.{action}", "1", "2", NOW, action=action) for action in stored)
    differs = Drift((first, *rest), more=7)
    drifted = with_in_sync(record(Step.VERIFY), differs, NOW)
    unknown = Condition("FluxHealthy", None, "Unread", "", NOW, 1, NOW)
    found = list(of_fleet([summary_of(with_condition(drifted, unknown)), summary_of(drifted)], Gaps(count=7)))
    conditions = of_metric(CONDITIONS, found)
    assert conditions["InSync", "False"] == 2
    assert (conditions["FluxHealthy", "Unknown"], conditions["FluxHealthy", "False"]) == (1, 0)
    assert {kind for kind, _ in conditions} == {
        "Ready",
        "InSync",
        "FluxHealthy",
        "PlatformHealthy",
        "SecretsHealthy",
        "Stalled",
    }
    assert of_metric(DRIFT, found) == {(action.value,): 2 for action in stored} | {("more",): 14}
    assert of_metric(GAPS, found) == {(): 7}


def test_a_queue_is_as_old_as_its_oldest_continuation_that_is_due() -> None:
    due = record(Step.CLUSTER)
    late = replace(due, job=replace(due.job, next_run=NextRun(NOW - timedelta(seconds=90), Delay.WAIT)))
    later = replace(due, job=replace(due.job, next_run=NextRun(NOW + timedelta(seconds=90), Delay.WAIT)))
    found = of_metric(QUEUE_AGE, list(of_queues(map(continuation_of, [later, late]), NOW)))
    assert found == {(queue.value,): 90.0 * (queue is JobQueue.JOBS) for queue in JobQueue}


def test_a_measurement_has_the_attributes_of_its_metric() -> None:
    outcomes = (Done(), Fail(QuotaExceeded("no cores")), Retry(Throttled("slow down")))
    for step in (Step.CLUSTER, Step.VERIFY):
        for outcome in outcomes:
            measurements, _ = measured(record(step), outcome)
            for measurement in measurements.values():
                assert measurement.metric in METRICS
                assert tuple(measurement.attributes) == measurement.metric.attributes
