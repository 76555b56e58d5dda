"""Which head is believed: the simulation found the cases here."""

from __future__ import annotations

from dataclasses import replace

from shared.jobs.messages import PlanRequest
from shared.jobs.row import Phase
from shared.pipeline.intake import request_plan
from tests import fleetfiles
from tests.pipeline.test_main_job import accepted, phases, push
from tests.pipeline.test_safety import around, ready


def test_an_old_head_is_doubted_though_an_overtaken_planner_wrote_over_its_plan() -> None:
    cloud = ready("one")
    old = cloud.state.plan(cloud.repository.head("main"))
    assert old is not None
    push(cloud, fleetfiles.fleet("one", "two"))
    cloud.run()
    cloud.state.save_plan(replace(old, plan=replace(old.plan, applied=False)))
    stale, head = iter([old.plan.commit]), cloud.repository.head
    around(cloud, "repository", head=lambda branch: next(stale, None) or head(branch))
    request_plan(PlanRequest(commit=old.plan.commit), message_id="late webhook", ports=cloud.ports)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    assert accepted(cloud)["delete", "two"] == 0


def test_a_head_that_nobody_announced_is_looked_at_again_before_it_is_believed() -> None:
    cloud = ready("one")
    unplanned = cloud.repository.push(fleetfiles.fleet("one") | {"README.md": b"its webhook is lost"})
    push(cloud, fleetfiles.fleet("one", "two"))
    cloud.run()
    stale, head = iter([unplanned]), cloud.repository.head
    around(cloud, "repository", head=lambda branch: next(stale, None) or head(branch))
    request_plan(PlanRequest(again=True), message_id="something was deleted", ports=cloud.ports)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    assert accepted(cloud)["delete", "two"] == 0
