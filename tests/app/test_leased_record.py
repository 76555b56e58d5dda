"""The lease is saved before the first write, with the outcomes of the steps that only read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from bench.counting import Counted
from localcloud.azure.world.arm_resources import Timings
from localcloud.memory.crashes import Crash
from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.failures.errors import Unauthenticated
from shared.cluster.job import Lease
from shared.cluster.recipes import Step
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.cluster.transitions.acceptance import accept_delete
from shared.ports.azure import GetCluster, GetGroup, PutCluster, PutGroup
from tests.support import fleet_files, one_cluster
from tests.support.one_cluster import ENTRA, ONE
from tests.support.pipeline_runs import accepted, deliver_due, phases, push, step_until
from tests.support.replaced_ports import frozen_before, on_azure


def creating(sign_in: str = "") -> MemoryCloud:
    """Return a cloud in which Azure creates a cluster for minutes; ``sign_in`` is YAML of its spec."""
    cloud = MemoryCloud(throttle=False)
    cloud.azure.engine.timings = Timings(create_cluster=600)
    push(cloud, one_cluster.files(sign_in))
    step_until(cloud, lambda: accepted(cloud)["create", "one"] == 1)
    return cloud


def operations(cloud: MemoryCloud, work: Callable[[], None]) -> Counter[str]:
    """Return the operations on the state that the work needs, without those of token buckets."""
    state: Any = Counted(cloud.state)
    cloud.with_ports(lambda ports: replace(ports, state=state))
    work()
    return Counter({name: count for name, count in state.calls.items() if "bucket" not in name})


def test_a_recheck_of_an_operation_that_continues_is_one_read_and_one_save() -> None:
    cloud = creating()
    deliver_due(cloud, "changes")
    cloud.clock.advance(6)
    assert operations(cloud, lambda: deliver_due(cloud, "changes")) == {"cluster": 1, "save": 1}


def test_steps_that_only_read_are_saved_with_the_lease_of_the_first_one_that_writes() -> None:
    cloud = creating(ENTRA)  # with a token no worker stays for the step that follows
    saved: list[tuple[Step, bool]] = []
    save = cloud.state.save

    def noted(record: ClusterRecord) -> ClusterRecord:
        saved.append((record.job.step.name, record.job.lease is not None))
        return save(record)

    cloud.state.save = noted  # type: ignore[method-assign]
    cloud.run(700, until=lambda: any(step is Step.FLUX_COMPONENTS for step, _ in saved))
    assert [record for record in saved if record != (Step.CLUSTER, False)] == [
        (Step.FLUX_COMPONENTS, True),
        (Step.FLUX_COMPONENTS, False),
    ]
    events = {(event.step, event.reason) for event in cloud.state.events("one", 50)}
    done = (Step.CLUSTER, Step.NODE_POOLS, Step.MAINTENANCE, Step.ACCESS)
    assert {(step, "StepDone") for step in done} <= events


@pytest.mark.parametrize("kind", [PutGroup, PutCluster])
def test_a_worker_that_is_superseded_while_it_reads_writes_nothing(kind: type[PutGroup | PutCluster]) -> None:
    cloud = MemoryCloud()
    reads = GetGroup if kind is PutGroup else GetCluster

    def removed() -> None:
        (record,) = cloud.state.clusters()
        cloud.state.save(accept_delete(record, commit="c" * 40, now=cloud.clock()))

    frozen_before(cloud, reads, removed)
    push(cloud, fleet_files.fleet("one"))
    step_until(cloud, lambda: any(record.deleting for record in cloud.state.clusters()))
    assert accepted(cloud)["create", "one"] == 0
    assert accepted(cloud)["create-group", "rg-one"] == (kind is PutCluster)


def test_a_record_that_was_only_saved_again_meanwhile_gets_another_message() -> None:
    cloud = MemoryCloud()

    def saved_again() -> None:
        cloud.state.save(cloud.state.clusters()[0])

    frozen_before(cloud, GetGroup, saved_again)
    push(cloud, fleet_files.fleet("one"))
    cloud.run(30, until=lambda: phases(cloud) == {"one": Phase.READY})
    assert phases(cloud) == {"one": Phase.READY}


def test_a_late_message_saves_its_lease_first_so_that_the_timer_sees_the_backlog() -> None:
    cloud = creating()
    cloud.clock.advance(60)
    leases: list[Lease | None] = []
    azure = cloud.ports.azure

    def look(read: GetCluster) -> object:
        leases.extend(record.job.lease for record in cloud.state.clusters())
        return azure.call(read)

    on_azure(cloud, GetCluster, look)
    deliver_due(cloud, "changes")
    assert [lease is not None for lease in leases] == [True]


def test_a_group_that_a_worker_created_before_it_died_is_removed_once_azure_answers_again() -> None:
    cloud = MemoryCloud()
    azure = cloud.ports.azure

    def dies(write: PutGroup) -> None:
        azure.call(write)
        raise Crash

    def refused(_: GetGroup) -> None:
        raise Unauthenticated("the credential has expired")

    on_azure(cloud, PutGroup, dies)
    push(cloud, fleet_files.fleet("one"))
    step_until(cloud, lambda: accepted(cloud)["create-group", "rg-one"] == 1)
    on_azure(cloud, GetGroup, refused)
    cloud.run(600)
    push(cloud, fleet_files.fleet())
    cloud.run(200)
    on_azure(cloud, GetGroup, azure.call)
    cloud.run()
    assert phases(cloud) == {}
    assert azure.call(GetGroup(ONE.group)) is None
