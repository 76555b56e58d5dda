"""How a caller gets into a cluster: a kubeconfig, or a known API server and a token of Entra ID."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest

from localcloud.azure.world.clusters.credentials import given_kubeconfig
from localcloud.common.certificates import Authority
from localcloud.common.clock import ManualClock
from localcloud.common.control_plane import ControlPlane
from localcloud.kubernetes.wire.kubernetes_servers import KubernetesPlane
from localcloud.kubernetes.world.kubernetes_clusters import KubernetesClusters
from localcloud.memory.connections import Connections
from shared.adapters.kubernetes import KubernetesConnections
from shared.cluster.failures.errors import Unauthenticated, Unavailable
from shared.kubernetes.kubeconfig import ApiServer
from shared.ports import Kubernetes
from shared.resource_ids import ClusterId
from tests.support.kubernetes_ports import CLUSTER

WITH_ENTRA = {"aadProfile": {"managed": True}}


@dataclass
class Entrance:
    """One implementation: its control plane, new processes, and how many kubeconfigs they fetched."""

    plane: ControlPlane
    process: Callable[[Callable[[ClusterId], str]], Kubernetes]
    config: str = ""
    entra: bool = True
    fetched: int = 0

    def create(self) -> None:
        """Create the cluster, or create it again."""
        self.plane.stop(CLUSTER)
        self.config = self.plane.start(CLUSTER, [])
        self.plane.set_entra(CLUSTER, on=self.entra)

    def new_process(self) -> Kubernetes:
        """Return the port of a process without a connection."""
        return self.process(self._kubeconfig)

    def known(self) -> ApiServer:
        """Return what a first process learns of the API server."""
        found = self.new_process().connect(CLUSTER).server()
        assert found is not None
        self.fetched = 0
        return found

    def _kubeconfig(self, _: ClusterId) -> str:
        self.fetched += 1
        return given_kubeconfig(self.config, WITH_ENTRA if self.entra else {}, "user")


@pytest.fixture(params=["world", "adapter"])
def entrance(request: pytest.FixtureRequest) -> Iterator[Entrance]:
    clock = ManualClock()
    if request.param == "world":
        fleet = KubernetesClusters(clock)
        made = Entrance(fleet, lambda fetch: Connections(fleet, fetch, clock))
        made.create()
        yield made
        return
    plane: KubernetesPlane = request.getfixturevalue("plane")
    opened: list[KubernetesConnections] = []

    def process(fetch: Callable[[ClusterId], str]) -> Kubernetes:
        opened.append(KubernetesConnections(fetch, aad_token=lambda _: "a-token", clock=clock))
        return opened[-1]

    made = Entrance(plane, process)
    made.create()
    yield made
    for connections in opened:
        connections.close()
    plane.stop(CLUSTER)


def test_a_known_server_needs_no_kubeconfig(entrance: Entrance) -> None:
    known = entrance.known()
    api = entrance.new_process().connect(CLUSTER, known=known)
    api.check()
    assert (api.server(), entrance.fetched) == (known, 0)


def test_the_certificate_of_a_local_account_is_not_known_to_others(entrance: Entrance) -> None:
    entrance.entra = False
    entrance.create()
    api = entrance.new_process().connect(CLUSTER)
    api.check()
    assert (api.server(), entrance.fetched) == (None, 1)


def test_a_token_opens_no_cluster_without_entra_id(entrance: Entrance) -> None:
    known = entrance.known()
    entrance.plane.set_entra(CLUSTER, on=False)
    with pytest.raises(Unauthenticated) as refused:
        entrance.new_process().connect(CLUSTER, known=known).check()
    assert refused.value.code == "Unauthorized"


def of_another_authority(known: ApiServer) -> ApiServer:
    return replace(known, ca=Authority().pem.decode())


def at_another_address(known: ApiServer) -> ApiServer:
    return replace(known, url="https://nowhere.invalid:443")


@pytest.mark.parametrize("wrong", [of_another_authority, at_another_address])
def test_what_is_known_wrongly_is_an_error_and_the_next_connection_can_fetch(
    entrance: Entrance, wrong: Callable[[ApiServer], ApiServer]
) -> None:
    known, process = entrance.known(), entrance.new_process()
    with pytest.raises(Unavailable):
        process.connect(CLUSTER, known=wrong(known)).check()
    assert entrance.fetched == 0
    process.connect(CLUSTER).check()
    assert entrance.fetched == 1
