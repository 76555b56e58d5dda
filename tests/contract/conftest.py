"""All implementations of a port: the world in memory, and the adapter over the wire."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from localcloud.azure.wire.arm_server import ArmServer
from localcloud.azure.world.azure_ports import WorldAzure
from localcloud.azure.world.azure_world import AzureWorld
from localcloud.common.certificates import Authority
from localcloud.common.clock import ManualClock, system_clock
from localcloud.common.control_plane import NullPlane
from localcloud.kubernetes.wire.kubernetes_servers import KubernetesPlane
from localcloud.kubernetes.world.kubernetes_clusters import KubernetesClusters
from localcloud.memory.connections import Connections
from localcloud.tables.memory_state import MemoryState
from shared.adapters.arm import ArmAzure
from shared.adapters.kubernetes import KubernetesConnections
from shared.adapters.tables import storage_tables
from shared.ports import State
from tests.support.azure_ports import Azure, StaticCredential
from tests.support.azurite import connect, running
from tests.support.damaged_records import Tables
from tests.support.git_hosts import HOSTS, Case, git_host_case
from tests.support.kubernetes_ports import CLUSTER, NOWHERE, Setting
from tests.support.receivers import Inbox, https_inbox
from tests.support.unreadable_records import Stored


@pytest.fixture(params=["world", "adapter"])
def azure(
    request: pytest.FixtureRequest, authority: tuple[Authority, Path], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Azure]:
    clock, plane = ManualClock(), NullPlane()
    world = AzureWorld(clock, plane=plane)
    if request.param == "world":
        yield Azure(WorldAzure(world), world, plane, clock)
        return
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(authority[1]))
    with ArmServer(world, authority[0], accepts=lambda token: token == "a-token") as server:
        adapter = ArmAzure(StaticCredential(), base_url=server.url)
        yield Azure(adapter, world, plane, clock)
        adapter.close()


@pytest.fixture
def inbox(trusted: Authority) -> Iterator[Inbox]:
    with https_inbox(trusted) as inbox:
        yield inbox


@pytest.fixture(scope="module")
def plane() -> Iterator[KubernetesPlane]:
    with KubernetesPlane(Authority(), accepts_token=lambda token: token == "a-token") as running:
        yield running


def _in_memory() -> Setting:
    clock = ManualClock()
    fleet = KubernetesClusters(clock)
    configs = {CLUSTER: fleet.start(CLUSTER, []), NOWHERE: fleet.start(NOWHERE, [])}
    fleet.stop(NOWHERE)
    world = fleet.world(CLUSTER)
    assert world is not None
    connections = Connections(fleet, configs.__getitem__, clock)
    return Setting(connections, world, lambda: clock.advance(1), lambda on: fleet.set_power(CLUSTER, on=on))


@pytest.fixture(params=["world", "adapter"])
def setting(request: pytest.FixtureRequest) -> Iterator[Setting]:
    if request.param == "world":
        yield _in_memory()
        return
    plane: KubernetesPlane = request.getfixturevalue("plane")
    configs = {CLUSTER: plane.start(CLUSTER, []), NOWHERE: plane.start(NOWHERE, [])}
    plane.stop(NOWHERE)
    connections = KubernetesConnections(configs.__getitem__, aad_token=None, clock=system_clock)
    world = plane.clusters.world(CLUSTER)
    assert world is not None
    yield Setting(connections, world, lambda: time.sleep(0.05), lambda on: plane.set_power(CLUSTER, on=on))
    connections.close()
    plane.stop(CLUSTER)


@pytest.fixture(scope="session")
def azurite() -> Iterator[int]:
    with running() as port:
        yield port


@pytest.fixture
def state() -> State:
    """The state of a fleet over tables in memory, which keep the contract of the port."""
    return MemoryState()


@pytest.fixture(params=HOSTS)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Case]:
    """A git host, whose repository has a first commit."""
    with git_host_case(request.param, tmp_path) as served:
        served.git.commit({"a.yaml": b"1\n", "b.yaml": b"1\n"})
        yield served


@pytest.fixture(scope="module")
def trusted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Authority]:
    """A certificate authority that the process trusts, as whoever runs the app sets it."""
    authority, path = Authority(), tmp_path_factory.mktemp("authority") / "ca.pem"
    authority.write(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REQUESTS_CA_BUNDLE", str(path))
        patch.setenv("SSL_CERT_FILE", str(path))
        yield authority


@pytest.fixture
def stored(azurite: int) -> Iterator[Stored]:
    fleet = f"records-{uuid.uuid4().hex[:8]}"
    with connect(azurite) as service:
        yield Stored(fleet, State(storage_tables(service), fleet), Tables(service))
