"""Every commit status ends, and says what is so."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.plans import plan_view
from shared.app.planner.commit_status import Progress, Standing, progress_of, status_of
from shared.app.planner.reporter import OPEN_PLANS, report_open_plans
from shared.app.recovery import missed_work
from shared.cluster.failures.errors import Withheld
from shared.cluster.record_parts import Phase
from shared.plan.holds import Hold, HoldKind
from shared.plan.plan import Action, Item, Plan
from tests.support import fleet_files
from tests.support.pipeline_runs import phases, push, ready, record_of, status
from tests.support.replaced_ports import around

pytestmark = pytest.mark.lives


def _suspended(cloud: MemoryCloud) -> str:
    until = (cloud.clock() + timedelta(days=3)).isoformat()
    return f"  suspend: {{until: '{until}', reason: freeze, owner: team-a}}\n"


def test_a_commit_that_is_pushed_while_a_delete_runs_ends_with_the_delete() -> None:
    cloud = ready("one", "two")
    push(cloud, fleet_files.fleet("one"))
    cloud.run(until=lambda: phases(cloud).get("two") is Phase.DELETING)
    cloud.clock.advance(2)
    commit = push(cloud, fleet_files.fleet("one") | {"README.md": b"meanwhile"})
    cloud.run(until=lambda: cloud.state.fleet().commit == commit)
    assert phases(cloud)["two"] is Phase.DELETING
    cloud.run()
    assert status(cloud, commit) == ("success", "2 of 2 clusters in sync (2 unchanged)")
    assert cloud.state.open_plans() == []
    missed_work.resend_overdue(cloud.ports)
    assert cloud.broker.counts("plans").scheduled == 0


def test_a_superseded_commit_ends_when_a_later_one_suspends_its_cluster() -> None:
    cloud = ready("one")
    files = fleet_files.fleet("one")
    files["clusters/one/cluster.yaml"] = fleet_files.cluster("one", count=3)
    cloud.azure.interventions.stick_next("one")
    superseded = push(cloud, files)
    cloud.run(60)
    assert status(cloud, superseded)[0] == "pending"
    files["clusters/one/cluster.yaml"] = fleet_files.cluster("one", count=3, extra=_suspended(cloud))
    newest = push(cloud, files)
    cloud.run(1800)
    state, description = status(cloud, newest)
    assert (state, description[:48]) == ("error", "suspended: 0 of 1 clusters in sync; one: suspend")
    expected = f"superseded by {newest[:8]}: 0 of 1 clusters in sync, 1 suspended (1 update)"
    assert status(cloud, superseded) == ("error", expected)


def progress(total: int, *problems: str, **standings: list[str]) -> Progress:
    return Progress(total, {Standing[name]: texts for name, texts in standings.items()}, problems)


@pytest.mark.parametrize(
    ("found", "state"),
    [
        (progress(3, READY=["one"], SUSPENDED=["two"]), "pending"),
        (progress(3, READY=["one"], SUSPENDED=["two"], WAITS=["three: is stopped"]), "pending"),
        (progress(3, "three: Failed", READY=["one"], SUSPENDED=["two"], FAILED=["Failed"]), "failure"),
        (progress(3, READY=["one"], SUSPENDED=["two", "three"]), "error"),
        (progress(0), "success"),
    ],
)
def test_a_commit_ends_as_suspended_once_nothing_else_is_left_to_do(found: Progress, state: str) -> None:
    shown = status_of(Plan("c" * 40), found, link="")
    assert (shown.state, shown.description.startswith("suspended: ")) == (state, state == "error")


def test_a_commit_with_a_suspended_cluster_ends_as_suspended_and_succeeds_after_that() -> None:
    cloud = ready("one", "two")
    files = fleet_files.fleet("one", "two")
    files["clusters/one/cluster.yaml"] = fleet_files.cluster("one", extra=_suspended(cloud))
    files["clusters/two/cluster.yaml"] = fleet_files.cluster("two", count=3)
    commit = push(cloud, files)
    cloud.run(1800, until=lambda: False)
    state, description = status(cloud, commit)
    assert (state, description[:40]) == ("error", "suspended: 1 of 2 clusters in sync; one:")
    resumed = push(cloud, files | {"clusters/one/cluster.yaml": fleet_files.cluster("one")})
    cloud.run()
    assert status(cloud, resumed)[0] == "success"


def test_a_superseded_commit_is_a_success_once_its_clusters_are_in_sync() -> None:
    cloud = ready("one")
    files = fleet_files.fleet("one")
    files["clusters/one/cluster.yaml"] = fleet_files.cluster("one", count=3)
    superseded = push(cloud, files)
    cloud.run(until=lambda: phases(cloud)["one"] is Phase.UPDATING)
    push(cloud, files | {"README.md": b"meanwhile"})
    cloud.run()
    assert status(cloud, superseded)[0] == "success"


def test_a_commit_with_many_later_ones_ends_although_its_cluster_still_changes() -> None:
    cloud = ready("one")
    files = fleet_files.fleet("one")
    files["clusters/one/cluster.yaml"] = fleet_files.cluster("one", count=3)
    cloud.azure.interventions.stick_next("one")
    superseded = push(cloud, files)
    for number in range(OPEN_PLANS):
        cloud.run(60)
        newest = push(cloud, files | {"README.md": b"%d" % number})
    cloud.run(60)
    assert phases(cloud)["one"] is Phase.UPDATING
    expected = f"superseded by {newest[:8]}: 0 of 1 clusters in sync (1 update)"
    assert status(cloud, superseded) == ("error", expected)
    assert superseded not in [record.plan.commit for record in cloud.state.open_plans()]


def restored_while_it_is_deleted() -> tuple[MemoryCloud, str]:
    """Return a fleet in which git has restored "two" during its delete, and the commit that did it."""
    cloud = ready("one", "two")
    push(cloud, fleet_files.fleet("one"))
    cloud.run(until=lambda: phases(cloud).get("two") is Phase.DELETING)
    cloud.clock.advance(2)
    restored = push(cloud, fleet_files.fleet("one", "two"))
    cloud.run(until=lambda: cloud.state.fleet().commit == restored)
    cloud.clock.advance(2)
    return cloud, restored


def test_a_superseded_commit_that_restored_a_cluster_ends_when_the_cluster_is_there_again() -> None:
    cloud, restored = restored_while_it_is_deleted()
    newest = push(cloud, fleet_files.fleet("one", "two") | {"README.md": b"meanwhile"})
    cloud.run(until=lambda: cloud.state.fleet().commit == newest)
    assert phases(cloud)["two"] is Phase.DELETING
    cloud.run()
    assert status(cloud, restored) == ("success", "2 of 2 clusters in sync (1 unchanged, 1 on hold)")


def test_a_superseded_commit_that_restored_a_cluster_ends_when_a_later_one_removes_it_again() -> None:
    cloud, restored = restored_while_it_is_deleted()
    newest = push(cloud, fleet_files.fleet("one") | {"README.md": b"removed again"})
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    expected = f"superseded by {newest[:8]}: 1 of 2 clusters in sync; two does not exist"
    assert status(cloud, restored) == ("error", expected)
    assert status(cloud, newest)[0] == "success"


def test_a_commit_whose_plan_a_frozen_planner_saved_again_as_it_was_before_still_ends() -> None:
    cloud = ready("one")
    commit = push(cloud, fleet_files.fleet("one", "two"))
    cloud.run(until=lambda: cloud.state.fleet().commit == commit)
    plan_record = cloud.state.plan(commit)
    assert plan_record is not None
    cloud.run()
    cloud.state.save_plan(replace(plan_record, plan=replace(plan_record.plan, applied=False)))
    assert not cloud.idle()
    cloud.run(600)
    assert cloud.state.open_plans() == []
    assert status(cloud, commit)[0] == "success"


def test_a_rebuild_whose_delete_ends_before_its_plan_is_recorded_as_carried_out_is_no_success() -> None:
    cloud = ready("one")
    before = cloud.state.fleet()
    commit = push(cloud, fleet_files.fleet("one") | {"README.md": b"again"})
    cloud.run()
    plan_record = cloud.state.plan(commit)
    assert plan_record is not None
    rebuild = Plan(commit, (Item("one", Action.REBUILD, 2, "a1b2c3d4"),), applied=True)
    cloud.state.save_plan(replace(plan_record, plan=rebuild, open=True, settled=False, reported=""))
    cloud.state.save_fleet(replace(cloud.state.fleet(), commit=before.commit, planning=commit))
    record = record_of(cloud, "one")
    cloud.state.delete(record)
    report_open_plans(cloud.ports)
    assert status(cloud, commit) == ("pending", "0 of 1 clusters in sync (1 rebuild)")
    view = plan_view(commit, cloud.ports)
    assert view is not None
    assert view["progress"]["ready"] == 0


@pytest.mark.parametrize(
    ("kind", "ready_clusters"), [(HoldKind.AWAITS_DELETION, 0), (HoldKind.BEING_DELETED, 1)]
)
def test_a_delete_that_is_tried_again_is_the_end_only_where_git_lacks_the_cluster(
    kind: HoldKind, ready_clusters: int
) -> None:
    retried = Item("one", Action.RETRY, 2, "a1b2c3d4", hold=Hold(kind))
    found = progress_of(Plan("c0ffee", (retried,)), {}, newest=True)
    assert found.count(Standing.READY) == ready_clusters


def test_a_commit_ends_although_its_repository_was_renamed_while_it_was_carried_out() -> None:
    cloud = ready("one")
    files = fleet_files.fleet("one")
    files["clusters/one/cluster.yaml"] = fleet_files.cluster("one", count=3)
    commit = push(cloud, files)
    cloud.run(until=lambda: phases(cloud)["one"] is Phase.UPDATING and status(cloud, commit)[0] == "pending")
    port = cloud.ports.git_host
    set_status, read_head = port.set_status, port.read_head

    def moved(*_: object) -> None:
        raise Withheld("GitHub answered with a redirect")

    around(cloud, "git_host", set_status=moved, read_head=moved)
    cloud.run(1800, until=lambda: False)
    missed_work.plan_missed_head(cloud.ports)
    assert phases(cloud) == {"one": Phase.READY}
    assert status(cloud, commit)[0] == "pending"
    around(cloud, "git_host", set_status=set_status, read_head=read_head)
    cloud.run(600, until=lambda: False)
    assert status(cloud, commit)[0] == "success"
    assert cloud.state.open_plans() == []
