"""One message runs the steps that follow each other at once."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from localcloud.azure.world.arm_resources import Timings
from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.recipes import Step
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.cluster.transitions.acceptance import accept_delete
from shared.json_tree import Json
from shared.ports import FleetConfig, Timing
from shared.ports.azure import GetCluster, PutCluster, WriteResponse
from tests.support import fleet_files, one_cluster
from tests.support.counted_calls import deliveries
from tests.support.pipeline_runs import one_step_a_message, phases, push
from tests.support.replaced_ports import Around, on_azure


@pytest.mark.parametrize(("sign_in", "messages"), [("", 2), (one_cluster.ENTRA, 4)])
def test_a_new_cluster_takes_a_message_for_each_wait_and_none_for_each_step(
    sign_in: str, messages: int
) -> None:
    """It waits for Azure, for the definitions of Flux and for its first reconciliation.

    With local accounts, the worker that has the kubeconfig stays for the last two.
    """
    cloud = MemoryCloud()
    taken = deliveries(cloud)
    push(cloud, one_cluster.files(sign_in))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert taken["changes"] == messages


def test_no_step_follows_when_its_lease_could_outlast_half_of_the_function_timeout() -> None:
    cloud = one_step_a_message(MemoryCloud())
    taken = deliveries(cloud)
    push(cloud, fleet_files.fleet("one"))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert taken["changes"] > len(Step.__members__) / 2


def test_a_removal_that_is_accepted_between_two_steps_ends_the_message() -> None:
    cloud = MemoryCloud()
    state = cloud.state

    def save(changed: ClusterRecord) -> ClusterRecord:
        saved = state.save(changed)
        if saved.job.step.name is Step.CLUSTER and saved.job.lease is not None and not saved.deleting:
            state.save(accept_delete(saved, commit="c" * 40, now=cloud.clock()))
        return saved

    changing: Any = Around(state, save=save)
    cloud.with_ports(lambda ports: replace(ports, state=changing))
    push(cloud, fleet_files.fleet("one"))
    while not (found := cloud.state.cluster("one")) or not found.deleting:
        if not cloud.step():
            cloud.clock.advance(1)
            cloud.azure.complete_due()
    assert (found.generation, found.job.step.name, found.job.lease) == (2, Step.TOMBSTONE, None)
    assert cloud.broker.counts("deletes").active == 1


def test_a_creation_is_read_soon_after_its_write_and_then_not_before_it_can_have_ended() -> None:
    cloud = MemoryCloud(config=FleetConfig("example", "example/fleet", timing=Timing(poll_seconds=20)))
    cloud.azure.engine.timings = Timings(create_cluster=300)
    azure, written = cloud.ports.azure, list[datetime]()
    reads = list[float]()

    def read(call: GetCluster) -> Json | None:
        found = azure.call(call)
        if found is not None and found["properties"]["provisioningState"] == "Creating":
            reads.append((cloud.clock() - written[0]).total_seconds())
        return found

    def put(call: PutCluster) -> WriteResponse:
        written.append(cloud.clock())
        return azure.call(call)

    on_azure(cloud, GetCluster, read)
    on_azure(cloud, PutCluster, put)
    push(cloud, one_cluster.files())
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    first, second, *others = reads
    assert first < 25
    assert 105 < second < 135
    assert len(others) < 11
