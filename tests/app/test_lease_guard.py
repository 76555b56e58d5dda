"""The lease guard checks every write to Azure and to a cluster, and nothing else."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.access.lease_guard import LeasedRecord, LeaseLost, with_lease_guard
from shared.cluster.failures.errors import Unavailable
from shared.cluster.job import Lease
from shared.cluster.record import ClusterRecord
from shared.cluster.transitions.acceptance import accept_delete
from shared.ports import KubernetesApi, Ports
from shared.ports.azure import AzureCall, DeleteCluster, DeleteGroup, ListResources, PutGroup
from shared.resource_ids import ClusterId, GroupId
from tests.support.azure_operations import OPERATIONS
from tests.support.cluster_records import record
from tests.support.replaced_ports import around

pytestmark = pytest.mark.lives


def reads(kind: type[AzureCall[Any]]) -> bool:
    """Return whether an operation reads, by its request or by the name of its method in the library."""
    if kind.request is not None:
        return kind.request.verb in ("GET", "LIST", "QUERY", "POST")
    return kind.sdk.rpartition(".")[2].startswith(("get", "list"))


READS = {
    *(kind.name for kind in OPERATIONS if reads(kind)),
    *("server", "check", "get", "list", "page", "metric", "certificates"),
}
"""The operations of Azure that read, and those of Kubernetes."""
GROUP = GroupId("subscription", "rg")


class RecordedCalls:
    """Azure and the Kubernetes API of a cluster, which only record the calls."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def call(self, operation: AzureCall[Any]) -> Any:
        self.calls.append(operation.name)

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_, **__: self.calls.append(name)


class Connected:
    """Connects to the one API whose calls are recorded."""

    def __init__(self, api: Any) -> None:
        self._api = api

    def connect(self, _: object, **__: object) -> Any:
        return self._api


def leased(seconds: float, cloud: MemoryCloud | None = None) -> tuple[Ports, RecordedCalls]:
    """Return ports guarded for a record whose lease lasts so many seconds, and the port behind the guard."""
    cloud, port = cloud or MemoryCloud(), RecordedCalls()
    outside: dict[str, Any] = {"azure": port, "kubernetes": Connected(port)}
    lease = Lease("worker", cloud.clock() + timedelta(seconds=seconds), cloud.clock())
    ports = replace(cloud.ports, **outside)
    mine = LeasedRecord(replace(record(lease=lease), etag=""), ports)
    mine.secure()
    return with_lease_guard(mine, ports), port


def remove(cloud: MemoryCloud) -> None:
    """Accept a removal of the cluster."""
    (mine,) = cloud.state.clusters()
    cloud.state.save(accept_delete(mine, commit="c", now=cloud.clock()))


def do_azure(kind: type[AzureCall[Any]]) -> Callable[[Ports], object]:
    """Return the call of an operation with something in each of its fields."""
    given: dict[str, Any] = {field.name: "a" for field in fields(kind)}
    return lambda ports: ports.azure.call(kind(**given | {"target": GROUP}))


def do_kubernetes(name: str) -> Callable[[Ports], object]:
    """Return the call of a method of the Kubernetes API with something for each of its parameters."""

    def do(ports: Ports) -> object:
        method: Callable[..., object] = getattr(ports.kubernetes.connect(ClusterId("s", "g", "c")), name)
        return method(**dict.fromkeys(inspect.signature(method).parameters))

    return do


CALLS = [(kind.name, do_azure(kind)) for kind in OPERATIONS]
CALLS += [(name, do_kubernetes(name)) for name in vars(KubernetesApi) if not name.startswith("_")]


@pytest.mark.parametrize(("name", "do"), CALLS)
def test_a_worker_whose_lease_has_nearly_ended_may_read_and_not_write(
    name: str, do: Callable[[Ports], object]
) -> None:
    ports, noted = leased(1)
    if name in READS:
        do(ports)
        assert noted.calls == [name]
        return
    with pytest.raises(LeaseLost):
        do(ports)
    assert noted.calls == []


@pytest.mark.parametrize(("name", "do"), CALLS)
def test_a_worker_with_its_lease_may_do_everything(name: str, do: Callable[[Ports], object]) -> None:
    ports, noted = leased(20)
    do(ports)
    assert noted.calls == [name]


def test_nothing_is_written_after_a_removal_was_accepted() -> None:
    cloud = MemoryCloud()
    ports, port = leased(20, cloud)
    remove(cloud)
    with pytest.raises(LeaseLost, match="newer commit"):
        ports.azure.call(PutGroup(GROUP, {}))
    assert port.calls == []


def test_nothing_is_written_after_a_slow_read_of_the_record() -> None:
    cloud = MemoryCloud()
    read = cloud.ports.state.cluster

    def slow(name: str) -> ClusterRecord | None:
        current = read(name)
        cloud.clock.advance(5)
        remove(cloud)
        return current

    around(cloud, "state", cluster=slow)
    ports, port = leased(90, cloud)
    with pytest.raises(Unavailable, match="the read of the record is 5 s old"):
        ports.azure.call(PutGroup(GROUP, {}))
    assert port.calls == []


def test_a_clock_that_is_set_back_during_a_slow_read_does_not_make_it_fresh() -> None:
    cloud = MemoryCloud()
    read, wrong = cloud.ports.state.cluster, timedelta()

    def slow(name: str) -> ClusterRecord | None:
        nonlocal wrong
        current = read(name)
        cloud.clock.advance(5)
        wrong = timedelta(hours=-1)
        remove(cloud)
        return current

    around(cloud, "state", cluster=slow)
    cloud.with_ports(lambda ports: replace(ports, clock=lambda: cloud.clock() + wrong))
    ports, port = leased(90, cloud)
    with pytest.raises(Unavailable, match="the read of the record is 5 s old"):
        ports.azure.call(PutGroup(GROUP, {}))
    assert port.calls == []


def test_a_lease_ends_in_time_although_the_clock_was_set_back() -> None:
    cloud = MemoryCloud()
    wrong = timedelta()
    cloud.with_ports(lambda ports: replace(ports, clock=lambda: cloud.clock() + wrong))
    ports, port = leased(90, cloud)
    cloud.clock.advance(80)
    wrong = timedelta(hours=-1)
    with pytest.raises(LeaseLost, match="nearly ended"):
        ports.azure.call(PutGroup(GROUP, {}))
    assert port.calls == []


def test_no_group_is_deleted_long_after_its_content_was_read() -> None:
    cloud = MemoryCloud()
    ports, port = leased(90, cloud)
    ports.azure.call(ListResources(GROUP))
    cloud.clock.advance(5)
    with pytest.raises(Unavailable, match="the read of list_resources rg is 5 s old"):
        ports.azure.call(DeleteGroup(GROUP))
    assert port.calls == ["list_resources"]
    ports.azure.call(ListResources(GROUP))
    ports.azure.call(DeleteGroup(GROUP))
    assert port.calls[1:] == ["list_resources", "delete_group"]


def test_nothing_is_written_long_after_the_head_was_read_on_which_the_step_relies() -> None:
    cloud = MemoryCloud()
    cloud.repository.push({"fleet.yaml": b""})
    cloud.with_ports(
        lambda ports: replace(
            ports, config=replace(ports.config, timing=replace(ports.config.timing, lease_seconds=90))
        )
    )
    ports, port = leased(90, cloud)
    ports.git_host.read_head("main")
    ports.kubernetes.connect(ClusterId("s", "g", "c")).delete({})
    cloud.clock.advance(31)
    with pytest.raises(Unavailable, match="the read of the head is 31 s old"):
        ports.kubernetes.connect(ClusterId("s", "g", "c")).delete({})
    with pytest.raises(Unavailable, match="the read of the head is 31 s old"):
        ports.azure.call(DeleteCluster(ClusterId("s", "g", "c"), etag="1"))
    assert port.calls == ["delete"]
    ports.git_host.read_head("main")
    ports.azure.call(DeleteCluster(ClusterId("s", "g", "c"), etag="1"))
    assert port.calls[1:] == ["delete_cluster"]
