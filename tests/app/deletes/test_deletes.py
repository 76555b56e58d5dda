"""Deletes: a missing resource is success, a foreign one stays, and a failed delete is reported."""

from __future__ import annotations

import pytest

from localcloud.azure.world.arm_resources import Timings
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.cluster import replay
from shared.cluster.failures.errors import Unavailable
from shared.cluster.recipes import Step
from shared.cluster.record_parts import Phase
from shared.json_tree import Json
from shared.ports import FleetConfig, Timing
from shared.ports.azure import (
    AzureCall,
    DeleteCluster,
    GetCluster,
    GetGroup,
    PutCluster,
    PutGroup,
    WriteResponse,
)
from tests.support import fleet_files
from tests.support.one_cluster import ONE, SUBSCRIPTION, cluster, files, ready, record
from tests.support.pipeline_runs import accepted, phases, push
from tests.support.replaced_ports import on_azure, overtake

pytestmark = pytest.mark.lives


def last_event(cloud: MemoryCloud) -> str:
    return cloud.state.events("one", 1)[0].message


def test_a_failed_delete_is_reported_with_the_reason_of_azure() -> None:
    cloud = ready()
    failed = {"code": "InUseSubnetCannotBeDeleted", "message": "the subnet is in use"}
    azure = cloud.ports.azure

    def after(read: GetCluster) -> Json | None:
        live = azure.call(read)
        if live is None or live["properties"]["provisioningState"] != "Deleting":
            return live
        status = {"provisioningError": failed}
        return {**live, "properties": {**live["properties"], "provisioningState": "Failed", "status": status}}

    cloud.azure.engine.timings = Timings(delete_cluster=1_000_000)
    on_azure(cloud, GetCluster, after)
    push(cloud, fleet_files.fleet())
    cloud.run(seconds=3600)
    assert "the deletion of the cluster one: the subnet is in use" in record(cloud).job.reason
    cloud.run(seconds=40 * 3600)  # somebody may empty the subnet at any time
    assert (record(cloud).phase, record(cloud).job.active) == (Phase.STALLED, True)
    assert "the deletion of the cluster one: the subnet is in use" in record(cloud).job.reason


def test_a_delete_without_our_tags_suggests_an_action_and_continues_after_it() -> None:
    cloud = ready()
    live = cluster(cloud)
    marks = live["tags"]
    cloud.ports.azure.call(PutCluster(ONE, {**live, "tags": {"cost": "x"}}, etag=live["eTag"]))
    cloud.run(seconds=60)
    push(cloud, fleet_files.fleet())
    cloud.run()
    assert "put the tags back, or delete it by hand, then replay" in record(cloud).job.reason
    live = cluster(cloud)
    cloud.ports.azure.call(PutCluster(ONE, {**live, "tags": marks}, etag=live["eTag"]))
    cloud.clock.advance(60)
    replay("one", "somebody", cloud.ports)
    cloud.run()
    assert phases(cloud) == {}


def test_a_cluster_of_ours_stays_recorded_after_a_commit_found_it_untagged() -> None:
    cloud = ready()
    live = cluster(cloud)
    cloud.ports.azure.call(PutCluster(ONE, {**live, "tags": {"cost": "x"}}, etag=live["eTag"]))
    cloud.run(seconds=60)
    push(cloud, files("  tags: {team: shop}\n"))
    cloud.run()
    assert record(cloud).job.reason.startswith("NotOwned: ")
    push(cloud, fleet_files.fleet())
    cloud.run()
    assert record(cloud).phase is Phase.FAILED
    assert "put the tags back, or delete it by hand, then replay" in record(cloud).job.reason


def test_a_foreign_cluster_that_azure_did_not_show_is_left_without_a_delete() -> None:
    cloud = ready()
    live = cluster(cloud)
    cloud.ports.azure.call(DeleteCluster(ONE, etag=live["eTag"]))
    push(cloud, fleet_files.fleet())
    cloud.run()
    cloud.azure.put_group(SUBSCRIPTION, "rg-one", {"location": "eastus"})
    theirs = {name: live[name] for name in ("location", "identity", "sku")}
    profiles = [{"name": "system", "mode": "System", "vmSize": "Standard_D4s_v5", "count": 1}]
    properties = {"dnsPrefix": "one", "agentPoolProfiles": profiles}
    cloud.azure.put_cluster(ONE, {**theirs, "tags": {"owner": "somebody"}, "properties": properties})
    azure, silent = cloud.ports.azure, [True]

    def once_silent(read: GetCluster) -> Json | None:
        if silent:
            raise Unavailable("no answer")
        return azure.call(read)

    on_azure(cloud, GetCluster, once_silent)
    push(cloud, files())
    cloud.run(until=lambda: phases(cloud) != {} and record(cloud).job.attempts == 2)
    silent.clear()
    push(cloud, fleet_files.fleet())
    cloud.run()
    assert phases(cloud) == {}
    message = cloud.state.events("one", 1)[0].message
    assert "left the cluster one: it was never this fleet's" in message
    assert cloud.ports.azure.call(GetCluster(ONE)) is not None


def test_a_foreign_cluster_in_place_of_a_deleted_one_is_left_alone() -> None:
    cloud = ready()
    azure = cloud.ports.azure

    def replaced(read: GetCluster) -> Json | None:
        live = azure.call(read)
        if live is None or live["properties"]["provisioningState"] != "Deleting":
            return live
        return {**live, "tags": {"owner": "somebody"}}

    cloud.azure.engine.timings = Timings(delete_cluster=100)
    on_azure(cloud, GetCluster, replaced)
    push(cloud, fleet_files.fleet())
    cloud.run()
    assert phases(cloud) == {}
    assert "ours is deleted, and somebody else has created this one" in last_event(cloud)


def test_a_delete_during_the_creation_of_the_group_removes_the_group() -> None:
    cloud = MemoryCloud()
    push(cloud, files())
    azure = cloud.ports.azure

    def overtaken(write: PutGroup) -> WriteResponse:
        written = azure.call(write)
        on_azure(cloud, PutGroup, azure.call)
        overtake(cloud, fleet_files.fleet())
        return written

    on_azure(cloud, PutGroup, overtaken)
    cloud.run()
    assert phases(cloud) == {}
    assert cloud.ports.azure.call(GetGroup(ONE.group)) is None


@pytest.mark.parametrize(
    ("kind", "step"), [(GetCluster, Step.DELETE_CLUSTER), (GetGroup, Step.DELETE_RESOURCE_GROUP)]
)
def test_a_resource_that_azure_does_not_show_yet_is_still_deleted(
    kind: type[AzureCall[Json | None]], step: Step
) -> None:
    cloud = ready()
    azure, late = cloud.ports.azure, iter([True])

    def old(read: AzureCall[Json | None]) -> Json | None:
        going = cloud.state.cluster("one")
        hidden = going is not None and going.job.step.name is step and next(late, False)
        return None if hidden else azure.call(read)

    on_azure(cloud, kind, old)
    push(cloud, fleet_files.fleet())
    cloud.run()
    assert phases(cloud) == {}
    assert next(late, None) is None, "it was hidden once"
    assert cloud.ports.azure.call(GetCluster(ONE)) is None
    assert cloud.ports.azure.call(GetGroup(ONE.group)) is None


def test_the_tag_keys_of_a_group_count_in_any_letter_case() -> None:
    cloud = ready()
    group = cloud.ports.azure.call(GetGroup(ONE.group))
    assert group is not None
    tags = {key.title(): value for key, value in group["tags"].items()}
    cloud.ports.azure.call(PutGroup(ONE.group, {**group, "tags": tags}))
    push(cloud, fleet_files.fleet())
    cloud.run()
    assert cloud.ports.azure.call(GetGroup(ONE.group)) is None


def test_a_fleet_of_the_same_name_from_another_repository_touches_nothing_of_ours() -> None:
    cloud = ready()
    before = accepted(cloud)
    config = FleetConfig(
        cloud.ports.config.fleet, "example/other", timing=Timing(lease_seconds=20, poll_seconds=5)
    )
    other = MemoryCloud(config=config, peer=cloud, throttle=False)
    push(other, files("  tags: {x: y}\n"))
    other.run(seconds=600)
    assert "REPOSITORY_PREVIOUS" in record(other).job.reason
    push(other, fleet_files.fleet())
    other.run(seconds=900)
    assert phases(other) == {}
    assert accepted(cloud) == before


def test_the_deletion_of_an_untagged_cluster_is_waited_for() -> None:
    cloud = ready()
    live = cluster(cloud)
    cloud.ports.azure.call(PutCluster(ONE, {**live, "tags": {"cost": "x"}}, etag=live["eTag"]))
    cloud.run(seconds=60)
    cloud.azure.engine.timings = Timings(delete_cluster=300)
    cloud.ports.azure.call(DeleteCluster(ONE, etag=None))
    push(cloud, fleet_files.fleet())
    cloud.run(seconds=100)
    assert record(cloud).job.reason == "Azure is deleting a cluster one that is not this fleet's"
    cloud.run()
    assert phases(cloud) == {}


@pytest.mark.parametrize("seconds", [3.0, 60.0])
def test_a_cluster_is_gone_when_azure_still_does_not_show_it_after_the_time_in_the_settings(
    seconds: float,
) -> None:
    cloud = MemoryCloud(config=FleetConfig("example", "example/fleet", timing=Timing(lag_seconds=seconds)))
    push(cloud, files())
    cloud.run()
    azure, missed = cloud.ports.azure, []

    def read(call: GetCluster) -> Json | None:
        live = azure.call(call)
        if live is None:
            missed.append(cloud.clock())
        return live

    on_azure(cloud, GetCluster, read)
    push(cloud, fleet_files.fleet())
    cloud.run()
    first, second, *_ = missed  # the others are of the step that deletes the group
    assert seconds <= (second - first).total_seconds() < seconds + 2
