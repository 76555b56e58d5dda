"""A push while Table Storage does not answer: it is not lost, and its commit says what it waits for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.failures.errors import Unauthorized, Unavailable
from shared.cluster.record_parts import Phase
from shared.ports import Ports
from tests.support import fleet_files
from tests.support.pipeline_runs import phases, push, ready, status, without_timers
from tests.support.replaced_ports import around

ERROR = "connection reset by peer"


class NoState:
    """A state that does not answer."""

    def __getattr__(self, name: str) -> Any:
        raise Unavailable(f"Table Storage: {ERROR}")


def outage(cloud: MemoryCloud) -> None:
    def without_state(ports: Ports) -> Ports:
        no_state: Any = NoState()
        return replace(ports, state=no_state)

    cloud.with_ports(without_state)


def end_of_outage(cloud: MemoryCloud) -> None:
    cloud.with_ports(lambda ports: replace(ports, state=cloud.state))


def test_a_push_during_an_outage_is_planned_after_it_and_its_commit_says_why_it_waits() -> None:
    cloud = ready("one")
    outage(cloud)
    commit = push(cloud, fleet_files.fleet("one", "two"))
    without_timers(cloud, 300)
    state, description = status(cloud, commit)
    assert state == "error"
    assert ERROR in description
    end_of_outage(cloud)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    assert status(cloud, commit)[0] == "success"


def test_a_short_outage_is_not_reported() -> None:
    cloud = ready("one")
    outage(cloud)
    commit = push(cloud, fleet_files.fleet("one", "two"))
    without_timers(cloud, 5)
    assert not cloud.repository.statuses.history(commit)


def test_one_push_is_reported_once_however_long_the_outage_lasts() -> None:
    cloud = ready("one")
    outage(cloud)
    commit = push(cloud, fleet_files.fleet("one", "two"))
    without_timers(cloud, 1800)
    assert len(cloud.repository.statuses.history(commit)) == 1


def test_a_plan_that_cannot_be_saved_is_the_fleets_problem_although_github_takes_no_status() -> None:
    cloud = ready("one")

    def unsaved(_: object) -> None:
        raise Unavailable(f"Table Storage: {ERROR}")

    def refused(*_: object) -> None:
        raise Unauthorized("the token may not write statuses")

    around(cloud, "state", save_plan=unsaved)
    around(cloud, "git_host", set_status=refused)
    push(cloud, fleet_files.fleet("one", "two"))
    without_timers(cloud, 5)
    assert str(cloud.state.fleet().problem).endswith(ERROR)
