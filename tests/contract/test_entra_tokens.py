"""The token of the app at an API server, over the wire: azure-identity, the adapter and the server."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import jwt
import pytest
from azure.identity import DefaultAzureCredential

from localcloud.azure.wire.identity_server import ISSUER, IdentityServer
from localcloud.azure.world.clusters.credentials import SERVER_APPLICATION, given_kubeconfig
from localcloud.common.certificates import Authority
from localcloud.common.clock import system_clock
from localcloud.kubernetes.wire.kubernetes_servers import KubernetesPlane
from shared.adapters import transport
from shared.adapters.arm import ArmAzure
from shared.adapters.kubernetes import KubernetesConnections
from shared.adapters.transport import app_credential
from shared.cluster.failures.errors import ReconcileError, Unauthenticated
from tests.support.kubernetes_ports import CLUSTER
from tests.support.receivers import silent_server

HEADER = "open-sesame"


@pytest.fixture(scope="module")
def identity() -> Iterator[IdentityServer]:
    with IdentityServer(header=HEADER) as server:
        yield server


@pytest.fixture(scope="module")
def kubeconfig(identity: IdentityServer) -> Iterator[str]:
    """Run the cluster; return the user credentials that AKS gives for it."""

    def accepts(token: str) -> bool:
        return identity.accepts(token, SERVER_APPLICATION)

    with KubernetesPlane(Authority(), accepts_token=accepts) as plane:
        config = plane.start(CLUSTER, [])
        plane.set_entra(CLUSTER, on=True)
        yield given_kubeconfig(config, {"aadProfile": {"managed": True}}, "user")


@pytest.fixture
def enter(kubeconfig: str) -> Iterator[Callable[[Callable[[str], str]], None]]:
    """Return what enters the cluster with a token from somewhere."""
    opened: list[KubernetesConnections] = []

    def connect(token: Callable[[str], str]) -> None:
        opened.append(KubernetesConnections(lambda _: kubeconfig, aad_token=token, clock=system_clock))
        opened[-1].connect(CLUSTER).check()

    yield connect
    for connections in opened:
        connections.close()


def test_the_identity_of_the_app_gets_a_token_that_the_api_server_accepts(
    identity: IdentityServer,
    enter: Callable[[Callable[[str], str]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("IDENTITY_ENDPOINT", identity.endpoint)
    monkeypatch.setenv("IDENTITY_HEADER", HEADER)
    with DefaultAzureCredential() as credential:
        enter(lambda scope: credential.get_token(scope).token)


def of_resource_manager(identity: IdentityServer) -> str:
    return identity.issue("https://management.azure.com")[0]


def expired(identity: IdentityServer) -> str:
    claims = {"aud": SERVER_APPLICATION, "iss": ISSUER, "exp": int(system_clock().timestamp()) - 1}
    return jwt.encode(claims, identity._key, "RS256")


def of_another_tenant(identity: IdentityServer) -> str:
    tenant = "https://sts.windows.net/00000000-0000-0000-0000-00000000abcd/"
    claims = {"aud": SERVER_APPLICATION, "iss": tenant, "exp": int(system_clock().timestamp()) + 60}
    return jwt.encode(claims, identity._key, "RS256")


def of_another_issuer(_: IdentityServer) -> str:
    with IdentityServer(header=HEADER) as other:
        return other.issue(SERVER_APPLICATION)[0]


def unsigned(_: IdentityServer) -> str:
    claims = {"aud": SERVER_APPLICATION, "iss": ISSUER, "exp": int(system_clock().timestamp()) + 60}
    return jwt.encode(claims, "", "none")


@pytest.mark.parametrize(
    "token", [of_resource_manager, expired, of_another_tenant, of_another_issuer, unsigned]
)
def test_no_other_token_is_accepted(
    identity: IdentityServer,
    enter: Callable[[Callable[[str], str]], None],
    token: Callable[[IdentityServer], str],
) -> None:
    with pytest.raises(Unauthenticated):
        enter(lambda _: token(identity))


def test_an_endpoint_that_never_answers_is_an_error_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "TOKEN_SECONDS", 0.3)
    found: list[BaseException] = []

    def probe() -> None:
        try:
            ArmAzure(app_credential()).probe()
        except ReconcileError as error:
            found.append(error)

    with silent_server(closes=False) as address:
        monkeypatch.setenv("IDENTITY_ENDPOINT", address.replace("https", "http"))
        monkeypatch.setenv("IDENTITY_HEADER", HEADER)
        asking = threading.Thread(target=probe, daemon=True)
        asking.start()
        asking.join(20)
    assert [type(error) for error in found] == [Unauthenticated]
