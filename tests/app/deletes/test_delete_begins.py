"""The moment a delete begins, and the moment it is over: git and Azure are read once more."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localcloud.azure.world.arm_resources import Timings
from shared.app.outbox import send_all
from shared.azure.rate_limits import Bucket
from shared.cluster.failures.errors import ReconcileError, Unauthorized, Unavailable
from shared.cluster.queues.envelopes import continuation
from shared.cluster.record_parts import Phase
from shared.cluster.transitions.acceptance import accept_delete
from shared.json_tree import Json
from shared.ports import BranchHead
from shared.ports.azure import AzureCall, DeleteCluster, GetCluster, GetGroup, WriteResponse
from tests.support import fleet_files
from tests.support.one_cluster import ONE, files, ready, record, tombstoned
from tests.support.pipeline_runs import accepted, phases, push, step_until
from tests.support.replaced_ports import around, on_azure, shows_first

pytestmark = pytest.mark.lives


@pytest.mark.parametrize("kind", [GetCluster, GetGroup])
def test_a_single_404_after_an_accepted_delete_is_not_believed(kind: type[AzureCall[Json | None]]) -> None:
    cloud = ready()
    azure, hidden = cloud.ports.azure, list[Json]()

    def once_hidden(read: AzureCall[Json | None]) -> Json | None:
        live = azure.call(read)
        if live is not None and live["properties"]["provisioningState"] == "Deleting" and not hidden:
            hidden.append(live)
            return None
        return live

    cloud.azure.engine.timings = Timings(delete_cluster=100, delete_group=100)
    on_azure(cloud, kind, once_hidden)
    push(cloud, fleet_files.fleet())
    cloud.run(until=lambda: bool(hidden))
    assert "does not show" in record(cloud).job.reason
    cloud.run()
    assert phases(cloud) == {}


def test_a_delete_waits_while_the_head_that_has_the_cluster_again_is_not_planned() -> None:
    cloud = tombstoned()
    commit = cloud.repository.push(files())  # its webhook is late
    cloud.run(seconds=20, until=lambda: False)
    assert record(cloud).job.reason == f"commit {commit[:8]} has the cluster again, and is not planned yet"
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert accepted(cloud)["delete", "one"] == 0


def test_a_worker_that_was_frozen_since_its_read_of_the_head_reads_it_again_before_it_deletes() -> None:
    cloud = tombstoned()
    read_head = cloud.ports.git_host.read_head

    def frozen_after(branch: str) -> BranchHead:
        read = read_head(branch)
        if read.commit == removed and record(cloud).job.lease is not None:  # it is the worker that reads
            cloud.clock.advance(40)
            cloud.repository.push(files())
        return read

    removed = cloud.repository.head("main")
    around(cloud, "git_host", read_head=frozen_after)
    cloud.with_ports(
        lambda ports: replace(
            ports, config=replace(ports.config, timing=replace(ports.config.timing, lease_seconds=90))
        )
    )
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert accepted(cloud)["delete", "one"] == 0


def test_a_worker_that_is_frozen_between_its_last_look_and_the_delete_reads_the_head_again() -> None:
    cloud = tombstoned()
    calls = list[str]()

    def frozen_at_the_token(key: str) -> Bucket | None:
        if "delete" in key and not calls:  # by then the step has looked at everything
            calls.append(key)
            cloud.clock.advance(40)
            cloud.repository.push(files())
        return cloud.state.bucket(key)

    around(cloud, "state", bucket=frozen_at_the_token)
    cloud.with_ports(
        lambda ports: replace(
            ports, config=replace(ports.config, timing=replace(ports.config.timing, lease_seconds=90))
        )
    )
    cloud.run()
    assert calls
    assert phases(cloud) == {"one": Phase.READY}
    assert accepted(cloud)["delete", "one"] == 0


def test_a_forged_tombstone_deletes_no_cluster_that_git_has() -> None:
    """Whoever can write the tables and send messages still cannot delete what the branch has."""
    cloud = ready()
    forged = accept_delete(record(cloud), commit=cloud.repository.head("main"), now=cloud.clock())
    send_all(continuation(cloud.state.save(forged), cloud.clock()), cloud.ports)
    cloud.run()
    assert accepted(cloud)["delete", "one"] == 0
    assert ONE in cloud.azure.ids()


def test_a_stale_read_of_the_head_delays_a_delete_and_does_not_cancel_it() -> None:
    cloud = ready()
    old = cloud.repository.head("main")
    push(cloud, fleet_files.fleet())
    step_until(cloud, lambda: phases(cloud) == {"one": Phase.DELETING})
    shows_first(cloud, old)
    cloud.run()
    assert phases(cloud) == {}
    assert accepted(cloud)["delete", "one"] == 1


def test_a_stale_read_while_the_removal_is_still_being_planned_cancels_nothing() -> None:
    cloud = ready()
    old = cloud.repository.head("main")
    push(cloud, fleet_files.fleet())
    step_until(cloud, lambda: phases(cloud) == {"one": Phase.DELETING})
    fleet = cloud.state.fleet()
    cloud.state.save_fleet(replace(fleet, commit=old, planning=fleet.commit))  # the planner crashed
    shows_first(cloud, old)
    cloud.run()
    assert phases(cloud) == {}
    assert accepted(cloud)["delete", "one"] == 1


def test_a_later_commit_without_the_cluster_does_not_delay_its_delete() -> None:
    cloud = tombstoned()
    cloud.repository.push(fleet_files.fleet() | {"README.md": b"a note"})
    cloud.run(seconds=20, until=lambda: False)
    assert accepted(cloud)["delete", "one"] == 1


@pytest.mark.parametrize("error", [Unavailable("GitHub is away"), Unauthorized("the token has expired")])
def test_no_delete_begins_while_the_branch_cannot_be_read(error: ReconcileError) -> None:
    cloud = tombstoned()

    def unreadable(_: str) -> BranchHead:
        raise error

    read_head = cloud.ports.git_host.read_head
    around(cloud, "git_host", read_head=unreadable)
    cloud.run(seconds=3600)
    assert accepted(cloud)["delete", "one"] == 0
    assert record(cloud).job.reason.startswith(f"{error.kind}: {error}")
    around(cloud, "git_host", read_head=read_head)
    push(cloud, fleet_files.fleet() | {"README.md": b"a note"})
    cloud.run()
    assert phases(cloud) == {}


def test_a_delete_that_azure_has_accepted_is_not_cancelled() -> None:
    cloud = tombstoned()
    azure = cloud.ports.azure

    def overtaken(write: DeleteCluster) -> WriteResponse:
        written = azure.call(write)
        cloud.repository.push(files())
        return written

    on_azure(cloud, DeleteCluster, overtaken)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert accepted(cloud)["delete", "one"] == 1
    assert accepted(cloud)["create", "one"] == 2
