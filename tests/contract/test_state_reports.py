"""What a report reads and writes of the state: summaries of clusters, and the open plans."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from shared.cluster.failures.errors import Stale
from shared.cluster.job import Contest, ContestKind
from shared.cluster.outcomes import Wait
from shared.cluster.reporting.summary import REASON_LIMIT, summary_of
from shared.cluster.review_check import ReviewCheck, Verdict
from shared.cluster.transitions.acceptance import accept_delete, accept_new
from shared.cluster.transitions.apply_outcome import apply_outcome
from shared.kubernetes.readiness.observation import Observation
from shared.ports import State
from shared.ports.state import ReadinessRecord, SubscriptionCosts
from shared.ports.state.readiness import READINESS, Examination, ExaminationFinding
from shared.ports.state.subscriptions import USED
from tests.support.cluster_records import NOW, plan_record
from tests.support.desired_clusters import desired


def test_the_summaries_of_a_fleet_say_what_its_records_say(state: State) -> None:
    contest = Contest(ContestKind.INSTALLATION, ("0a0b0c0d",))
    new = accept_new(desired("one"), uid="0badcafe", commit="c" * 40, now=NOW)
    state.save(apply_outcome(new, Wait(20, "ünicode " * 200, contest=contest), now=NOW, jitter=0))
    other = accept_new(desired("a-two"), uid="later", commit="c" * 40, now=NOW)
    state.save(accept_delete(other, commit="d" * 40, now=NOW))
    summaries = state.summaries()
    assert list(summaries) == [summary_of(record) for record in state.clusters()]
    assert [(found.name, found.contested, len(found.reason)) for found in summaries] == [
        ("a-two", False, 0),
        ("one", True, REASON_LIMIT),
    ]


def test_a_saved_record_changes_its_summary(state: State) -> None:
    saved = state.save(accept_new(desired("one"), uid="0badcafe", commit="c" * 40, now=NOW))
    state.save(replace(saved, observed_generation=1))
    assert [found.observed_generation for found in state.summaries()] == [1]


def test_what_was_reported_is_written_over_the_version_that_was_read(state: State) -> None:
    state.save_plan(plan_record(items=3))
    (read,) = state.open_plans()
    later = NOW + timedelta(seconds=50)
    reported = replace(read, reported="pending: 1 of 3", reports=7, not_before=later)
    state.save_report(reported)
    (after,) = state.open_plans()
    assert after == reported
    with pytest.raises(Stale):
        state.save_report(replace(read, reported="pending: 2 of 3"))
    ended = replace(after, reported="success", open=False, settled=True, not_before=None)
    state.save_report(ended)
    assert state.plan("c" * 40) == ended
    assert state.open_plans() == []


def test_a_plan_that_was_made_again_is_not_overwritten_by_a_report(state: State) -> None:
    state.save_plan(plan_record(items=3))
    (read,) = state.open_plans()
    again = replace(plan_record(items=4), at=NOW + timedelta(minutes=1))
    state.save_plan(again)
    with pytest.raises(Stale):
        state.save_report(replace(read, reported="success", open=False))
    assert state.plan("c" * 40) == again
    (found,) = state.open_plans()
    state.save_report(replace(found, plan=read.plan, reported="pending: 1 of 4"))
    assert state.plan("c" * 40) == replace(again, reported="pending: 1 of 4")


@pytest.mark.parametrize("items", [3, 5000])
def test_what_reviews_say_is_written_over_the_version_that_was_read(state: State, items: int) -> None:
    check = ReviewCheck(Verdict.NO_PULL, NOW, {"branch": "main"})
    state.save_plan(plan_record(items=items))
    (read,) = state.open_plans()
    state.save_report(replace(read, reported="pending: 1 of 3", reports=7))
    with pytest.raises(Stale):
        state.save_review(replace(read, review=check))
    (reported,) = state.open_plans()
    assert (reported.reported, reported.reports) == ("pending: 1 of 3", 7)
    state.save_review(replace(reported, review=check))
    assert state.plan("c" * 40) == replace(reported, review=check)
    (found,) = state.open_plans()
    assert found == replace(reported, review=check)


@pytest.mark.parametrize("method", ["save_review", "save_report"])
def test_what_is_saved_of_a_plan_that_was_pruned_is_refused(state: State, method: str) -> None:
    state.save_plan(replace(plan_record(), open=False))
    read = state.plan("c" * 40)
    assert read is not None
    assert state.prune_plans(0) == 1
    with pytest.raises(Stale):
        getattr(state, method)(read)


def test_the_next_report_is_that_of_the_newest_open_plan(state: State) -> None:
    assert state.next_report_at() is None
    first, second, third = (NOW + timedelta(minutes=minutes) for minutes in (1, 2, 3))
    state.save_plan(replace(plan_record("a" * 40), at=first, not_before=first))
    state.save_plan(replace(plan_record("b" * 40), at=second, not_before=second))
    state.save_plan(replace(plan_record("d" * 40), at=third, not_before=third, open=False))
    assert state.next_report_at() == second
    state.save_plan(replace(plan_record("d" * 40), at=third))
    assert state.next_report_at() is None


def test_a_plan_in_several_entities_keeps_them_when_it_is_reported(state: State) -> None:
    state.save_plan(plan_record(items=5000))
    (read,) = state.open_plans()
    state.save_report(replace(read, reported="pending: 1 of 5000"))
    assert state.plan("c" * 40) == replace(plan_record(items=5000), reported="pending: 1 of 5000")


def test_a_reading_is_stored_over_the_version_that_was_read(state: State) -> None:
    assert state.readiness_of("one") == ReadinessRecord("one")
    state.save_readiness(ReadinessRecord("one", "0badcafe", Observation(NOW, reads=9)))
    read = state.readiness_of("one")
    assert (read.uid, read.seen) == ("0badcafe", Observation(NOW, reads=9))
    state.save_readiness(replace(read, seen=Observation(NOW, reads=10)))
    with pytest.raises(Stale):
        state.save_readiness(replace(read, seen=Observation(NOW, reads=11)))
    many = [f"c-{number}" for number in range(30)]
    found = state.readiness(["one", *many])
    assert found["one"].seen == Observation(NOW, reads=10)
    assert found["c-0"] == ReadinessRecord("c-0")
    assert state.prune(READINESS, NOW) == 0
    assert state.prune(READINESS, NOW + timedelta(seconds=1)) == 1


def test_an_examination_takes_the_place_of_the_one_before_of_its_app(state: State) -> None:
    finding = ExaminationFinding("clock", "it is wrong", "restart it", NOW)
    first = Examination("worker", NOW, "0.1.0", {"LEASE_SECONDS": "90.0"}, (finding,))
    state.save_examination(first)
    state.save_examination(replace(first, app="deleter"))
    second = replace(first, at=NOW + timedelta(seconds=1), findings=())
    state.save_examination(second)
    assert list(state.examinations()) == [replace(first, app="deleter"), second]


def test_the_costs_of_a_subscription_take_the_place_of_those_before(state: State) -> None:
    first = SubscriptionCosts("a", NOW, NOW, "2026-10-01", "2026-10-30", "USD", {"one": 70.08})
    state.save_costs(first)
    other = replace(first, subscription="b", at=None, clusters={}, problem="no right")
    state.save_costs(other)
    second = replace(first, tried=NOW + timedelta(days=1), problem="used up")
    state.save_costs(second)
    assert list(state.costs()) == [second, other]


def test_what_the_apps_use_adds_up_by_day_and_older_days_go(state: State) -> None:
    state.add_used({"tables GET a": 2, "seconds": 1.5}, NOW)
    state.add_used({"tables GET a": 1, "arm GET b": 1}, NOW)
    tomorrow = NOW + timedelta(days=1)
    state.add_used({"sent plans": 4}, tomorrow)

    days = [used.counts for used in state.used()]
    assert days == [{"arm GET b": 1, "seconds": 1.5, "tables GET a": 3}, {"sent plans": 4}]
    assert state.prune(USED, tomorrow) == 1
    assert [used.day for used in state.used()] == [tomorrow.date().isoformat()]
