"""A cluster outside Azure over real sockets: the real Kubernetes client, and a kubeconfig of its owner."""

from __future__ import annotations

import base64
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
import yaml

from localcloud.common.certificates import Authority
from localcloud.common.clock import ManualClock
from localcloud.kubernetes.wire.kubernetes_servers import KubernetesPlane
from localcloud.kubernetes.world.kubernetes_clusters import outside
from shared.adapters.kubernetes import KubernetesConnections
from shared.cluster.failures.errors import Conflict, InvalidKubeconfig, Unauthenticated, Unavailable
from shared.kubernetes.kubeconfig import OWNER_MAP, Kubeconfig, owner_map, read_kubeconfig
from shared.reachable_addresses import networks_of
from shared.resource_ids import ClusterId

HARBOUR = ClusterId("", "", "harbour")
TOKEN = "a-token-of-the-owner-of-harbour"
LOOPBACK = networks_of("127.0.0.0/8")


@pytest.fixture(scope="module")
def plane() -> Iterator[KubernetesPlane]:
    with KubernetesPlane(Authority(), accepts_token=lambda token: token == TOKEN) as served:
        served.start_outside("harbour")
        served.set_entra(outside("harbour"), on=True)
        yield served


@pytest.fixture
def kubeconfig(plane: KubernetesPlane) -> Kubeconfig:
    return read_kubeconfig(plane.kubeconfig(outside("harbour")))


def no_kubeconfig_of_azure(cluster: ClusterId) -> str:
    raise AssertionError(f"Azure is not asked about {cluster.name}")


def no_token(scope: str) -> str:
    raise AssertionError(f"no token of the app for {scope} goes to a cluster outside Azure")


Opens = Callable[..., KubernetesConnections]


@pytest.fixture
def opens() -> Iterator[Opens]:
    opened: list[KubernetesConnections] = []

    def begin(networks: str = "127.0.0.0/8") -> KubernetesConnections:
        clock, allowed = ManualClock(), networks_of(networks)
        opened.append(
            KubernetesConnections(no_kubeconfig_of_azure, aad_token=no_token, clock=clock, networks=allowed)
        )
        return opened[-1]

    yield begin
    for call in opened:
        call.close()


def test_a_client_certificate_of_a_kubeconfig_enters(opens: Opens, kubeconfig: Kubeconfig) -> None:
    api = opens().open(HARBOUR, kubeconfig)
    api.check()
    assert api.server() is None
    assert [document["metadata"]["name"] for document in api.list("v1", "Node")] == [
        "harbour-1",
        "harbour-2",
        "harbour-3",
    ]


def test_a_token_of_a_kubeconfig_enters_and_another_one_does_not(
    opens: Opens, kubeconfig: Kubeconfig
) -> None:
    with_token = replace(kubeconfig, certificate=b"", key=b"", token=TOKEN)
    opens().open(HARBOUR, with_token).check()
    with pytest.raises(Unauthenticated) as refused:
        opens().open(HARBOUR, replace(with_token, token="a-token-of-nobody")).check()
    assert "a-token-of-nobody" not in str(refused.value)


def test_a_connection_is_used_again_only_with_the_same_kubeconfig(
    opens: Opens, kubeconfig: Kubeconfig
) -> None:
    connections = opens()
    first = connections.open(HARBOUR, kubeconfig)
    assert connections.open(HARBOUR, replace(kubeconfig)) is first
    renewed = connections.open(HARBOUR, replace(kubeconfig, certificate=b"", key=b"", token=TOKEN))
    assert renewed is not first
    renewed.check()


def test_an_object_is_created_once(opens: Opens, kubeconfig: Kubeconfig) -> None:
    api = opens().open(HARBOUR, kubeconfig)
    created = api.create(owner_map({"roadstead-fleet": "example"}))
    assert created["metadata"]["uid"]
    with pytest.raises(Conflict):
        api.create(owner_map({"roadstead-fleet": "another"}))
    found = api.get(OWNER_MAP)
    assert found is not None
    assert found["data"] == {"roadstead-fleet": "example"}


def test_nothing_is_sent_to_an_address_outside_the_networks_of_the_app(
    kubeconfig: Kubeconfig, opens: Opens
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        elsewhere = replace(kubeconfig, url=f"https://localhost:{listener.getsockname()[1]}", token=TOKEN)
        for networks, why in (("10.0.0.0/8", "in none of its networks"), ("", "machine, link or platform")):
            with pytest.raises(InvalidKubeconfig, match=why):
                opens(networks).open(HARBOUR, elsewhere).check()
        listener.settimeout(5)
        for _ in range(2):
            reached, _ = listener.accept()
            with reached:
                reached.settimeout(5)
                assert reached.recv(1) == b"", "not even a handshake begins"


def test_a_server_that_another_authority_proves_gets_no_credential(
    opens: Opens, kubeconfig: Kubeconfig
) -> None:
    with pytest.raises(Unavailable, match="SSL"):
        opens().open(HARBOUR, replace(kubeconfig, ca=Authority().pem, token=TOKEN)).check()


def test_an_address_that_nobody_serves_is_unavailable(opens: Opens, kubeconfig: Kubeconfig) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(Unavailable):
        opens().open(HARBOUR, replace(kubeconfig, url=f"https://127.0.0.1:{port}")).check()


def test_a_certificate_that_is_none_is_refused_without_its_content(
    opens: Opens, kubeconfig: Kubeconfig
) -> None:
    broken = b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
    with pytest.raises(Unauthenticated, match="the certificates in the kubeconfig of harbour are invalid"):
        opens().open(HARBOUR, replace(kubeconfig, ca=broken))


def test_the_kubeconfig_of_a_real_tool_is_read(plane: KubernetesPlane) -> None:
    """Kubectl's own form has fields of its client with what is read."""
    content = yaml.safe_load(plane.kubeconfig(outside("harbour")))
    content["preferences"] = {"colors": True}
    content["clusters"][0]["cluster"]["disable-compression"] = True
    content["contexts"][0]["context"]["namespace"] = "default"
    content["contexts"].append({"name": "other", "context": {"cluster": "other", "user": "other"}})
    content["users"].append({"name": "other", "user": {"exec": {"command": "aws"}}})
    found = read_kubeconfig(yaml.safe_dump(content))
    assert found.ca == base64.b64decode(content["clusters"][0]["cluster"]["certificate-authority-data"])
