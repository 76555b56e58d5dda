"""A rebuild: the cluster is deleted and created again from its manifest, once, and only while git asks."""

from __future__ import annotations

import pytest

from localcloud.memory.crashes import Counter
from localcloud.memory.memory_cloud import MemoryCloud, tripwired
from shared.app.api.acts.approval import approve
from shared.app.api.acts.cluster import take_over
from shared.app.outbox import send
from shared.azure.ownership import created_for
from shared.cluster.job import ContestKind
from shared.cluster.queues.messages import PlanRequest
from shared.cluster.record_parts import Phase
from shared.plan.plan import Action, Item
from shared.ports.azure import GetCluster
from tests.support import fleet_files, lost_tables
from tests.support.crash_points import run_with_crashes
from tests.support.one_cluster import ONE, cluster, files, pool, ready, record
from tests.support.pipeline_runs import accepted, phases, push, status, step_until

pytestmark = pytest.mark.lives

EARLIER, ASKED, LATER = (f"2026-01-0{day}T00:00:00Z" for day in (1, 2, 3))
STORED = "2026-01-02T00:00:00+00:00"


def asking(asked: str = ASKED, extra: str = "") -> dict[str, bytes]:
    return files(extra, annotations=f'{{roadstead.dev/rebuild: "{asked}"}}')


def moved(to: str) -> dict[str, bytes]:
    return {path: content.replace(b"eastus", to.encode()) for path, content in asking().items()}


def item(cloud: MemoryCloud, commit: str) -> Item:
    plan = cloud.state.plan(commit)
    assert plan is not None
    return plan.plan.items[0]


def writes(cloud: MemoryCloud) -> tuple[int, int]:
    """Return how often Azure has created and deleted the cluster."""
    return accepted(cloud)["create", "one"], accepted(cloud)["delete", "one"]


def rebuilding(*, extra: str = "", with_epoch: bool = False) -> MemoryCloud:
    """Return a cloud whose cluster has the tombstone of a rebuild, before Azure has received the delete."""
    cloud = lost_tables.ready(files(extra)) if with_epoch else ready(extra)
    push(cloud, asking(extra=extra))
    step_until(cloud, lambda: phases(cloud) == {"one": Phase.DELETING})
    return cloud


def rebuilt() -> MemoryCloud:
    """Return a cloud whose cluster was rebuilt."""
    cloud = rebuilding()
    cloud.run()
    assert (phases(cloud), writes(cloud)) == ({"one": Phase.READY}, (2, 1))
    return cloud


def test_a_rebuild_deletes_the_cluster_and_creates_another_one_that_is_verified() -> None:
    cloud = ready()
    before = record(cloud)
    commit = push(cloud, asking())
    step_until(cloud, lambda: cloud.state.fleet().commit == commit)
    assert item(cloud, commit).action is Action.REBUILD
    cloud.run()
    after = record(cloud)
    assert (phases(cloud), writes(cloud)) == ({"one": Phase.READY}, (2, 1))
    assert (before.uid != after.uid, after.rebuilt_for) == (True, STORED)
    assert created_for(cluster(cloud)["tags"]["roadstead-life"]) == STORED
    assert status(cloud, commit)[0] == "success"
    told = {event.reason: event.message for event in cloud.state.events("one", 100)}
    assert f"commit {commit[:8]} rebuilds the cluster ({STORED})" in told["Rebuild"]


@pytest.mark.parametrize("later", ["", EARLIER, ASKED])
def test_no_later_commit_rebuilds_it_again_but_one_with_a_later_time(later: str) -> None:
    cloud = rebuilt()
    for following in (files() if not later else asking(later), asking(), asking(extra=pool())):
        push(cloud, following)
        cloud.run()
    send(PlanRequest(again=True, reason="test"), cloud.ports, message_id="again")
    cloud.run()
    assert (phases(cloud), writes(cloud)) == ({"one": Phase.READY}, (2, 1))
    push(cloud, asking(LATER, pool()))
    cloud.run()
    assert (phases(cloud), writes(cloud)) == ({"one": Phase.READY}, (3, 2))


def test_a_change_that_azure_cannot_make_in_place_is_carried_out_by_a_rebuild() -> None:
    cloud = ready("  dnsPrefix: one-a\n")
    commit = push(cloud, files("  dnsPrefix: one-b\n"))
    cloud.run()
    assert item(cloud, commit).action is Action.REFUSED
    push(cloud, asking(extra="  dnsPrefix: one-b\n"))
    cloud.run()
    assert (phases(cloud), writes(cloud)) == ({"one": Phase.READY}, (2, 1))
    assert cluster(cloud)["properties"]["dnsPrefix"] == "one-b"


def test_a_cluster_of_a_lost_region_is_rebuilt_in_another_one() -> None:
    cloud = ready()
    push(cloud, moved("westeurope"))
    cloud.run()
    assert (phases(cloud), writes(cloud)) == ({"one": Phase.READY}, (2, 1))
    assert cluster(cloud)["location"] == "westeurope"


def test_a_protected_cluster_is_rebuilt_once_exactly_that_is_approved() -> None:
    protected = "  deletionProtection: true\n"
    cloud = ready(protected)
    commit = push(cloud, asking(extra=protected))
    cloud.run()
    assert (phases(cloud), writes(cloud)) == ({"one": Phase.READY}, (1, 0))
    assert status(cloud, commit)[0] == "failure"
    assert approve(commit, ["one"], "jo", cloud.ports).status == 202
    cloud.run()
    assert (phases(cloud), writes(cloud)) == ({"one": Phase.READY}, (2, 1))
    told = [event.message for event in cloud.state.events("one", 100) if event.reason == "Rebuild"]
    assert "approved by jo" in told[0]


def test_a_rebuild_that_is_taken_back_before_the_delete_begins_keeps_the_cluster() -> None:
    cloud = rebuilding()
    uid = record(cloud).uid
    push(cloud, files())
    cloud.run()
    assert (phases(cloud), writes(cloud), record(cloud).uid) == ({"one": Phase.READY}, (1, 0), uid)


def test_a_rebuild_that_is_taken_back_and_asked_for_again_is_carried_out_once() -> None:
    cloud = rebuilding()
    push(cloud, files())
    step_until(cloud, lambda: record(cloud).restorable)
    push(cloud, asking())
    cloud.run()
    assert (phases(cloud), writes(cloud)) == ({"one": Phase.READY}, (2, 1))


def test_a_folder_that_is_removed_during_its_rebuild_is_a_delete() -> None:
    cloud = rebuilding()
    push(cloud, fleet_files.fleet())
    cloud.run()
    assert (phases(cloud), writes(cloud)) == ({}, (1, 1))
    assert cloud.ports.azure.call(GetCluster(ONE)) is None


def test_a_delete_whose_folder_comes_back_with_a_rebuild_is_followed_by_a_creation() -> None:
    cloud = ready()
    push(cloud, fleet_files.fleet())
    step_until(cloud, lambda: phases(cloud) == {"one": Phase.DELETING})
    push(cloud, asking())
    cloud.run()
    assert (phases(cloud), writes(cloud)) == ({"one": Phase.READY}, (2, 1))


def test_no_delete_begins_while_the_head_could_not_create_the_cluster_again() -> None:
    cloud = rebuilding()
    broken = asking() | {"clusters/one/cluster.yaml": asking()["clusters/one/cluster.yaml"] + b"  x: y\n"}
    push(cloud, broken)
    cloud.run(seconds=3600, until=lambda: False)
    assert writes(cloud) == (1, 0)
    assert record(cloud).needs_action
    push(cloud, asking())
    cloud.run()
    assert (phases(cloud), writes(cloud)) == ({"one": Phase.READY}, (2, 1))


def test_a_crash_at_any_point_of_a_rebuild_deletes_and_creates_once() -> None:
    def rebuild(counter: Counter) -> None:
        cloud = rebuilding()
        cloud.with_ports(lambda ports: tripwired(ports, counter))
        cloud.run()
        assert (phases(cloud), writes(cloud)) == ({"one": Phase.READY}, (2, 1))
        assert cloud.dead_letters == []

    run_with_crashes(rebuild, least=100, most=6)


def test_tables_that_are_lost_after_a_rebuild_cause_no_other_one() -> None:
    cloud = lost_tables.ready(files())
    push(cloud, asking())
    cloud.run()
    assert writes(cloud) == (2, 1)
    lost_tables.lose(cloud)
    assert (phases(cloud), writes(cloud)) == ({"one": Phase.READY}, (2, 1))
    push(cloud, asking(LATER))
    cloud.run()
    assert (phases(cloud), writes(cloud)) == ({"one": Phase.READY}, (3, 2))


def test_a_rebuild_that_lost_tables_had_not_carried_out_is_named_and_not_carried_out() -> None:
    protected = "  deletionProtection: true\n"
    cloud = lost_tables.ready(files(protected))
    push(cloud, asking(extra=protected))
    cloud.run()
    lost_tables.lose(cloud)
    assert writes(cloud) == (1, 0)
    assert f"it was not rebuilt for {STORED}, as git asks" in record(cloud).job.reason
    assert take_over("one", "jo", cloud.ports).status == 202
    cloud.run()
    assert (phases(cloud), writes(cloud)) == ({"one": Phase.READY}, (1, 0))
    commit = push(cloud, asking(LATER, protected))
    cloud.run()
    assert item(cloud, commit).rebuilds


def test_older_tables_do_not_rebuild_a_cluster_that_was_rebuilt_since() -> None:
    cloud = lost_tables.ready(files())
    older = cloud.state.backup()
    push(cloud, asking())
    cloud.run()
    assert writes(cloud) == (2, 1)
    life = cluster(cloud)["tags"]["roadstead-life"]
    cloud.restore(older)
    cloud.run()
    assert (phases(cloud), writes(cloud)) == ({"one": Phase.READY}, (2, 1))
    assert (record(cloud).azure.life, record(cloud).rebuilt_for) == (life, STORED)


def test_a_restored_tombstone_of_a_rebuild_does_not_delete_the_cluster_that_it_led_to() -> None:
    cloud = rebuilding(with_epoch=True)
    older = cloud.state.backup()
    cloud.run()
    life = cluster(cloud)["tags"]["roadstead-life"]
    cloud.clock.advance(3600)
    cloud.restore(older)
    cloud.run()
    assert (phases(cloud), writes(cloud)) == ({"one": Phase.READY}, (2, 1))
    assert (record(cloud).azure.life, record(cloud).contested) == (life, False)


def test_whoever_can_write_the_tables_has_no_cluster_deleted_that_git_keeps() -> None:
    cloud = rebuilding()
    cloud.repository.push(files())
    cloud.run(seconds=3600, until=lambda: False)
    assert writes(cloud) == (1, 0)


def test_the_tombstone_of_an_earlier_life_waits_for_a_person_also_for_a_later_rebuild() -> None:
    cloud = rebuilding(with_epoch=True)
    older = cloud.state.backup()
    cloud.run()
    cloud.clock.advance(3600)
    cloud.restore(older)
    cloud.repository.push(asking(LATER))
    cloud.run(seconds=1800, until=lambda: False)
    contest = record(cloud).job.next_run.contest
    assert (writes(cloud), contest and contest.kind) == ((2, 1), ContestKind.RECOVERY)
    assert take_over("one", "jo", cloud.ports).status == 202
    cloud.run()
    assert (phases(cloud), writes(cloud)) == ({"one": Phase.READY}, (2, 1)), "whoever takes it over keeps it"
