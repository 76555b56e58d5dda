"""What a step's outcome adds to the metrics and to the trace of its commit."""

from __future__ import annotations

from datetime import timedelta

from shared.jobs.failures.errors import QuotaExceeded, Throttled
from shared.jobs.outcomes import Done, Fail, Outcome, Restart, Retry, Wait
from shared.jobs.recipes import Step
from shared.jobs.record import ClusterRecord, Phase
from shared.jobs.reporting.measurements import (
    FAILURES,
    JOB_DURATION,
    METRICS,
    RETRIES,
    STEP_DURATION,
    Measurement,
    Metric,
    Span,
    of_outcome,
    of_phases,
)
from shared.jobs.transitions.apply_outcome import apply_outcome
from tests.support.cluster_records import NOW, record

LATER = NOW + timedelta(seconds=90)


def measured(before: ClusterRecord, outcome: Outcome) -> tuple[dict[Metric, Measurement], list[Span]]:
    after = apply_outcome(before, outcome, now=LATER, jitter=0)
    found = list(of_outcome(before, after, outcome))
    measurements = {each.metric: each for each in found if isinstance(each, Measurement)}
    return measurements, [each for each in found if isinstance(each, Span)]


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


def test_each_phase_has_a_value_also_when_no_cluster_is_in_it() -> None:
    found = {each.attributes["phase"]: each.value for each in of_phases([Phase.READY, Phase.READY])}
    assert found == {phase.value: 2 * (phase is Phase.READY) for phase in Phase}


def test_a_measurement_has_the_attributes_of_its_metric() -> None:
    outcomes = (Done(), Fail(QuotaExceeded("no cores")), Retry(Throttled("slow down")))
    for step in (Step.CLUSTER, Step.VERIFY):
        for outcome in outcomes:
            measurements, _ = measured(record(step), outcome)
            for each in measurements.values():
                assert each.metric in METRICS
                assert tuple(each.attributes) == each.metric.attributes
