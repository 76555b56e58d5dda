"""Reports: how often they come, what they read, and that they wait for no plan."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localcloud.git.world.commit_statuses import MAX_PER_CONTEXT
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.outbox import send
from shared.app.planner.commit_status import INTERIM, SETTLED, has_room, interval
from shared.app.planner.planner import handle
from shared.app.planner.reporter import report_open_plans
from shared.cluster.failures.errors import Unavailable
from shared.cluster.queues.messages import CLOCKS_DIFFER, ReportRequest, RolloutRequest
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.ports import CommitStatus, FleetConfig, PlanRecord, Timing
from tests.support import fleet_files
from tests.support.pipeline_runs import deliver_due, phases, push, ready, record_of, status, step_until
from tests.support.replaced_ports import around, calls_of, frozen

pytestmark = pytest.mark.lives


def changed(*names: str, count: int = 3) -> dict[str, bytes]:
    """Return a fleet in which the first cluster has another node count."""
    first = {f"clusters/{names[0]}/cluster.yaml": fleet_files.cluster(names[0], count=count)}
    return fleet_files.all_at_once(fleet_files.fleet(*names)) | first


def calls_of_state(cloud: MemoryCloud) -> Counter[str]:
    """Return the calls of the reads that grow with the fleet, counted from now on."""
    calls, state = Counter[str](), cloud.state

    def summaries() -> object:
        calls["summaries"] += 1
        return state.summaries()

    def clusters() -> object:
        calls["clusters"] += 1
        return state.clusters()

    around(cloud, "state", summaries=summaries, clusters=clusters)
    return calls


@given(days=st.floats(0.001, 400), clusters=st.integers(1, 20_000))
def test_the_statuses_of_a_rollout_are_few_however_long_it_takes(days: float, clusters: int) -> None:
    age, statuses = timedelta(), 0
    while age < timedelta(days=days) and has_room(statuses, settled=False, ended=False):
        age, statuses = age + interval(age, clusters), statuses + 1
    assert statuses <= INTERIM < 500
    assert has_room(statuses, settled=True, ended=False)


def test_there_is_always_room_for_the_status_that_ends_a_commit() -> None:
    assert not has_room(INTERIM, settled=False, ended=False)
    assert not has_room(SETTLED, settled=True, ended=False)
    assert all(has_room(reports, settled=True, ended=True) for reports in range(MAX_PER_CONTEXT))


@given(minutes=st.floats(0, 10_000), clusters=st.integers(0, 10_000))
def test_a_report_is_at_most_a_twentieth_of_its_plans_age_behind(minutes: float, clusters: int) -> None:
    age = timedelta(minutes=minutes)
    assert interval(age, clusters) <= max(timedelta(seconds=50), age / 20)
    assert interval(age, clusters) >= timedelta(seconds=ReportRequest.WINDOW)


@pytest.mark.long
def test_a_rollout_of_a_day_has_fewer_than_half_of_the_statuses_that_github_takes() -> None:
    cloud = ready("one", "two")
    cloud.azure.interventions.stick_next("one")
    commit = push(cloud, changed("one", "two"))
    cloud.run(until=lambda: phases(cloud)["one"] is Phase.UPDATING)
    calls = calls_of_state(cloud)
    texts = iter(range(100_000))
    end = cloud.clock() + timedelta(days=1)
    while cloud.clock() < end:
        record = record_of(cloud, "one")
        reason = f"Azure has done {next(texts)} of its steps"
        run = replace(record.job.next_run, reason=reason, action_required="look at it")
        cloud.state.save(replace(record, job=replace(record.job, next_run=run)))
        send(ReportRequest(), cloud.ports)
        cloud.run(60, until=lambda: False)
    written = len(cloud.repository.statuses.history(commit))
    assert 100 < written < MAX_PER_CONTEXT / 2
    assert calls["summaries"] < 600


def test_a_flood_of_requests_is_a_few_reports_and_one_that_waits() -> None:
    cloud = ready("one")
    cloud.azure.interventions.stick_next("one")
    push(cloud, changed("one"))
    cloud.run(until=lambda: phases(cloud)["one"] is Phase.UPDATING)
    cloud.run(300, until=lambda: False)
    calls = calls_of_state(cloud)
    for _ in range(100):
        send(ReportRequest(), cloud.ports)
        cloud.run(1, until=lambda: False)
        waiting = [m for m in cloud.broker.peek("plans") if m.draft.id.startswith("report:")]
        soon = cloud.clock() + timedelta(seconds=ReportRequest.WINDOW) + CLOCKS_DIFFER
        later = [m for m in waiting if m.draft.at is not None and m.draft.at > soon]
        assert len(waiting) - len(later) <= 2, "that of these seconds, and that of the ones before"
        assert len(later) <= 1, "the next report"
    assert 0 < calls["summaries"] <= 10
    assert calls["clusters"] == 0


@pytest.mark.parametrize("differ", [timedelta(), timedelta(seconds=2), CLOCKS_DIFFER])
def test_the_one_message_of_some_seconds_comes_when_they_have_ended_by_every_clock(differ: timedelta) -> None:
    cloud = MemoryCloud(config=FleetConfig("example", "example/fleet", timing=Timing(clock_skew=differ / 2)))
    for _ in range(3):
        send(ReportRequest(), cloud.ports)
    (message,) = cloud.broker.peek("plans")
    assert message.draft.at is not None
    assert timedelta() < message.draft.at - differ - cloud.clock() <= timedelta(seconds=ReportRequest.WINDOW)
    assert (message.draft.at - differ).timestamp() % ReportRequest.WINDOW == 0
    soon = cloud.clock() + timedelta(seconds=1)
    send(RolloutRequest(), cloud.ports, at=soon)
    (rollout,) = [sent for sent in cloud.broker.peek("plans") if sent.draft.id.startswith("rollout:")]
    assert rollout.draft.at is not None
    assert rollout.draft.at - soon >= differ


def test_a_report_waits_for_no_plan_that_is_handed_over() -> None:
    cloud = MemoryCloud(lock_seconds=600)
    push(cloud, fleet_files.fleet("one", "two", "three"))
    cloud.run()
    cloud.azure.interventions.stick_next("one")
    older = push(cloud, changed("one", "two", "three"))
    cloud.run(60)
    assert status(cloud, older)[0] == "pending"
    save, meanwhile = cloud.state.save, list[str]()

    def saved(record: ClusterRecord) -> ClusterRecord:
        if cloud.state.fleet().planning and not meanwhile:
            meanwhile.append("")
            failed = record_of(cloud, "one")
            save(replace(failed, phase=Phase.FAILED))
            send(ReportRequest(), cloud.ports)
            cloud.clock.advance(2 * ReportRequest.WINDOW)
            deliver_due(cloud, "plans")
            meanwhile.append(status(cloud, older)[0])
        return save(record)

    around(cloud, "state", save=saved)
    newest = changed("one", "two", "three")
    newest["clusters/two/cluster.yaml"] = fleet_files.cluster("two", count=4)
    push(cloud, newest)
    cloud.run(600)
    assert meanwhile == ["", "failure"]


def test_a_status_of_a_plan_that_was_made_again_meanwhile_is_written_again() -> None:
    cloud = ready("one")
    commit = push(cloud, changed("one"))
    cloud.run(until=lambda: cloud.state.fleet().commit == commit)
    set_status, again = cloud.repository.set_status, list[str]()

    def late(sha: str, written: CommitStatus) -> None:
        if not again:
            again.append(sha)
            cloud.run()  # another reporter has the session, and reports the end
            assert status(cloud, commit)[0] == "success"
        set_status(sha, written)

    plan_record = cloud.state.plan(commit)
    assert plan_record is not None
    cloud.state.save_plan(replace(plan_record, reported="", not_before=None))
    around(cloud, "git_host", set_status=late)
    report_open_plans(cloud.ports)
    cloud.run()
    assert again == [commit]
    assert status(cloud, commit)[0] == "success"
    assert cloud.state.open_plans() == []


def test_a_plan_that_may_not_be_reported_yet_is_reported_at_its_time() -> None:
    """The clock of an instance was wrong when it reported the plan, which then waited for an operator."""
    cloud = ready("one")
    earlier = push(cloud, changed("one"))
    cloud.run()
    plan_record = cloud.state.plan(earlier)
    assert plan_record is not None
    shown = replace(plan_record, reported="pending: 0 of 1", open=True, settled=True)
    cloud.state.save_plan(replace(shown, not_before=cloud.clock() + timedelta(minutes=30)))
    push(cloud, fleet_files.fleet("one"))
    cloud.run(2400)
    assert cloud.state.open_plans() == []


def test_a_report_does_not_write_the_plan() -> None:
    cloud = ready("one")
    saved = calls_of(cloud, "state", "save_plan")
    commit = push(cloud, changed("one"))
    cloud.run()
    assert status(cloud, commit)[0] == "success"
    assert [document.plan.commit for document in saved] == [commit, commit], (
        "before the hand-over, and after it"
    )


@pytest.mark.parametrize("reported", ["an earlier text", "failure: one: an earlier text"])
def test_what_is_reported_on_the_way_leaves_room_for_the_status_that_ends_it(reported: str) -> None:
    cloud = MemoryCloud()
    commit = push(cloud, fleet_files.fleet("one", "two"))
    cloud.run(3)
    (plan_record,) = cloud.state.open_plans()
    cloud.state.save_plan(replace(plan_record, reports=INTERIM, reported=reported))
    written = len(cloud.repository.statuses.history(commit))
    report_open_plans(cloud.ports)
    assert len(cloud.repository.statuses.history(commit)) == written
    cloud.run()
    assert status(cloud, commit)[0] == "success"


def test_a_late_clock_asks_for_a_report_before_that_of_its_seconds_is_handled() -> None:
    cloud = ready("one")
    cloud.clock.advance(ReportRequest.WINDOW - cloud.clock().timestamp() % ReportRequest.WINDOW - 1)
    asked = cloud.clock()
    send(ReportRequest(), cloud.ports)
    cloud.clock.advance(ReportRequest.WINDOW - 1)
    send(ReportRequest(), replace(cloud.ports, clock=lambda: asked))
    (report,) = [m for m in cloud.broker.peek("plans") if m.draft.id.startswith("report:")]
    assert report.draft.at is not None
    assert report.draft.at > cloud.clock()


def test_a_status_over_the_last_one_is_replaced_although_the_state_does_not_answer_for_a_while() -> None:
    """A reporter is frozen before it writes a status; another one writes the last status meanwhile."""
    cloud = MemoryCloud()
    commit = push(cloud, fleet_files.fleet("one"))
    step_until(cloud, lambda: cloud.state.fleet().commit == commit)
    plan, away = cloud.ports.state.plan, list[Exception]()

    def meanwhile() -> None:
        cloud.run()
        away.append(Unavailable("answered 503"))

    def sometimes(commit: str) -> PlanRecord | None:
        if away:
            raise away.pop()
        return plan(commit)

    frozen(cloud, "git_host", "set_status", meanwhile)
    around(cloud, "state", plan=sometimes)
    handle(ReportRequest(), cloud.ports)
    assert status(cloud, commit)[0] == "pending"
    cloud.run(600)
    assert (status(cloud, commit)[0], away) == ("success", [])
