"""The fence stands before every write to Azure and to a cluster, and before nothing else."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.fleet.resource_ids import ClusterId
from shared.jobs.errors import Unavailable
from shared.jobs.record import ClusterRecord, Lease, accept_delete
from shared.pipeline.worker.lease_guard import LeaseLost, with_lease_guard
from shared.ports import KubernetesApi, ManagedClusters, Ports, ResourceGroups
from tests.jobs.rows import record
from tests.pipeline.around import around

READS = {"get", "resources", "kubeconfig", "upgrade_profile", "versions", "maintenance", "check", "list"}


class Noted:
    """A port that only notes which of its methods were called."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Callable[..., str]:
        def call(*_: object, **__: object) -> str:
            self.calls.append(name)
            return "an-id"

        return call


class Connected:
    """Leads to the one API that is noted."""

    def __init__(self, api: Any) -> None:
        self._api = api

    def connect(self, _: object, **__: object) -> Any:
        return self._api


def behind(port: Noted) -> dict[str, Any]:
    """Return the ports behind the fence."""
    return {"groups": port, "aks": port, "kubernetes": Connected(port)}


def port_of(ports: Ports, name: str) -> object:
    """Return a port by its name; "api" is the Kubernetes API of a cluster."""
    if name == "api":
        return ports.kubernetes.connect(ClusterId("s", "g", "c"))
    found: object = getattr(ports, name)
    return found


def leased(seconds: float, cloud: MemoryCloud | None = None) -> tuple[Ports, Noted]:
    """Return ports fenced for a row whose claim lasts so many seconds, and the port behind the fence."""
    cloud, port = cloud or MemoryCloud(), Noted()
    lease = Lease("worker", cloud.clock() + timedelta(seconds=seconds))
    mine = cloud.state.save(replace(record(lease=lease), etag=""))
    return with_lease_guard(mine, replace(cloud.ports, **behind(port))), port


def remove(cloud: MemoryCloud) -> None:
    """Accept a removal of the row."""
    (mine,) = cloud.state.clusters()
    cloud.state.save(accept_delete(mine, commit="c", now=cloud.clock()))


def call(port: object, name: str) -> object:
    """Call a method of a port with something for each of its parameters."""
    method: Callable[..., object] = getattr(port, name)
    parameters = inspect.signature(method).parameters.values()
    given = {parameter.name: None for parameter in parameters}
    return method(**given)


METHODS = [
    (port, name)
    for port, protocol in (("groups", ResourceGroups), ("aks", ManagedClusters), ("api", KubernetesApi))
    for name in vars(protocol)
    if not name.startswith("_")
]


@pytest.mark.parametrize(("port", "name"), METHODS)
def test_a_worker_whose_claim_has_nearly_ended_may_look_and_not_write(port: str, name: str) -> None:
    ports, noted = leased(1)
    if name in READS:
        call(port_of(ports, port), name)
        assert noted.calls == [name]
        return
    with pytest.raises(LeaseLost):
        call(port_of(ports, port), name)
    assert noted.calls == []


@pytest.mark.parametrize(("port", "name"), METHODS)
def test_a_worker_that_holds_its_claim_may_do_everything(port: str, name: str) -> None:
    ports, noted = leased(20)
    call(port_of(ports, port), name)
    assert noted.calls == [name]


def test_nothing_is_written_any_more_once_a_removal_was_accepted() -> None:
    cloud = MemoryCloud()
    ports, port = leased(20, cloud)
    remove(cloud)
    with pytest.raises(LeaseLost, match="newer commit"):
        ports.groups.put("subscription", "rg", {})
    assert port.calls == []


def test_nothing_is_written_after_a_look_at_the_row_that_took_long() -> None:
    cloud = MemoryCloud()
    look = cloud.ports.state.cluster

    def slow(name: str) -> ClusterRecord | None:
        seen = look(name)
        cloud.clock.advance(5)
        remove(cloud)
        return seen

    around(cloud, "state", cluster=slow)
    ports, port = leased(90, cloud)
    with pytest.raises(Unavailable, match="the look at the row is 5 s old"):
        ports.groups.put("subscription", "rg", {})
    assert port.calls == []


def test_no_group_is_deleted_long_after_the_look_into_it() -> None:
    cloud = MemoryCloud()
    ports, port = leased(90, cloud)
    ports.groups.resources("subscription", "rg")
    cloud.clock.advance(5)
    with pytest.raises(Unavailable, match="what is in rg is 5 s old"):
        ports.groups.delete("subscription", "rg")
    assert port.calls == ["resources"]
    ports.groups.resources("subscription", "rg")
    ports.groups.delete("subscription", "rg")
    assert port.calls[1:] == ["resources", "delete"]
