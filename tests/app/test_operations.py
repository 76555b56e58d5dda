"""Operations that Azure accepts and that fail later: reported by class, with their request ids."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.why import why_view
from shared.cluster.failures.errors import Unavailable
from shared.cluster.job import Failure
from shared.cluster.record_parts import Phase
from shared.ports.azure import PutCluster, PutPool, Write, WriteResponse
from tests.support import fleet_files
from tests.support.one_cluster import ONE, advice, files, pool, ready, record
from tests.support.pipeline_runs import accepted, phases, push, status
from tests.support.replaced_ports import around, on_azure, overtake

pytestmark = pytest.mark.lives

SLOW = 86_400.0


def failed(cloud: MemoryCloud) -> Failure:
    """Return the failure of the job."""
    assert phases(cloud) == {"one": Phase.FAILED}
    failure = record(cloud).job.step.failure
    assert failure is not None
    return failure


def doomed(cloud: MemoryCloud, kind: type[Write], code: str, *, times: int | None = None) -> list[str]:
    """Let the next operations that a write begins fail; return the ids of those writes, as they come."""
    azure, ids = cloud.ports.azure, list[str]()

    def put(write: Write) -> WriteResponse:
        if times is None or len(ids) < times:
            cloud.azure.interventions.fail_next("one", code, "it went wrong")
        written = azure.call(write)
        ids.append(written.request_id)
        return written

    on_azure(cloud, kind, put)
    return ids


@pytest.mark.parametrize("code", ["InternalOperationError", "ServiceUnavailable", "OperationPreempted"])
def test_a_creation_that_fails_inside_azure_is_repeated(code: str) -> None:
    cloud = MemoryCloud(throttle=False)
    ids = doomed(cloud, PutCluster, code, times=1)
    push(cloud, files())
    cloud.run(SLOW)
    assert phases(cloud) == {"one": Phase.READY}
    warnings = [event for event in cloud.state.events("one", 100) if event.warning]
    assert [(event.reason, event.request_ids) for event in warnings] == [("Retrying", (ids[0],))]
    assert len(ids) == 2


def test_a_node_pool_that_fails_inside_azure_is_repeated() -> None:
    cloud = ready()
    ids = doomed(cloud, PutPool, "InternalServerError", times=2)
    push(cloud, files(pool()))
    cloud.run(SLOW)
    assert phases(cloud) == {"one": Phase.READY}
    assert len(ids) == 3


def test_an_operation_that_always_fails_inside_azure_fails_the_job_with_its_request_id() -> None:
    cloud = MemoryCloud(throttle=False)
    ids = doomed(cloud, PutCluster, "InternalOperationError")
    push(cloud, files())
    cloud.run(SLOW)
    failure = failed(cloud)
    assert (failure.kind, failure.code) == ("Interrupted", "InternalOperationError")
    assert (len(ids), failure.request_id) == (5, ids[-1])


def test_a_value_that_azure_refuses_is_reported_with_its_request_id_and_not_retried() -> None:
    cloud = ready()
    ids = doomed(cloud, PutPool, "InvalidParameter")
    push(cloud, files(pool()))
    cloud.run(SLOW)
    failure = failed(cloud)
    assert (failure.kind, failure.request_id, len(ids)) == ("InvalidManifest", ids[0], 1)
    assert cloud.state.events("one", 1)[0].request_ids == (ids[0],)


@pytest.mark.parametrize(
    ("code", "kind", "counts"),
    [
        ("QuotaExceeded", "QuotaExceeded", 1),
        ("SubnetIsFull", "OutOfAddresses", 1),
        ("NetworkSecurityGroupInUseByVirtualMachineScaleSet", "Obstructed", 3),
    ],
)
def test_what_somebody_else_has_to_change_counts_as_failed_and_is_tried_until_they_have(
    code: str, kind: str, counts: int
) -> None:
    cloud = ready()
    ids = doomed(cloud, PutPool, code, times=30)
    commit = push(cloud, files(pool()))
    cloud.run(until=lambda: len(ids) == counts and record(cloud).refused)
    assert record(cloud).phase is Phase.STALLED
    seen = set[tuple[Phase, bool]]()

    def watched() -> bool:
        seen.add((record(cloud).phase, record(cloud).refused))
        return len(ids) == 30

    cloud.run(2 * 86_400, until=watched)
    assert seen == {(Phase.STALLED, True)}, "it counts as failed also while an attempt is under way"
    failure = record(cloud).job.step.failure
    assert failure is not None
    assert (failure.kind, failure.request_id) == (kind, ids[-2])
    assert status(cloud, commit)[0] == "failure"
    assert "Who acts: " in advice(cloud)
    assert "Roadstead tries again within an hour" in advice(cloud)
    cloud.run(2 * 3600)
    assert phases(cloud) == {"one": Phase.READY}
    assert status(cloud, commit)[0] == "success"


def test_a_drain_that_aks_abandons_is_blocked_and_fails_the_job() -> None:
    cloud = ready(pool())
    ids = doomed(cloud, PutPool, "PodDrainFailure")
    push(cloud, files(pool(count=3)))
    cloud.run(SLOW)
    assert (failed(cloud).kind, len(ids)) == ("Blocked", 1)


def test_a_cancelled_operation_is_reported_as_such_and_not_repeated() -> None:
    cloud = MemoryCloud(throttle=False)
    push(cloud, files())
    cloud.run(until=lambda: bool(cloud.state.clusters()) and bool(record(cloud).job.step.last_write))
    write = record(cloud).job.step.last_write
    assert write is not None
    request = write.request_id
    cloud.azure.interventions.abort(ONE)
    cloud.run(SLOW)
    failure = failed(cloud)
    assert (failure.kind, failure.request_id) == ("Aborted", request)
    assert "the operation was cancelled" in failure.message
    assert accepted(cloud)["create", "one"] == 1


def test_a_write_whose_outcome_a_newer_commit_discarded_is_an_event() -> None:
    cloud = MemoryCloud(throttle=False)
    azure, ids = cloud.ports.azure, list[str]()

    def overtaken(write: PutCluster) -> WriteResponse:
        written = azure.call(write)
        ids.append(written.request_id)
        if len(ids) == 1:
            overtake(cloud, fleet_files.fleet() | files("  tags: {a: b}\n"))
        return written

    on_azure(cloud, PutCluster, overtaken)
    push(cloud, files())
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    events = [event for event in cloud.state.events("one", 100) if ids[0] in event.request_ids]
    assert [(event.generation, event.step, event.reason) for event in events] == [(1, "cluster", "Waiting")]


def test_a_failure_that_could_not_be_reported_at_once_is_reported_later() -> None:
    cloud = MemoryCloud()
    cloud.azure.interventions.fail_next("one", "InvalidParameter", "no vCPUs are left")
    append, refused = cloud.ports.state.append, list[str]()

    def away(events: Any) -> None:
        if any(event.reason == "Failed" for event in events) and not refused:
            refused.append("once")
            raise Unavailable("Table Storage did not answer")
        append(events)

    around(cloud, "state", append=away)
    push(cloud, files())
    cloud.run()
    assert phases(cloud) == {"one": Phase.FAILED}
    assert refused
    assert [event.reason for event in cloud.state.events("one", 100)].count("Failed") == 1


def test_a_region_without_room_is_tried_again_until_it_has_some() -> None:
    cloud = ready()
    ids = doomed(cloud, PutPool, "ZonalAllocationFailed", times=3)
    began = cloud.clock()
    push(cloud, files(pool()))
    cloud.run(SLOW)
    assert phases(cloud) == {"one": Phase.READY}
    assert len(ids) == 4
    assert cloud.clock() - began > timedelta(minutes=30)


def test_a_region_without_room_for_half_a_day_fails_the_job_and_is_not_called_a_quota() -> None:
    cloud = MemoryCloud(throttle=False)
    ids = doomed(cloud, PutCluster, "AksCapacityHeavyUsage")
    push(cloud, files())
    cloud.run(SLOW)
    failure = failed(cloud)
    assert (failure.kind, failure.code, len(ids)) == ("OutOfCapacity", "AksCapacityHeavyUsage", 12)
    assert "quota" not in advice(cloud).lower()


def test_an_unknown_code_is_tried_again_slowly_and_then_counts_as_failed() -> None:
    cloud = MemoryCloud(throttle=False)
    ids = doomed(cloud, PutCluster, "NobodyKnowsThis")
    push(cloud, files())
    cloud.run(SLOW)
    failure = failed(cloud)
    assert (failure.kind, failure.code, failure.entry, len(ids)) == ("Unexplained", "NobodyKnowsThis", "", 5)
    view = why_view("one", cloud.ports)
    assert view is not None
    assert view["lastError"] is not None
    assert view["doing"].index("it went wrong") > 0
    assert "Roadstead does not know" in view["lastError"]["meaning"]
    assert "manifest" not in view["suggestedAction"]


def test_a_delete_that_a_subnet_in_use_blocks_goes_on_once_it_is_free() -> None:
    cloud = ready()
    cloud.azure.interventions.fail_next("one", "InUseSubnetCannotBeDeleted")
    push(cloud, fleet_files.fleet())
    cloud.run(until=lambda: record(cloud).job.step.failure is not None)
    failure = record(cloud).job.step.failure
    assert failure is not None
    assert (failure.kind, failure.entry) == ("Obstructed", "network/InUseSubnetCannotBeDeleted")
    assert "Remove what the message names from the subnet" in advice(cloud)
    assert "the network team" in advice(cloud)
    cloud.run(SLOW)
    assert phases(cloud) == {}


def test_a_network_that_is_busy_is_tried_again_within_minutes() -> None:
    cloud = MemoryCloud(throttle=False)
    cloud.azure.interventions.fail_next("one", "VirtualNetworkNotInSucceededState")
    push(cloud, files())
    cloud.run(SLOW)
    assert phases(cloud) == {"one": Phase.READY}


def test_a_role_that_is_not_effective_yet_is_waited_for_and_the_advice_names_it() -> None:
    cloud = MemoryCloud(throttle=False)
    cloud.azure.interventions.fail_next("one", "LinkedAuthorizationFailed")
    push(cloud, files())
    cloud.run(until=lambda: bool(cloud.state.clusters()) and record(cloud).job.step.failure is not None)
    assert "Microsoft.Network/ddosProtectionPlans/join/action" in advice(cloud)
    assert "to o-1" in advice(cloud)
    cloud.run(SLOW)
    assert phases(cloud) == {"one": Phase.READY}


def test_an_upgrade_that_a_disruption_budget_stops_is_blocked() -> None:
    cloud = ready()
    azure = cloud.ports.azure
    text = (
        "Eviction failed. Original error: Cannot evict pod as it would violate the pod's disruption budget."
    )

    def stopped(write: PutPool) -> WriteResponse:
        cloud.azure.interventions.fail_next("one", "UpgradeFailed", text)
        return azure.call(write)

    on_azure(cloud, PutPool, stopped)
    push(cloud, files(pool()))
    cloud.run(SLOW)
    failure = failed(cloud)
    assert (failure.kind, failure.code) == ("Blocked", "UpgradeFailed")
