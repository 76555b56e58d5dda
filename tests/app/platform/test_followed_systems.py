"""Systems whose source is followed by rollout: a team's commits go through the stages."""

from __future__ import annotations

import pytest

from localcloud.git.world.memory_repository import MemoryRepository
from localcloud.kubernetes.world.object_store import At, WriteMode
from localcloud.kubernetes.world.writes.patches import MERGE
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.why import why_view
from shared.cluster.record_parts import Phase
from shared.kubernetes.sync_objects import SOURCE_API
from tests.support.followed_systems import (
    BOTH,
    CLAIM,
    TWO,
    at,
    files,
    following,
    hold_of,
    newest,
    on,
    settle,
)
from tests.support.pipeline_runs import phases, push, record_of, status
from tests.support.staged_fleets import APPROVED_STAGES, DEV, NAMESPACE, PROD, act, pin, staged, with_file
from tests.support.team_systems import DEPLOYMENT, approve

pytestmark = pytest.mark.lives


def test_a_commit_of_a_team_goes_through_the_stages() -> None:
    cloud, team = following()
    assert on(cloud, team.head("main")) == {*BOTH}
    commit = team.commit({"apps/shop/web.yaml": DEPLOYMENT.replace(b"replicas: 1", b"replicas: 2")})
    cloud.run(until=lambda: bool(on(cloud, commit)))
    assert on(cloud, commit) == {"a1"}
    settle(cloud)
    assert on(cloud, commit) == {*BOTH}
    plan = cloud.state.plan(newest(cloud))
    assert plan is not None
    assert status(cloud, newest(cloud))[0] == "success"


@pytest.mark.parametrize("name", ["b2", "b5"])
def test_a_cluster_that_gets_a_system_begins_with_the_commit_that_its_environment_has(name: str) -> None:
    """The newest one waits for an approval of production, on a cluster that is there and on a new one."""
    cloud, team = following()
    base = files() | {"fleet.yaml": staged(APPROVED_STAGES)["fleet.yaml"]}
    push(cloud, base)
    settle(cloud)
    first, commit = team.head("main"), team.commit({"apps/shop/web.yaml": TWO})
    settle(cloud)
    assert on(cloud, commit) == {"a1"}
    system = base["systems/shop.yaml"].replace(b"a1, b1", f"a1, b1, {name}".encode())
    manifest = base["clusters/b2/cluster.yaml"].replace(b"b2", name.encode())
    push(cloud, base | {"systems/shop.yaml": system, f"clusters/{name}/cluster.yaml": manifest})
    settle(cloud)
    assert at(cloud, name) == (first if name == "b5" else "")
    act(cloud, newest(cloud), "approve", "production")
    settle(cloud)
    assert {at(cloud, of) for of in ("b1", name)} == {commit}
    assert status(cloud, newest(cloud))[0] == "success"


def test_a_commit_that_changes_nothing_of_the_system_starts_no_job() -> None:
    cloud, team = following()
    first = team.head("main")
    generations = {record.name: record.generation for record in cloud.state.clusters()}
    team.commit({"README.md": b"# shop\n"})
    settle(cloud)
    assert on(cloud, first) == {*BOTH}
    assert {record.name: record.generation for record in cloud.state.clusters()} == generations
    assert cloud.state.fleet().origin.followed[0].clusters == len(BOTH)


def test_a_forced_push_of_a_team_moves_nothing_and_says_so() -> None:
    cloud, team = following()
    first = team.head("main")
    team.reset(team.commit({"apps/shop/more.yaml": DEPLOYMENT}, branch="aside"))
    settle(cloud)
    assert on(cloud, first) == {*BOTH}
    plan = cloud.state.plan(newest(cloud))
    assert plan is not None
    hold = next(item.hold for item in plan.plan.items if item.cluster == "b1")
    assert hold is not None
    assert hold.cause.startswith("shop stay as they are: main of contoso/shop was pushed by force")
    team.reset(first)
    settle(cloud)
    assert status(cloud, newest(cloud))[0] == "success"


def test_a_system_whose_repository_the_app_cannot_read_is_not_installed() -> None:
    cloud = MemoryCloud()
    push(cloud, staged())
    settle(cloud)
    push(cloud, files())
    settle(cloud)
    assert {at(cloud, name) for name in BOTH} == {""}
    state, _ = status(cloud, newest(cloud))
    assert state != "success"
    team = cloud.others["contoso/shop"] = MemoryRepository(cloud.clock)
    team.id = 2
    team.push({"apps/shop/web.yaml": DEPLOYMENT})
    settle(cloud)
    assert on(cloud, team.head("main")) == {*BOTH}


def test_a_pin_that_somebody_moved_does_not_go_back() -> None:
    cloud, team = following()
    replicas = b"replicas: 1"
    theirs = team.commit({"apps/shop/web.yaml": DEPLOYMENT.replace(replicas, b"replicas: 2")}, branch="next")
    record = record_of(cloud, "a1")
    world = cloud.kubernetes.world(record.desired.id)
    assert world is not None
    kind = world.kind(SOURCE_API, "GitRepository")
    assert kind is not None
    patch = {"spec": {"ref": {"commit": theirs}}}
    world.patch(At(kind, "shop", "shop"), patch, MERGE, WriteMode(manager="kubectl-patch"))
    team.commit({"apps/shop/web.yaml": DEPLOYMENT.replace(replicas, b"replicas: 3")})
    settle(cloud)
    assert at(cloud, "a1") == theirs
    why = why_view("a1", cloud.ports)
    assert why is not None
    assert "does not contain; Flux would delete" in why["doing"]
    assert theirs[:8] in why["doing"]


def test_what_a_team_destroys_waits_for_an_approval_of_that_commit() -> None:
    cloud, team = following(DEPLOYMENT + CLAIM)
    first = team.head("main")
    commit = team.commit({"apps/shop/web.yaml": DEPLOYMENT})
    settle(cloud)
    assert on(cloud, first) == {*BOTH}
    hold = hold_of(cloud, "b1")
    assert hold is not None
    assert hold.needs_approval
    assert "shop stay as they are, because PersistentVolumeClaim shop/orders is deleted" in hold.cause
    assert "prune: disabled" in hold.details["way"]
    approve(cloud, *BOTH)
    settle(cloud)
    assert on(cloud, commit) == {*BOTH}
    assert status(cloud, newest(cloud))[0] == "success"


def test_an_approval_is_not_one_of_the_next_commit_of_a_team() -> None:
    more = CLAIM.replace(b"orders", b"invoices")
    cloud, team = following(DEPLOYMENT + CLAIM + more)
    first = team.head("main")
    team.commit({"apps/shop/web.yaml": DEPLOYMENT + more})
    settle(cloud)
    team.commit({"apps/shop/web.yaml": DEPLOYMENT})
    approve(cloud, *BOTH)
    settle(cloud)
    assert on(cloud, first) == {*BOTH}
    hold = hold_of(cloud, "b1")
    assert hold is not None
    assert "shop/invoices" in hold.cause


def test_what_flux_cannot_apply_of_a_team_stays_in_its_repository() -> None:
    cloud, team = following()
    first = team.head("main")
    team.commit({"apps/shop/web.yaml": b"a: [\n"})
    settle(cloud)
    assert on(cloud, first) == {*BOTH}
    hold = hold_of(cloud, "a1")
    assert hold is not None
    assert not hold.needs_approval
    assert "apps/shop/web.yaml" in hold.cause
    fixed = team.commit({"apps/shop/web.yaml": DEPLOYMENT.replace(b"replicas: 1", b"replicas: 2")})
    settle(cloud)
    assert on(cloud, fixed) == {*BOTH}


def test_an_abort_takes_systems_back_to_the_commit_before() -> None:
    cloud, team = following()
    first = team.head("main")
    commit = team.commit({"apps/shop/web.yaml": TWO})
    cloud.run(until=lambda: bool(on(cloud, commit)))
    act(cloud, newest(cloud), "back")
    cloud.run(seconds=1800, until=lambda: False)
    assert on(cloud, first) == {*BOTH}
    assert phases(cloud) == dict.fromkeys((*DEV, *PROD), Phase.READY)
    (event,) = [event for event in cloud.state.events("a1", 50) if event.reason == "PinBack"]
    back = (
        f"the pin of shop goes back from {commit[:8]} to {first[:8]}: the rollout was aborted by ops: because"
    )
    assert event.message == back
    settle(cloud)
    assert on(cloud, first) == {*BOTH}, "the plan of the head takes nobody along"


def test_the_next_commit_of_the_fleet_takes_systems_along_after_an_abort() -> None:
    cloud, team = following()
    commit = team.commit({"apps/shop/web.yaml": TWO})
    cloud.run(until=lambda: bool(on(cloud, commit)))
    act(cloud, newest(cloud), "back")
    cloud.run(seconds=1800, until=lambda: False)
    push(cloud, files() | {"README.md": b"# again\n"})
    settle(cloud)
    assert on(cloud, commit) == {*BOTH}
    assert status(cloud, newest(cloud))[0] == "success"


def test_an_abort_takes_the_pins_of_clusters_and_of_systems_back_at_once() -> None:
    cloud, team = following()
    first, before = team.head("main"), pin(cloud, "a1").commit
    commit = team.commit({"apps/shop/web.yaml": TWO})
    pushed = push(cloud, with_file("monitoring.yaml", NAMESPACE, files()))
    cloud.run(until=lambda: bool(on(cloud, commit)))
    act(cloud, pushed, "back")
    cloud.run(seconds=1800, until=lambda: False)
    assert on(cloud, first) == {*BOTH}
    assert {pin(cloud, name).commit for name in (*DEV, *PROD)} == {before}
    generations = {record.name: record.generation for record in cloud.state.clusters()}
    settle(cloud)
    assert {record.name: record.generation for record in cloud.state.clusters()} == generations
