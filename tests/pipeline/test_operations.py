"""Operations that Azure accepts and that fail later: reported by class, with their request ids."""

from __future__ import annotations

from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.jobs.errors import Unavailable
from shared.jobs.job import Failure
from shared.jobs.record import Phase
from shared.ports.azure import PutCluster, PutMaintenance, PutPool, Write, Written
from tests.support import fleet_files
from tests.support.one_cluster import ONE, WINDOW, files, pool, ready, record
from tests.support.pipeline_runs import accepted, phases, push
from tests.support.replaced_ports import around, on_azure, overtake

SLOW = 86_400.0
TWO_WINDOWS = WINDOW + WINDOW.partition("\n")[2].replace("AutoUpgrade", "NodeOSUpgrade")


def failed(cloud: MemoryCloud) -> Failure:
    """Return the failure of the job."""
    assert phases(cloud) == {"one": Phase.FAILED}
    failure = record(cloud).job.step.failure
    assert failure is not None
    return failure


def doomed(cloud: MemoryCloud, kind: type[Write], code: str, *, times: int | None = None) -> list[str]:
    """Let the next operations that a write begins fail; return the ids of those writes, as they come."""
    azure, ids = cloud.ports.azure, list[str]()

    def put(write: Write) -> Written:
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


def test_an_exceeded_quota_is_reported_with_its_request_id_and_not_retried() -> None:
    cloud = ready()
    ids = doomed(cloud, PutPool, "QuotaExceeded")
    push(cloud, files(pool()))
    cloud.run(SLOW)
    failure = failed(cloud)
    assert (failure.kind, failure.request_id, len(ids)) == ("QuotaExceeded", ids[0], 1)
    assert cloud.state.events("one", 1)[0].request_ids == (ids[0],)


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

    def overtaken(write: PutCluster) -> Written:
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


def test_a_write_before_one_that_a_newer_commit_prevents_is_an_event() -> None:
    cloud = MemoryCloud(throttle=False)
    azure, ids = cloud.ports.azure, list[str]()

    def overtaken(write: PutMaintenance) -> Written:
        written = azure.call(write)
        ids.append(written.request_id)
        if len(ids) == 1:
            overtake(cloud, fleet_files.fleet() | files(f"{TWO_WINDOWS}  tags: {{a: b}}\n"))
        return written

    on_azure(cloud, PutMaintenance, overtaken)
    push(cloud, files(TWO_WINDOWS))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    (event,) = [event for event in cloud.state.events("one", 100) if ids[0] in event.request_ids]
    assert (event.generation, event.step, event.reason) == (1, "maintenance-windows", "Superseded")


def test_a_failure_that_could_not_be_reported_at_once_is_reported_later() -> None:
    cloud = MemoryCloud()
    cloud.azure.interventions.fail_next("one", "QuotaExceeded", "no vCPUs are left")
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
