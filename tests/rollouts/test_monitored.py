"""What a workspace of Azure Monitor answered, and whether that opens a gate."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localcloud.memory.memory_monitor import constant
from shared.rollouts.monitored import Sample, Series, fired_alerts, judged, step_of
from shared.rollouts.strategy import GateCheck

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
OVER = timedelta(minutes=30)
ERRORS = GateCheck("errors", query="up", workspace="shop", passes="< 0.01", over=OVER)


def ago(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


def between(oldest: float, newest: float, value: float = 0.0) -> Series:
    """Return a series with a sample in each step between two times, in minutes before now."""
    step = step_of(OVER)
    steps = int(timedelta(minutes=oldest - newest) / step)
    return Series(tuple(Sample(value, ago(oldest) + number * step) for number in range(steps + 1)), step)


def one(value: float, at: datetime | None = None) -> Series:
    return Series((Sample(value, at),))


@pytest.mark.parametrize(
    ("passes", "value", "met"),
    [
        *(("< 0.01", 0.005, True), ("< 0.01", 0.01, False), ("<= 0.01", 0.01, True), ("<0.01", 0.0, True)),
        *((">= 99.9", 99.95, True), ("> 99.9", 99.9, False), ("== 0", 0.0, True), ("== 0", 1.0, False)),
        *(("> -1", -0.5, True), ("< -1", -2.0, True), ("< 0.01", float("nan"), False)),
        ("> 0", float("nan"), False),
    ],
)
def test_a_value_passes_a_comparison_and_what_is_no_number_passes_none(
    passes: str, value: float, met: bool
) -> None:
    asked = GateCheck("errors", query="up", workspace="shop", passes=passes, over=OVER)
    assert judged(asked, [constant(value, NOW - OVER, NOW)], NOW)[0] is met


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ([], "no data"),
        ([Series(())], "no data"),
        ([between(30, 0), between(30, 0)], "2 series, where the query has to return one"),
        ([between(90, 60)], "the newest sample is of 2026-11-30 11:00:00 UTC, before the time of the check"),
        ([between(60, 0)], "samples are of another time than that of the check"),
        ([between(30, -20)], "samples are of another time than that of the check"),
        ([between(10, 0)], "no sample for a while after 11:30:00 UTC"),
        ([between(30, 10)], "no sample for a while after 11:49:30 UTC"),
        (
            [one(0.0, ago(45))],
            "the newest sample is of 2026-11-30 11:15:00 UTC, before the time of the check",
        ),
        ([one(0.0), one(0.0)], "2 series, where the query has to return one"),
    ],
)
def test_an_answer_that_does_not_cover_the_time_is_neither_a_success_nor_a_failure(
    answer: list[Series], said: str
) -> None:
    assert judged(ERRORS, answer, NOW) == (None, said)


def test_one_late_scrape_is_no_gap() -> None:
    whole = between(30, 0)
    late = Series((*whole.samples[:7], *whole.samples[8:]), whole.step)
    assert judged(ERRORS, [late], NOW) == (True, "0")
    two = Series((*whole.samples[:7], *whole.samples[9:]), whole.step)
    assert judged(ERRORS, [two], NOW)[0] is None


def test_every_value_of_the_time_has_to_pass_and_the_answer_shows_least_and_most() -> None:
    whole = between(30, 0)
    first, *rest = whole.samples
    assert judged(ERRORS, [Series((Sample(0.25, first.at), *rest), whole.step)], NOW) == (False, "0 to 0.25")
    unknown = Series((Sample(float("nan"), first.at), *rest), whole.step)
    assert judged(ERRORS, [unknown], NOW) == (False, "NaN")


def test_a_record_without_a_time_is_of_the_time_that_was_asked() -> None:
    assert judged(ERRORS, [one(0.001)], NOW) == (True, "0.001")
    assert judged(ERRORS, [one(0.001, ago(10))], NOW) == (True, "0.001")


@given(
    st.lists(st.tuples(st.integers(-200, 200), st.floats(allow_nan=True)), max_size=30),
    st.sampled_from(["< 1", ">= 0", "== 0"]),
)
def test_nothing_passes_that_has_a_value_which_does_not(points: list[tuple[int, float]], passes: str) -> None:
    asked = GateCheck("errors", query="up", workspace="shop", passes=passes, over=OVER)
    samples = tuple(Sample(value, ago(minutes)) for minutes, value in sorted(points, reverse=True))
    met, _ = judged(asked, [Series(samples, step_of(OVER))], NOW)
    if met:
        assert len(samples) >= 10
        assert all(asked.meets([sample.value]) for sample in samples)
        assert all(sample.at is not None and ago(31) < sample.at < ago(-2) for sample in samples)


def alert(severity: str, condition: str = "Fired", state: str = "New") -> dict[str, object]:
    about = {"severity": severity, "monitorCondition": condition, "alertState": state}
    about |= {"alertRule": "/subscriptions/s/rules/latency", "targetResource": "/subscriptions/s/shop"}
    return {"name": "a", "properties": {"essentials": about}}


@pytest.mark.parametrize(
    ("listed", "severity", "number"),
    [
        (alert("Sev1"), "Sev1", 1),
        (alert("Sev0"), "Sev1", 1),
        (alert("Sev2"), "Sev1", 0),
        (alert("Sev4"), "Sev4", 1),
        (alert("Sev1", "Resolved"), "Sev4", 0),
        (alert("Sev1", state="Acknowledged"), "Sev4", 1),
        (alert("Sev1", state="Closed"), "Sev4", 0),
        (alert("Sev1", "a newer condition"), "Sev4", 1),
    ],
)
def test_an_alert_counts_that_fires_is_as_severe_and_that_nobody_has_closed(
    listed: dict[str, object], severity: str, number: int
) -> None:
    assert fired_alerts([listed], severity) == ["latency fires for shop"] * number
