"""The timer for missed heads, while a plan is handed over."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.recovery.missed_work import plan_missed_head
from tests.support.fleet_files import fleet
from tests.support.hand_overs import CUT, NAMES, plan_step
from tests.support.pipeline_runs import push
from tests.support.replaced_ports import around


def test_the_timer_leaves_a_plan_alone_that_makes_progress() -> None:
    cloud = MemoryCloud(config=CUT)
    push(cloud, fleet(*NAMES))
    plan_step(cloud)
    cloud.clock.advance(100)
    assert not plan_missed_head(cloud.ports)
    plan_step(cloud)
    cloud.clock.advance(100)
    assert not plan_missed_head(cloud.ports)


def test_a_tick_in_the_middle_of_a_hand_over_plans_nothing_a_second_time() -> None:
    def trees(*, ticks: bool) -> int:
        cloud = MemoryCloud(config=CUT)
        commit, read = push(cloud, fleet(*NAMES)), list[str]()

        def tree(commit: str) -> object:
            read.append(commit)
            return cloud.repository.tree(commit)

        around(cloud, "git_host", tree=tree)
        while cloud.state.fleet().commit != commit:
            if not plan_step(cloud):
                cloud.clock.advance(1)
            if ticks:
                cloud.run_timers(cloud.ports)
        return len(read)

    assert trees(ticks=True) == trees(ticks=False) == 4


def test_the_timer_plans_again_what_stands_still() -> None:
    cloud = MemoryCloud(config=CUT)
    push(cloud, fleet(*NAMES))
    plan_step(cloud)
    cloud.clock.advance(121)
    assert plan_missed_head(cloud.ports)


def test_the_timer_plans_a_newer_head_however_much_progress_the_older_one_makes() -> None:
    cloud = MemoryCloud(config=CUT)
    push(cloud, fleet(*NAMES))
    plan_step(cloud)
    cloud.repository.push(fleet("one"))
    assert plan_missed_head(cloud.ports)


def planned_by_a_clock(ahead: timedelta) -> MemoryCloud:
    """Return a cloud whose planner has read the branch and handed a part of its plan over, by that clock."""
    cloud = MemoryCloud(config=CUT)
    push(cloud, fleet(*NAMES))
    ports = cloud.ports
    cloud.ports = replace(ports, clock=lambda: cloud.clock() + ahead)
    plan_step(cloud)
    cloud.ports = ports
    return cloud


def test_the_timer_is_not_kept_away_by_a_progress_that_a_wrong_clock_has_dated() -> None:
    assert plan_missed_head(planned_by_a_clock(timedelta(hours=5)).ports)


def test_a_read_that_a_wrong_clock_has_dated_does_not_show_that_requests_come_to_their_end() -> None:
    cloud = planned_by_a_clock(timedelta(days=30))
    cloud.repository.push(fleet("one"))
    assert plan_missed_head(cloud.ports)
    assert not cloud.state.timer_runs()
