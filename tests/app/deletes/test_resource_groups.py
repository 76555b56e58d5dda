"""Resource groups: shared by clusters, created by others, and deleted only when they are ours and empty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest

from localcloud.azure.world.arm_resources import Timings
from localcloud.memory.crashes import Crash
from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.failures.errors import (
    Conflict,
    Immutable,
    Retryable,
    Throttled,
    Unauthorized,
    Unavailable,
)
from shared.cluster.failures.retry import DEFAULTS
from shared.cluster.recipes import Step
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.cluster.transitions.lease import MAX_ABANDONED_LEASES
from shared.json_tree import Json
from shared.ports import GroupMember, Timing
from shared.ports.azure import (
    AzureCall,
    DeleteGroup,
    GetCluster,
    GetGroup,
    ListResources,
    PutCluster,
    PutGroup,
    WriteResponse,
)
from shared.resource_ids import GroupId
from tests.support import fleet_files
from tests.support.azure_ports import body as azure_body
from tests.support.one_cluster import ONE, SUBSCRIPTION
from tests.support.pipeline_runs import accepted, cloud_with, phases, push, record_of
from tests.support.replaced_ports import around, frozen_before, on_azure

pytestmark = pytest.mark.lives


def test_a_group_that_another_cluster_will_use_is_not_deleted() -> None:
    cloud = cloud_with(fleet_files.in_one_group("one"))
    azure, writes = cloud.ports.azure, iter(range(20))

    def slow(write: PutCluster) -> WriteResponse:
        if write.target.name == "two" and next(writes, None) is not None:
            raise Throttled("slow down", retry_after=5)
        return azure.call(write)

    on_azure(cloud, PutCluster, slow)
    moved = fleet_files.fleet("two")
    moved["clusters/two/cluster.yaml"] = fleet_files.cluster("two", count=2).replace(b"rg-two", b"RG-shared")
    push(cloud, moved)
    cloud.run()
    assert phases(cloud) == {"two": Phase.READY}
    assert not any(kind == "delete-group" for kind, _ in accepted(cloud))
    push(cloud, fleet_files.fleet())
    cloud.run()
    assert any(kind == "delete-group" for kind, _ in accepted(cloud)), "the last one removes the group"


def test_a_group_created_by_others_at_the_same_moment_is_given_back() -> None:
    cloud = MemoryCloud()
    theirs = {"location": "eastus", "tags": {"owner": "somebody"}}

    def meanwhile() -> None:
        cloud.azure.put_group(SUBSCRIPTION, "rg-one", theirs)

    frozen_before(cloud, PutGroup, meanwhile)
    push(cloud, fleet_files.fleet("one"))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    messages = [event.message for event in cloud.state.events("one", 50) if event.step == "resource-group"]
    assert any("somebody else created the resource group rg-one" in message for message in messages)
    group = cloud.ports.azure.call(GetGroup(ONE.group))
    assert group is not None
    assert group["tags"] == {}
    push(cloud, fleet_files.fleet())
    cloud.run()
    assert phases(cloud) == {}
    assert cloud.ports.azure.call(GetGroup(ONE.group)) == group


def test_a_group_created_by_others_is_given_back_even_if_that_fails_at_first() -> None:
    cloud = MemoryCloud()
    azure, writes = cloud.ports.azure, list[Json]()

    def put(write: PutGroup) -> WriteResponse:
        writes.append(write.body)
        if len(writes) == 1:
            cloud.azure.put_group(SUBSCRIPTION, "rg-one", {"location": "eastus"})
        if len(writes) == 2:
            raise Unavailable("answered 503")
        return azure.call(write)

    on_azure(cloud, PutGroup, put)
    push(cloud, fleet_files.fleet("one"))
    cloud.run()
    assert [bool(body["tags"]) for body in writes] == [True, False, False]
    push(cloud, fleet_files.fleet())
    cloud.run()
    assert azure.call(GetGroup(ONE.group)) is not None


def test_a_group_that_was_given_back_stays_foreign_while_azure_does_not_show_it() -> None:
    cloud = MemoryCloud()
    azure, old = cloud.ports.azure, iter([None, None, None])

    def put(write: PutGroup) -> WriteResponse:
        if azure.call(GetGroup(write.target)) is None:
            cloud.azure.put_group(SUBSCRIPTION, "rg-one", {"location": "eastus"})
        return azure.call(write)

    on_azure(cloud, PutGroup, put)
    on_azure(cloud, GetGroup, lambda read: next(old, azure.call(read)))
    push(cloud, fleet_files.fleet("one"))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    push(cloud, fleet_files.fleet())
    cloud.run()
    assert azure.call(GetGroup(ONE.group)) is not None


@pytest.mark.parametrize("lost", [True, False])
def test_a_group_of_ours_that_azure_does_not_show_yet_stays_ours(lost: bool) -> None:
    cloud = MemoryCloud()
    azure, missing = cloud.ports.azure, Conflict("the group is not there", code="ResourceGroupNotFound")
    old, answers = iter([None, None]), iter([Unavailable("no answer") if lost else None])
    refusals = iter([] if lost else [missing])

    def put(write: PutGroup) -> WriteResponse:
        written, wrong = azure.call(write), next(answers, None)
        if wrong:
            raise wrong
        return written

    def refused(write: PutCluster) -> WriteResponse:
        for refusal in refusals:
            raise refusal
        return azure.call(write)

    on_azure(cloud, GetGroup, lambda read: next(old, azure.call(read)))
    on_azure(cloud, PutGroup, put)
    on_azure(cloud, PutCluster, refused)
    push(cloud, fleet_files.fleet("one"))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert accepted(cloud)["update-group", "rg-one"] == 0, "it is read again, not overwritten"
    push(cloud, fleet_files.fleet())
    cloud.run()
    assert azure.call(GetGroup(ONE.group)) is None


def test_a_group_without_our_tags_stays_foreign_while_azure_does_not_show_it() -> None:
    cloud = MemoryCloud()
    theirs = {"location": "eastus", "tags": {"owner": "somebody"}}
    azure, old = cloud.ports.azure, iter([None])

    def taken() -> None:
        on_azure(cloud, GetGroup, lambda read: next(old, azure.call(read)))
        cloud.azure.put_group(SUBSCRIPTION, "rg-one", theirs)
        push(
            cloud,
            fleet_files.fleet("one") | {"clusters/one/cluster.yaml": fleet_files.cluster("one", count=2)},
        )
        cloud.run(1)

    frozen_before(cloud, PutCluster, taken)
    push(cloud, fleet_files.fleet("one"))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert next(old, "shown") == "shown"
    push(cloud, fleet_files.fleet())
    cloud.run()
    group = azure.call(GetGroup(ONE.group))
    assert group is not None
    assert group["tags"] == theirs["tags"]


def ended_by(error: BaseException) -> tuple[ClusterRecord, Sequence[datetime]]:
    """Return the record of a cluster whose writes of its group all fail, and the times of the writes."""
    cloud = MemoryCloud()
    writes = []

    def put(_: PutGroup) -> WriteResponse:
        writes.append(cloud.clock())
        raise error

    on_azure(cloud, PutGroup, put)
    push(cloud, fleet_files.fleet("one"))
    cloud.run()
    (record,) = cloud.state.clusters()
    return record, writes


@pytest.mark.parametrize("error", [Unauthorized("no role here"), Unavailable("no answer")])
def test_a_group_that_cannot_be_created_fails_the_job_despite_its_rechecks(error: Retryable) -> None:
    record, writes = ended_by(error)
    limit = DEFAULTS[type(error)].attempts
    assert record.phase is Phase.FAILED
    assert record.job.reason == f"{error.kind}: {error}"
    assert (len(writes), record.job.attempts) == (limit, limit)
    assert all((later - try_).total_seconds() >= Timing().lag_seconds for try_, later in pairwise(writes))


def test_a_worker_that_dies_at_each_creation_of_a_group_fails_the_job() -> None:
    record, writes = ended_by(Crash())
    assert record.phase is Phase.FAILED
    assert f"the worker died {MAX_ABANDONED_LEASES} times in resource-group" in record.job.reason
    assert len(writes) == MAX_ABANDONED_LEASES


def test_a_group_that_two_clusters_create_at_the_same_moment_is_ours() -> None:
    cloud = MemoryCloud()
    frozen_before(cloud, PutGroup, lambda: cloud.run(5))
    push(cloud, fleet_files.in_one_group("one", "two"))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    assert accepted(cloud)["update-group", "rg-shared"] == 1
    push(cloud, fleet_files.fleet(budget=2))
    cloud.run()
    assert phases(cloud) == {}
    assert cloud.ports.azure.call(GetGroup(GroupId(SUBSCRIPTION, "rg-shared"))) is None


def test_of_two_clusters_deleted_at_the_same_moment_one_deletes_their_group() -> None:
    cloud = cloud_with(fleet_files.in_one_group("one", "two"))
    clusters = cloud.state.clusters

    def late() -> Sequence[ClusterRecord]:
        seen = clusters()
        if any(record.job.step.name is Step.DELETE_RESOURCE_GROUP for record in seen):
            around(cloud, "state", clusters=clusters)
            cloud.run(5)  # the other delete reaches the group
        return seen

    around(cloud, "state", clusters=late)
    push(cloud, fleet_files.fleet(budget=2))
    cloud.run()
    assert phases(cloud) == {}
    assert cloud.ports.azure.call(GetGroup(GroupId(SUBSCRIPTION, "rg-shared"))) is None


@pytest.mark.parametrize(
    ("fleet", "lists"),
    [
        pytest.param(fleet_files.fleet("one"), [1], id="its own, which the step before has read twice"),
        pytest.param(fleet_files.in_one_group("one", "two"), [2, 2], id="others, which are read twice"),
    ],
)
def test_a_group_is_deleted_although_azure_still_lists_its_deleted_clusters(
    fleet: dict[str, bytes], lists: list[int]
) -> None:
    cloud, listed = MemoryCloud(), list[Sequence[str]]()
    cloud.azure.engine.timings = Timings(listed_after_delete=3600)
    azure = cloud.ports.azure

    def read(call: ListResources) -> Sequence[str]:
        listed.append(azure.call(call))
        return listed[-1]

    on_azure(cloud, ListResources, read)
    push(cloud, fleet)
    cloud.run()
    groups = {record.desired.id.group for record in cloud.state.clusters()}
    push(cloud, fleet_files.fleet(budget=2))
    cloud.run()
    assert phases(cloud) == {}
    assert [len(group) for group in listed] == lists
    assert [azure.call(GetGroup(group)) for group in groups] == [None]


def test_a_group_with_a_new_cluster_that_azure_lists_and_does_not_show_yet_is_left() -> None:
    cloud = cloud_with(fleet_files.fleet("one"))
    azure, theirs, hidden = cloud.ports.azure, replace(ONE, name="theirs"), list[str]()

    def listed(read: ListResources) -> Sequence[str]:
        if not hidden:
            cloud.azure.put_cluster(theirs, azure_body())
        return azure.call(read)

    def shown(read: GetCluster) -> Json | None:
        if read.target == theirs and not hidden:
            hidden.append(read.target.name)
            return None
        return azure.call(read)

    on_azure(cloud, ListResources, listed)
    on_azure(cloud, GetCluster, shown)
    push(cloud, fleet_files.fleet())
    cloud.run()
    assert (phases(cloud), hidden) == ({}, ["theirs"])
    assert azure.call(GetCluster(theirs)) is not None
    assert not any(kind == "delete-group" for kind, _ in accepted(cloud))


@pytest.mark.parametrize(
    ("before", "deletes"),
    [
        pytest.param(ListResources, 0, id="which leaves the group once it is late"),
        pytest.param(DeleteGroup, 1, id="which deletes it"),
    ],
)
def test_a_new_cluster_waits_while_another_one_deletes_the_group(
    before: type[AzureCall[Any]], deletes: int
) -> None:
    cloud = cloud_with(fleet_files.in_one_group("one"))

    def meanwhile() -> None:
        push(cloud, fleet_files.in_one_group("two"))
        cloud.run(8)
        waits = record_of(cloud, "two")
        assert waits.job.reason == "one is being deleted, maybe with the resource group rg-shared"

    frozen_before(cloud, before, meanwhile)
    push(cloud, fleet_files.fleet())
    cloud.run()
    assert phases(cloud) == {"two": Phase.READY}
    assert (accepted(cloud)["delete-group", "rg-shared"], accepted(cloud)["create", "two"]) == (deletes, 1)


def test_a_delete_has_its_step_stored_before_it_reads_who_else_is_in_the_group() -> None:
    cloud, stored = MemoryCloud(), list[Step]()
    push(cloud, fleet_files.in_one_group("one"))
    cloud.run()
    members = cloud.state.group_members

    def read(group: str) -> Sequence[GroupMember]:
        record = record_of(cloud, "one")
        stored.append(record.job.step.name)
        return members(group)

    around(cloud, "state", group_members=read)
    push(cloud, fleet_files.fleet())
    cloud.run()
    assert {*stored} == {Step.DELETE_RESOURCE_GROUP}


def test_a_delete_that_failed_at_its_group_delays_no_cluster() -> None:
    cloud = cloud_with(fleet_files.in_one_group("fails"))

    def refused(_: DeleteGroup) -> WriteResponse:
        raise Immutable("the group cannot be deleted")

    on_azure(cloud, DeleteGroup, refused)
    push(cloud, fleet_files.fleet())
    cloud.run()
    assert phases(cloud) == {"fails": Phase.FAILED}
    push(cloud, fleet_files.in_one_group("two"))
    cloud.run(600)
    assert phases(cloud)["two"] is Phase.READY


def test_a_group_with_a_cluster_whose_record_cannot_be_read_is_not_empty() -> None:
    cloud = cloud_with(fleet_files.in_one_group("one", "two"))
    text = cloud.state.damage("two", "{")
    push(
        cloud,
        {
            path: content
            for path, content in fleet_files.in_one_group("one", "two").items()
            if "/one/" not in path
        },
    )
    cloud.run()
    assert cloud.state.cluster("one") is None
    assert not any(kind == "delete-group" for kind, _ in accepted(cloud))
    cloud.state.damage("two", text)
    assert phases(cloud) == {"two": Phase.READY}
