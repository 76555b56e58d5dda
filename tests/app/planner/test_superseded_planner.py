"""A planner that was frozen writes its plan over the newest one, then sees that another took over."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from localcloud.memory.crashes import Crash
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.plans import plan_view
from shared.app.api.views.why import why_view
from shared.app.outbox import send_all
from shared.app.planner import planner
from shared.app.planner.reporter import report_open_plans
from shared.cluster.failures.errors import Unavailable
from shared.cluster.queues.envelopes import continuation
from shared.cluster.queues.message_parts import Approval
from shared.cluster.queues.messages import PlanRequest
from shared.cluster.record_parts import Phase
from shared.cluster.transitions.acceptance import accept_new
from shared.plan.holds import Hold, HoldKind
from shared.plan.plan import Action
from shared.ports import PlanRecord
from shared.ports.state.fleet import Handover
from tests.support import one_cluster
from tests.support.fleet_files import cluster, fleet
from tests.support.pipeline_runs import accepted, cloud_with, phases, push, ready, status
from tests.support.replaced_ports import Dies, around, frozen, overtake


@pytest.fixture
def overwritten() -> tuple[MemoryCloud, str]:
    """Return a cloud whose newest plan is carried out, and then replaced by one with another life."""
    cloud = MemoryCloud()
    commit = push(cloud, fleet() | {"clusters/one/cluster.yaml": cluster("one")})
    cloud.run(until=lambda: cloud.state.cluster("one") is not None and not cloud.state.fleet().planning)
    written = cloud.state.plan(commit)
    assert written is not None
    items = tuple(replace(item, uid="ffffffff") for item in written.plan.items)
    plan = replace(written.plan, items=items, applied=False)
    cloud.state.save_plan(replace(written, plan=plan, reported=""))
    return cloud, commit


def test_a_record_that_it_saves_after_the_cluster_was_removed_creates_nothing() -> None:
    """The newest plan has the name, as that of an earlier life that it deletes."""
    cloud = one_cluster.ready()
    spec, commit = one_cluster.record(cloud).desired, cloud.repository.head("main")
    push(cloud, fleet())
    cloud.run()
    assert phases(cloud) == {}
    late = accept_new(spec, uid="ffffffff", commit=commit, now=cloud.clock())
    send_all(continuation(cloud.state.save(late), cloud.clock()), cloud.ports)
    cloud.run()
    assert phases(cloud) == {}
    assert accepted(cloud)["create", "one"] == 1


def test_that_plan_is_not_shown_as_in_sync(overwritten: tuple[MemoryCloud, str]) -> None:
    cloud, commit = overwritten
    view = plan_view(commit, cloud.ports)
    assert view is not None
    assert (view["progress"]["ready"], view["progress"]["total"]) == (0, 1)


def test_the_next_report_has_it_planned_again(overwritten: tuple[MemoryCloud, str]) -> None:
    cloud, commit = overwritten
    report_open_plans(cloud.ports)
    cloud.run()
    (status,) = cloud.repository.statuses.latest(commit)
    assert (status.status.state, status.status.description) == (
        "success",
        "1 of 1 clusters in sync (1 unchanged)",
    )


def test_a_plan_that_it_wrote_as_carried_out_is_planned_again_too(
    overwritten: tuple[MemoryCloud, str],
) -> None:
    cloud, commit = overwritten
    written = cloud.state.plan(commit)
    assert written is not None
    (item,) = written.plan.items
    held = replace(item, action=Action.ON_HOLD, hold=Hold(HoldKind.AWAITS_DELETION))
    plan = replace(written.plan, items=(held,), applied=True)
    cloud.state.save_plan(replace(written, plan=plan, at=written.at - timedelta(seconds=30)))
    cloud.run(7200)
    view = why_view("one", cloud.ports)
    assert view is not None
    assert view["phase"] == "Ready"
    assert view["plan"] is not None
    assert not view["plan"]["notCarriedOut"]


def test_one_of_the_same_commit_that_did_not_know_of_an_approval_is_planned_again_with_it() -> None:
    cloud = cloud_with(fleet("one", "two", "three"))
    commit = push(cloud, fleet("three"))
    cloud.run()
    approval = Approval(commit=commit, clusters=("one", "two"), by="ann", at=cloud.clock())
    save, stood = cloud.state.save_plan, list[PlanRecord]()

    def late(plan_record: PlanRecord) -> None:
        if plan_record.plan.applied and not stood:
            stood.append(plan_record)
            cloud.clock.advance(70)
            planner.handle(PlanRequest(again=True, commit=commit, approval=approval), cloud.ports)
            save(plan_record)
            raise Dies
        save(plan_record)

    around(cloud, "state", save_plan=late)
    with pytest.raises(Dies):
        planner.handle(PlanRequest(again=True), cloud.ports)
    cloud.run(3600)
    assert phases(cloud) == {"three": Phase.READY}
    newest = cloud.state.plan(commit)
    assert newest is not None
    assert not newest.plan.deletes_needing_approval


def test_it_is_planned_again_once_a_minute(overwritten: tuple[MemoryCloud, str]) -> None:
    cloud, _ = overwritten
    for _ in range(3):
        report_open_plans(cloud.ports)
    requests = [
        message.draft.id for message in cloud.broker.peek("plans") if "unfinished" in message.draft.id
    ]
    assert len(requests) == 1


def test_a_planner_frozen_before_its_save_deletes_nothing_of_the_next_plan() -> None:
    cloud = ready("one", "two")
    push(cloud, fleet("one"))
    frozen(cloud, "state", "save", lambda: overtake(cloud, fleet("one", "two")))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    assert accepted(cloud)["delete", "two"] == 0


def test_a_planner_frozen_before_it_saved_a_record_creates_nothing_beyond_the_next_plan() -> None:
    cloud = ready("one")
    push(cloud, fleet("one", "two"))

    def meanwhile() -> None:
        overtake(cloud, fleet("one"))
        cloud.clock.advance(200)  # the repeated plan of the meantime changes nothing
        while cloud.step():
            pass

    frozen(cloud, "state", "save", meanwhile)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert accepted(cloud)["create", "two"] == accepted(cloud)["create-group", "rg-two"] == 0


def test_a_planner_that_lost_its_session_cannot_carry_out_an_older_plan() -> None:
    cloud = ready("one", "two")
    push(cloud, fleet("one"))
    saved = cloud.state.save_plan

    def overtaken(plan_record: Any) -> None:
        saved(plan_record)
        if not plan_record.plan.applied:
            around(cloud, "state", save_plan=saved)
            overtake(cloud, fleet("one", "two"))

    around(cloud, "state", save_plan=overtaken)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    assert accepted(cloud)["delete", "two"] == 0
    assert status(cloud, cloud.repository.head("main"))[0] == "success"


def test_an_old_plan_ends_when_its_cluster_is_created_again() -> None:
    cloud = ready("one", "two")
    push(cloud, fleet("one"))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    push(cloud, fleet("one", "two"))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    assert [plan_record.plan.commit for plan_record in cloud.state.open_plans()] == []


def _begun(cloud: MemoryCloud, *names: str) -> str:
    """Return a commit with these clusters whose planner died before it carried anything out."""
    saved = cloud.state.save

    def dies(record: Any) -> None:
        around(cloud, "state", save=saved)
        raise Crash

    commit = push(cloud, fleet(*names))
    around(cloud, "state", save=dies)
    cloud.step()
    return commit


def test_a_plan_superseded_before_it_was_carried_out_reports_that_and_ends() -> None:
    cloud = ready("one")
    overtaken = _begun(cloud, "one", "two")
    newest = push(cloud, fleet("one", "three"))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "three": Phase.READY}
    expected = f"superseded by {newest[:8]} before all of it was carried out"
    assert status(cloud, overtaken) == ("error", expected)
    assert [plan_record.plan.commit for plan_record in cloud.state.open_plans()] == []


def test_what_supersedes_a_plan_is_the_newer_one_also_before_that_is_carried_out() -> None:
    cloud = ready("one")
    overtaken = _begun(cloud, "one", "two")
    newest = push(cloud, fleet("one", "three"))
    cloud.state.save_fleet(replace(cloud.state.fleet(), planning=newest))
    report_open_plans(cloud.ports)
    expected = f"superseded by {newest[:8]} before all of it was carried out"
    assert status(cloud, overtaken) == ("error", expected)


def test_a_status_that_a_frozen_reporter_wrote_and_could_not_note_is_written_again() -> None:
    cloud, fails = ready("one"), list[bool]()
    overtaken, save = _begun(cloud, "one", "two"), cloud.state.save_report
    handover = Handover(cloud.clock(), cloud.clock(), done=1, total=2)
    cloud.state.save_fleet(replace(cloud.state.fleet(), handover=handover))

    def answers(plan_record: PlanRecord) -> object:
        if fails:
            fails.clear()
            raise Unavailable("no answer")
        return save(plan_record)

    def meanwhile() -> None:
        push(cloud, fleet("one", "three"))
        cloud.run()
        fails.append(True)

    around(cloud, "state", save_report=answers)
    frozen(cloud, "git_host", "set_status", meanwhile)
    report_open_plans(cloud.ports)
    assert status(cloud, overtaken)[0] == "pending"
    cloud.run()
    assert status(cloud, overtaken)[0] == "error"
