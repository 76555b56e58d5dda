"""A cluster that git has again while its delete waits: the tombstone is taken back, or the delete goes on."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from localcloud.memory.crashes import Counter
from localcloud.memory.memory_cloud import MemoryCloud, tripwired
from shared.cluster.failures.errors import Unavailable
from shared.cluster.job import Delay, Lease
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.json_tree import Json
from shared.ports.azure import DeleteCluster, GetCluster
from tests.support import fleet_files
from tests.support.crash_points import run_with_crashes
from tests.support.one_cluster import ONE, files, pool, pools, record, tombstoned
from tests.support.pipeline_runs import accepted, phases, push, status, step_until
from tests.support.replaced_ports import frozen, on_azure, plan_at_once

pytestmark = pytest.mark.lives

REMOVED_AGAIN = fleet_files.fleet() | {"README.md": b"removed again"}
INVALID = fleet_files.fleet() | {"clusters/one/cluster.yaml": b"kind: Cluster\n"}
ELSEWHERE = {path: content.replace(b"eastus", b"westeurope") for path, content in files().items()}


def waiting() -> MemoryCloud:
    """Return a cloud whose delete waits because the head, which is not planned, has the cluster again."""
    cloud = tombstoned()
    push(cloud, files())
    step_until(cloud, lambda: record(cloud).restorable)
    return cloud


def test_a_cluster_that_git_has_again_before_its_delete_begins_keeps_its_record() -> None:
    cloud = tombstoned()
    before, uid, removal = accepted(cloud), record(cloud).uid, cloud.repository.head("main")
    commit = push(cloud, files())
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert accepted(cloud) == before
    assert (record(cloud).uid, record(cloud).generation) == (uid, 3)
    assert not [
        condition
        for condition in record(cloud).conditions
        if condition.type in ("Tombstoned", "ClusterDeleted")
    ]
    assert status(cloud, commit)[0] == "success"
    assert status(cloud, removal)[0] != "pending"
    told = [event.message for event in cloud.state.events("one", 50)]
    assert (
        f"generation 3 of commit {commit[:8]}, which has the cluster again: its delete had not started"
        in told
    )


def test_a_cluster_that_is_restored_and_removed_once_more_is_deleted() -> None:
    """The second removal is planned before the first one is taken back."""
    cloud = waiting()
    commit = push(cloud, REMOVED_AGAIN)
    cloud.run()
    assert phases(cloud) == {}
    assert ONE not in cloud.azure.ids()
    assert accepted(cloud)["delete", "one"] == 1
    assert status(cloud, commit)[0] == "success"


def test_a_crash_at_any_point_neither_deletes_nor_loses_a_restored_cluster() -> None:
    def restore(counter: Counter) -> None:
        cloud = waiting()
        cloud.with_ports(lambda ports: tripwired(ports, counter))
        cloud.run()
        assert phases(cloud) == {"one": Phase.READY}
        assert accepted(cloud)["delete", "one"] == 0
        assert accepted(cloud)["create", "one"] == 1
        assert cloud.dead_letters == []

    run_with_crashes(restore, least=100)


def test_a_cluster_that_is_restored_with_another_spec_gets_it_without_a_delete() -> None:
    cloud = tombstoned()
    push(cloud, files(pool()))
    cloud.run()
    assert set(pools(cloud)) == {"system", "apps"}
    assert accepted(cloud)["delete", "one"] == 0
    assert accepted(cloud)["create", "one"] == 1


@pytest.mark.parametrize(
    ("restored", "cause"), [(INVALID, "cluster.yaml"), (ELSEWHERE, "a cluster cannot move")]
)
def test_a_delete_waits_for_an_operator_while_git_has_the_cluster_as_it_cannot_be(
    restored: dict[str, bytes], cause: str
) -> None:
    cloud = tombstoned()
    commit = push(cloud, restored)
    cloud.run(seconds=3 * 3600, until=lambda: False)
    reason = record(cloud).job.reason
    assert reason.startswith(f"commit {commit[:8]} has the cluster again, and does not keep it: ")
    assert cause in reason
    assert record(cloud).needs_action
    assert accepted(cloud)["delete", "one"] == 0
    push(cloud, REMOVED_AGAIN)
    cloud.run()
    assert phases(cloud) == {}


def test_a_delete_that_waits_for_a_correct_manifest_requests_no_plans() -> None:
    cloud = tombstoned()
    push(cloud, INVALID)
    step_until(cloud, lambda: record(cloud).needs_action)
    planned_at = cloud.state.fleet().at
    cloud.run(seconds=3600, until=lambda: False)
    assert cloud.state.fleet().at == planned_at


def test_a_cluster_of_a_waiting_delete_is_kept_once_its_manifest_is_correct() -> None:
    cloud = tombstoned()
    push(cloud, INVALID)
    cloud.run(seconds=3600, until=lambda: False)
    push(cloud, files())
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert accepted(cloud)["delete", "one"] == 0


def test_a_delete_that_may_have_started_is_read_twice_before_it_counts_as_not_started() -> None:
    """Azure accepted the delete, the answer was lost, and Azure shows the delete late."""
    cloud = tombstoned()
    azure, sent = cloud.ports.azure, list[Json | None]()

    def lost(write: DeleteCluster) -> None:
        sent.append(azure.call(GetCluster(ONE)))
        azure.call(write)
        cloud.repository.push(files())
        raise Unavailable("the connection was reset")

    def late(read: GetCluster) -> Json | None:
        if len(sent) == 1:
            on_azure(cloud, GetCluster, azure.call)
            return sent[0]
        return azure.call(read)

    on_azure(cloud, DeleteCluster, lost)
    on_azure(cloud, GetCluster, late)
    step_until(cloud, lambda: "may not show yet" in record(cloud).job.reason)
    assert not record(cloud).restorable
    uid = record(cloud).uid
    on_azure(cloud, DeleteCluster, azure.call)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert record(cloud).uid != uid
    assert accepted(cloud)["create", "one"] == 2


def test_a_delete_that_begins_after_the_plan_was_made_is_not_taken_back() -> None:
    cloud = waiting()

    def begins() -> None:
        started = record(cloud)
        lease = Lease("the deleter", cloud.clock() + timedelta(seconds=90), cloud.clock())
        cloud.state.save(replace(started, job=replace(started.job, lease=lease)))

    frozen(cloud, "state", "add_group_members", begins)
    plan_at_once(cloud, cloud.repository.head("main"))
    assert record(cloud).deleting
    assert cloud.state.fleet().expects.deletion == ("one",)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}


def test_a_delete_that_ends_after_the_plan_was_made_is_followed_by_a_creation() -> None:
    cloud = waiting()

    def ends() -> None:
        cloud.azure.delete_cluster(ONE)
        cloud.state.delete(record(cloud))

    frozen(cloud, "state", "add_group_members", ends)
    plan_at_once(cloud, cloud.repository.head("main"))
    assert phases(cloud) == {}
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}


def _with(found: ClusterRecord, *, lease: Lease | None = None, abandoned: int = 0) -> ClusterRecord:
    step = replace(found.job.step, abandoned_leases=abandoned)
    return replace(found, job=replace(found.job, lease=lease, step=step))


def test_only_the_outcome_of_a_delete_step_says_that_it_has_not_begun() -> None:
    found = record(waiting())
    assert found.job.next_run.delay is Delay.RESTORED
    assert found.restorable
    assert not _with(found, lease=Lease("a worker", found.updated, found.updated)).restorable
    assert not _with(found, abandoned=1).restorable
