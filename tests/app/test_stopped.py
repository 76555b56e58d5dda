"""Clusters that an operator stops in Azure during a job."""

from __future__ import annotations

import pytest

from localcloud.azure.world.arm_errors import ArmError
from localcloud.memory.memory_cloud import MemoryCloud
from shared.azure.rate_limits import ARM_WRITE
from shared.cluster.job import Delay
from shared.cluster.recipes import Step
from shared.cluster.record import Phase
from tests.support.limited_clusters import without_tokens
from tests.support.one_cluster import ONE, advice, files, ready, record
from tests.support.pipeline_runs import one_step_a_message, phases, push, status


@pytest.mark.parametrize("step", [Step.ACCESS, Step.FLUX_COMPONENTS, Step.FLUX_SYNC, Step.VERIFY])
def test_a_cluster_stopped_during_the_flux_steps_waits_for_its_start(step: Step) -> None:
    cloud = one_step_a_message(MemoryCloud())
    push(cloud, files())
    while (current := cloud.state.cluster("one")) is None or current.job.step.name != step:
        if not cloud.step():
            cloud.clock.advance(1)
            cloud.azure.complete_due()
    cloud.azure.interventions.stop(ONE)
    cloud.run(seconds=4 * 3600)
    assert (record(cloud).phase, record(cloud).job.attempts) == (Phase.PROVISIONING, 0)
    assert "the cluster is stopped" in record(cloud).job.reason
    cloud.azure.interventions.start(ONE)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}


def test_a_stopped_cluster_is_no_failure_and_why_says_to_start_it() -> None:
    cloud = ready()
    cloud.azure.interventions.stop(ONE)
    commit = push(cloud, files("  tags: {a: b}\n"))
    cloud.run(seconds=4 * 3600)
    assert record(cloud).phase is Phase.UPDATING
    assert advice(cloud).startswith("Start the cluster with `az aks start`")
    description = "0 of 1 clusters in sync; one: the cluster is stopped; Azure allows nothing but a start"
    assert status(cloud, commit) == ("pending", description)
    assert [plan_record.settled for plan_record in cloud.state.open_plans()] == [True]
    cloud.azure.interventions.start(ONE)
    cloud.run()
    assert status(cloud, commit)[0] == "success"
    assert advice(cloud) == ""


def test_azure_stops_no_cluster_during_an_operation() -> None:
    cloud = MemoryCloud()
    push(cloud, files())
    while not cloud.azure.ids():
        cloud.step()
    with pytest.raises(ArmError, match="in progress"):
        cloud.azure.interventions.stop(ONE)


def test_a_cluster_that_was_started_is_not_called_stopped_while_its_write_waits_for_a_token() -> None:
    cloud = ready()
    cloud.azure.interventions.stop(ONE)
    push(cloud, files("  tags: {a: b}\n"))
    cloud.run(seconds=600, until=lambda: record(cloud).needs_action)
    assert record(cloud).needs_action
    cloud.azure.interventions.start(ONE)
    without_tokens(cloud, ARM_WRITE)
    cloud.run(seconds=600, until=lambda: record(cloud).job.next_run.delay is Delay.RATE_LIMIT)
    assert record(cloud).job.reason.startswith("waits for Azure's write limit")
    assert not record(cloud).needs_action
