"""Which head is planned: cases that the simulation found."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from localcloud.memory.crashes import Crash
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.clusters import fleet_view
from shared.app.intake.accept import accept
from shared.app.intake.webhook import Push
from shared.app.outbox import send
from shared.app.planner.branch import CONFIRM_READS, CONFIRM_SECONDS, LAG
from shared.app.recovery import missed_work
from shared.cluster.failures.errors import Unavailable
from shared.cluster.queues.message_parts import HeadConfirmation
from shared.cluster.queues.messages import PlanRequest
from shared.cluster.record_parts import Phase
from shared.ports import PlanRecord
from tests.support import fleet_files
from tests.support.app_faults import refusing
from tests.support.pipeline_runs import accepted, phases, push, pushed, ready, status
from tests.support.replaced_ports import around, shows_first

pytestmark = pytest.mark.lives


def test_a_stale_head_is_confirmed_even_after_a_superseded_planner_overwrote_its_plan() -> None:
    cloud = ready("one")
    old = cloud.state.plan(cloud.repository.head("main"))
    assert old is not None
    push(cloud, fleet_files.fleet("one", "two"))
    cloud.run()
    cloud.state.save_plan(replace(old, plan=replace(old.plan, applied=False)))
    shows_first(cloud, old.plan.commit)
    send(PlanRequest(commit=old.plan.commit), cloud.ports, message_id="late webhook")
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    assert accepted(cloud)["delete", "two"] == 0


def test_an_unannounced_head_is_confirmed_before_it_is_planned() -> None:
    cloud = ready("one")
    unplanned = cloud.repository.push(fleet_files.fleet("one") | {"README.md": b"its webhook is lost"})
    push(cloud, fleet_files.fleet("one", "two"))
    cloud.run()
    shows_first(cloud, unplanned)
    send(PlanRequest(again=True), cloud.ports, message_id="something was deleted")
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    assert accepted(cloud)["delete", "two"] == 0


def test_an_announced_head_that_is_no_descendant_of_the_last_plan_is_confirmed() -> None:
    cloud = ready("one", "two")
    wrong = cloud.repository.push(fleet_files.fleet("one"))
    announced = PlanRequest(commit=wrong, attempt=5)
    send(announced, cloud.ports, message_id="GitHub did not answer it", after=20)
    push(cloud, fleet_files.fleet("one", "two"))
    cloud.run(10)
    shows_first(cloud, wrong)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    assert accepted(cloud)["delete", "two"] == 0


def test_a_head_that_returns_after_an_unfinished_plan_is_planned_again() -> None:
    cloud = ready("one", "two")
    planned = cloud.state.fleet().commit
    push(cloud, fleet_files.fleet("one"))
    save_plan = cloud.state.save_plan

    def dies(plan_record: PlanRecord) -> None:
        if plan_record.plan.applied:
            around(cloud, "state", save_plan=save_plan)
            raise Crash
        save_plan(plan_record)

    around(cloud, "state", save_plan=dies)
    cloud.step()
    cloud.repository.reset(planned)
    cloud.run()
    assert cloud.state.fleet().planning == ""
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}


def test_confirming_one_head_does_not_confirm_another() -> None:
    cloud = ready("one", "two")
    old = cloud.repository.head("main")
    push(cloud, fleet_files.fleet("one", "two", "three"))
    cloud.run()
    shows_first(cloud, old)
    head = cloud.repository.head("main")
    confirmation = HeadConfirmation(head=head, planned=head, reads=CONFIRM_READS)
    confirmed = PlanRequest(commit="f" * 40, confirmation=confirmation)
    send(confirmed, cloud.ports, message_id="confirmed another head")
    cloud.run()
    assert phases(cloud) == dict.fromkeys(["one", "two", "three"], Phase.READY)
    assert accepted(cloud)["delete", "three"] == 0


def test_a_confirmation_from_before_a_plan_does_not_count_after_it() -> None:
    cloud = ready("one", "two")
    removed = cloud.repository.push(fleet_files.fleet("one"))
    confirmation = HeadConfirmation(head=removed, planned=cloud.state.fleet().commit, reads=CONFIRM_READS)
    push(cloud, fleet_files.fleet("one", "two") | {"README.md": b"a revert"})
    cloud.run()
    shows_first(cloud, removed)
    send(PlanRequest(commit=removed, confirmation=confirmation), cloud.ports, message_id="confirmed before")
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    assert accepted(cloud)["delete", "two"] == 0


def test_a_head_is_confirmed_for_half_a_minute_even_when_clocks_differ() -> None:
    skew = 3.0
    assert sum(CONFIRM_SECONDS * number - skew for number in range(1, CONFIRM_READS + 1)) > 30


def test_a_late_webhook_of_an_earlier_head_does_not_restore_it() -> None:
    cloud = ready("one", "two")
    old = cloud.repository.push(fleet_files.fleet("one"))
    push(cloud, fleet_files.fleet("one", "two") | {"README.md": b"a revert"})
    cloud.run(1)
    shows_first(cloud, old)
    accept(Push("d1", "late", old), cloud.ports)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    assert accepted(cloud)["delete", "two"] == 0


def test_a_head_that_only_the_timer_saw_is_confirmed() -> None:
    cloud = ready("one", "two")
    old = cloud.repository.push(fleet_files.fleet("one"))
    push(cloud, fleet_files.fleet("one", "two") | {"README.md": b"a revert"})
    cloud.run(1)
    shows_first(cloud, old, old)
    assert missed_work.plan_missed_head(cloud.ports)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    assert accepted(cloud)["delete", "two"] == 0


def test_a_push_under_confirmation_before_the_last_plan_is_confirmed_after_it() -> None:
    cloud = ready("one", "two")
    before = cloud.state.fleet().commit
    old = cloud.repository.push(fleet_files.fleet("one"))
    confirmation = HeadConfirmation(head=old, planned=before, reads=CONFIRM_READS)
    pushed = cloud.clock()
    push(cloud, fleet_files.fleet("one", "two") | {"README.md": b"a revert"})
    cloud.run(1)
    shows_first(cloud, old)
    late = PlanRequest(commit=old, confirmation=confirmation, at=pushed)
    send(late, cloud.ports, message_id="confirmed before")
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    assert accepted(cloud)["delete", "two"] == 0


def test_a_commit_newer_than_the_last_plan_needs_no_confirmation() -> None:
    cloud = ready("one")
    cloud.clock.advance(3)
    announced = push(cloud, fleet_files.fleet("one") | {"README.md": b"announced"})
    while cloud.step():  # the plan, and its report
        pass
    assert cloud.state.fleet().commit == announced
    cloud.clock.advance(LAG.total_seconds() + 3)
    commit = cloud.repository.push(fleet_files.fleet("one") | {"README.md": b"its webhook is lost"})
    assert missed_work.plan_missed_head(cloud.ports)
    cloud.clock.advance(missed_work.WEBHOOK_SECONDS)
    while cloud.step():  # the plan, and the notifications
        pass
    assert cloud.state.fleet().commit == commit


@pytest.mark.parametrize("timed", [True, False])
def test_a_commit_reverted_before_the_last_plan_is_confirmed_although_it_is_a_descendant(
    timed: bool,
) -> None:
    cloud = MemoryCloud()
    planned = push(cloud, fleet_files.fleet("one", "two"))
    removed = cloud.repository.push(fleet_files.fleet("one"))
    late = Push("d1", "late", removed, cloud.clock() if timed else None)
    cloud.clock.advance(30)
    cloud.repository.reset(planned)
    cloud.run(1)
    shows_first(cloud, removed)
    accept(late, cloud.ports)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    assert accepted(cloud)["delete", "two"] == 0


@pytest.mark.parametrize("lost", [True, False])
def test_a_reverted_commit_is_confirmed_although_the_revert_needed_no_plan(lost: bool) -> None:
    cloud = ready("one", "two")
    planned = cloud.repository.head("main")
    cloud.clock.advance(100)
    removed = cloud.repository.push(fleet_files.fleet("one"))
    late = pushed(cloud, removed)
    cloud.clock.advance(3)
    cloud.repository.reset(planned)
    accept(replace(pushed(cloud, planned), digest="back"), cloud.ports)
    cloud.run(1)
    shows_first(cloud, removed, removed)
    if lost:
        assert missed_work.plan_missed_head(cloud.ports)
    else:
        accept(late, cloud.ports)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    assert accepted(cloud)["delete", "two"] == 0


def test_a_failed_comparison_costs_reads_and_loses_no_push() -> None:
    cloud = ready("one")

    def away(*_: str) -> bool:
        raise Unavailable("GitHub answered 500")

    around(cloud, "git_host", is_descendant=away)
    cloud.clock.advance(3)
    commit = push(cloud, fleet_files.fleet("one", "two"))
    cloud.run(120)
    assert cloud.state.fleet().commit == commit


def test_a_push_in_the_second_after_the_read_is_planned_at_once() -> None:
    cloud = ready("one")
    push(cloud, fleet_files.fleet("one", "two"))
    cloud.run(43)
    read_at = cloud.state.fleet().reads.planned_at
    assert read_at is not None
    cloud.clock.advance(1)
    commit = cloud.repository.push(fleet_files.fleet("one", "two") | {"README.md": b"quick"})
    accept(Push("d1", "quick", commit, read_at + timedelta(seconds=1)), cloud.ports)
    assert cloud.step()
    assert cloud.state.fleet().commit == commit


@pytest.mark.parametrize("after", [2, 10, 30])
def test_a_head_that_follows_without_a_time_waits_until_no_read_can_be_older_than_the_last_plan(
    after: int,
) -> None:
    cloud = ready("one")
    push(cloud, fleet_files.fleet("one", "two"))
    assert cloud.step()
    planned_at = cloud.state.fleet().reads.planned_at
    assert planned_at is not None
    cloud.clock.advance(after)
    commit = cloud.repository.push(fleet_files.fleet("one", "two") | {"README.md": b"quick"})
    send(PlanRequest(commit=commit), cloud.ports, message_id="a hint without a time")
    while f"{commit[:8]} came within 43 s of the last plan" not in cloud.state.fleet().waiting:
        assert cloud.step()
    cloud.run(60)
    assert cloud.state.fleet().commit == commit
    newest = cloud.state.fleet().reads.planned_at
    assert newest is not None
    assert timedelta(seconds=43) <= newest - planned_at <= timedelta(seconds=44)


def _follows_a_plan(cloud: MemoryCloud, pushed: int, asked: list[str], *, forced: bool = False) -> str:
    """Return a commit that a hint announces after a plan; the log has it ``pushed`` seconds after that."""
    cloud.run(60)
    first = cloud.repository.head("main")
    push(cloud, fleet_files.fleet("one", "two"))
    assert cloud.step()
    planned_at = cloud.state.fleet().reads.planned_at
    assert planned_at is not None
    cloud.clock.advance(10)
    if forced:
        cloud.repository.reset(first)
    commit = cloud.repository.push(fleet_files.fleet("one", "two") | {"README.md": b"quick"})

    def pushed_at(branch: str, of: str) -> datetime:
        asked.append(f"{branch} {of}")
        return planned_at + timedelta(seconds=pushed)

    around(cloud, "git_host", pushed_at=pushed_at)
    send(PlanRequest(), cloud.ports, message_id="a hint")
    return commit


@pytest.mark.parametrize(("pushed", "at_once"), [(9, True), (1, True), (0, False), (-5, False)])
def test_a_head_that_follows_is_planned_at_once_where_the_log_of_the_host_has_its_push_after_the_last_plan(
    pushed: int, at_once: bool
) -> None:
    cloud, asked, compared = ready("one"), list[str](), list[str]()
    commit = _follows_a_plan(cloud, pushed, asked)
    is_descendant = cloud.ports.git_host.is_descendant

    def compare(of: str, earlier: str) -> bool:
        compared.append(of)
        return is_descendant(of, earlier)

    around(cloud, "git_host", is_descendant=compare)
    cloud.run(5)
    assert len(compared) == 1
    assert (cloud.state.fleet().commit == commit) is at_once
    cloud.run(60)
    assert cloud.state.fleet().commit == commit
    assert asked == [f"main {commit}"], "one call, at the first read"


def test_a_log_of_pushes_is_not_asked_about_a_push_by_force() -> None:
    cloud, asked = ready("one"), list[str]()
    _follows_a_plan(cloud, 9, asked, forced=True)
    cloud.run(60)
    assert not asked


def test_a_log_of_pushes_that_cannot_be_read_costs_time_alone() -> None:
    cloud = ready("one")
    commit = _follows_a_plan(cloud, 9, [])
    around(cloud, "git_host", pushed_at=refusing(Unavailable("no log")))
    cloud.run(5)
    assert cloud.state.fleet().commit != commit
    cloud.run(60)
    assert cloud.state.fleet().commit == commit


def test_a_forced_push_to_a_new_commit_is_confirmed_and_then_planned() -> None:
    cloud = ready("one")
    first = cloud.repository.head("main")
    push(cloud, fleet_files.fleet("one", "two"))
    cloud.run()
    cloud.clock.advance(3)
    cloud.repository.reset(first)
    files = fleet_files.fleet("one", "three")
    files["clusters/three/cluster.yaml"] = fleet_files.cluster("three", count=2)
    forced = push(cloud, files)
    assert cloud.step()
    assert cloud.state.fleet().commit != forced
    waiting = f"{forced[:8]} may be a forced push or a stale read: it is planned at"
    assert waiting in fleet_view(cloud.ports)["waiting"]
    cloud.run()
    assert cloud.state.fleet().commit == forced
    assert fleet_view(cloud.ports)["waiting"] == ""
    assert phases(cloud) == {"one": Phase.READY, "three": Phase.READY}


def test_one_stale_read_of_the_head_deletes_nothing() -> None:
    cloud = MemoryCloud()
    old = push(cloud, fleet_files.fleet("one"))
    cloud.run()
    push(cloud, fleet_files.fleet("one", "two"))
    cloud.run()
    shows_first(cloud, old)
    commit = push(cloud, fleet_files.fleet("one", "two") | {"README.md": b"new"})
    assert cloud.step()
    assert cloud.state.fleet().waiting.startswith(f"{old[:8]} may be a forced push or a stale read")
    cloud.run()
    assert status(cloud, commit)[0] == "success"
    assert accepted(cloud)["delete", "two"] == 0


def test_an_announced_head_that_github_does_not_show_yet_is_reported() -> None:
    cloud = ready("one")
    shows_first(cloud, cloud.state.fleet().commit)
    commit = push(cloud, fleet_files.fleet("one", "two"))
    assert cloud.step()
    waiting = f"the git host does not show commit {commit[:8]} yet: reading again until "
    assert cloud.state.fleet().waiting.startswith(waiting)
    cloud.run()
    assert cloud.state.fleet().waiting == ""
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}


def test_a_confirmation_ends_when_the_head_is_the_planned_one() -> None:
    cloud = ready("one")
    planned = cloud.state.fleet()
    shows_first(cloud, cloud.repository.push(fleet_files.fleet()))
    cloud.repository.reset(planned.commit)
    send(PlanRequest(), cloud.ports, message_id="sees a stale head")
    deliver = cloud.ports.plans.send
    around(cloud, "plans", send=lambda _: None)  # the message that reads the head again is lost
    assert cloud.step()
    around(cloud, "plans", send=deliver)
    assert cloud.state.fleet().waiting != ""
    assert missed_work.plan_missed_head(cloud.ports)
    cloud.run()
    fleet = cloud.state.fleet()
    assert fleet.reads.planned_at == planned.reads.planned_at
    assert fleet == replace(planned, reads=fleet.reads)


def test_a_forced_push_back_is_planned_after_its_confirmation() -> None:
    cloud = ready("one")
    old = cloud.repository.head("main")
    push(cloud, fleet_files.fleet("one", "two"))
    cloud.run()
    cloud.repository.reset(old)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
