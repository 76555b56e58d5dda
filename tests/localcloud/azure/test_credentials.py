"""Credentials of the local Azure: kubeconfigs, and what its identity endpoint gives azure-identity."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
import yaml
from azure.core.exceptions import ClientAuthenticationError
from azure.identity import DefaultAzureCredential, ManagedIdentityCredential

from localcloud.azure.wire.identity_server import IdentityServer
from localcloud.azure.world.arm_errors import ArmError
from localcloud.azure.world.azure_world import AzureWorld
from localcloud.common.clock import ManualClock
from localcloud.common.control_plane import NullPlane
from shared.resource_ids import ClusterId

SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"
ONE = ClusterId(SUBSCRIPTION, "rg", "one")
ENTRA = {"aadProfile": {"managed": True, "enableAzureRBAC": True}}


def created(**properties: Any) -> AzureWorld:
    clock = ManualClock()
    world = AzureWorld(clock, plane=NullPlane())
    world.put_group(SUBSCRIPTION, "rg", {"location": "westeurope"})
    pools = [{"name": "system", "mode": "System", "count": 1}]
    own = {"dnsPrefix": "one", "agentPoolProfiles": pools, **properties}
    body = {"location": "westeurope", "identity": {"type": "SystemAssigned"}, "properties": own}
    world.put_cluster(ONE, body)
    clock.advance(10)
    return world


def user(world: AzureWorld, who: str) -> dict[str, Any]:
    """Return the user in the kubeconfig that somebody gets."""
    (given,) = world.get_kubeconfig(ONE, who)["kubeconfigs"]
    content: dict[str, Any] = yaml.safe_load(b64decode(given["value"]))
    assert content["clusters"][0]["cluster"]["server"].startswith("https://")
    (found,) = content["users"]
    return dict(found["user"])


def test_a_cluster_without_entra_id_gives_credentials_of_a_local_account() -> None:
    world = created()
    assert "exec" not in user(world, "user")
    assert "exec" not in user(world, "admin")


def test_a_user_of_a_cluster_with_entra_id_gets_a_plugin_and_an_admin_a_local_account() -> None:
    world = created(**ENTRA)
    plugin = user(world, "user")
    assert list(plugin) == ["exec"]
    assert plugin["exec"]["command"] == "kubelogin"
    assert "exec" not in user(world, "admin")


def test_without_local_accounts_no_admin_gets_credentials() -> None:
    world = created(disableLocalAccounts=True, **ENTRA)
    assert list(user(world, "user")) == ["exec"]
    with pytest.raises(ArmError, match="set to disable local accounts") as refused:
        world.get_kubeconfig(ONE, "admin")
    assert (refused.value.status, refused.value.code) == (400, "BadRequest")


AUDIENCE = "https://management.azure.com"


@pytest.fixture
def identity() -> Iterator[IdentityServer]:
    with IdentityServer(header="open-sesame") as server:
        yield server


@pytest.fixture
def environment(identity: IdentityServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set what App Service sets for a function app with a managed identity."""
    monkeypatch.setenv("IDENTITY_ENDPOINT", identity.endpoint)
    monkeypatch.setenv("IDENTITY_HEADER", "open-sesame")


@pytest.mark.usefixtures("environment")
def test_the_default_credential_gets_a_token_for_its_audience(identity: IdentityServer) -> None:
    with DefaultAzureCredential() as credential:
        token = credential.get_token(f"{AUDIENCE}/.default")
    assert identity.accepts(token.token)
    assert identity.accepts(token.token, f"{AUDIENCE}/")
    assert not identity.accepts(token.token, "https://vault.azure.net")
    assert token.expires_on > datetime.now(UTC).timestamp() + 3600


@pytest.mark.usefixtures("environment")
def test_a_credential_asks_once_while_its_token_lives(identity: IdentityServer) -> None:
    with ManagedIdentityCredential() as credential:
        tokens = {credential.get_token(f"{AUDIENCE}/.default").token for _ in range(5)}
    assert len(tokens) == 1
    assert [entry["path"] for entry in identity.door.requests] == ["/msi/token"]


def test_a_wrong_header_gets_no_token(identity: IdentityServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IDENTITY_ENDPOINT", identity.endpoint)
    monkeypatch.setenv("IDENTITY_HEADER", "guess")
    with ManagedIdentityCredential() as credential, pytest.raises(ClientAuthenticationError):
        credential.get_token(f"{AUDIENCE}/.default")
    assert identity.door.requests[0]["status"] == 401


@pytest.mark.parametrize(
    "query", ["", "?resource=x", "?api-version=2019-08-01", "?api-version=2018-02-01&resource=x"]
)
def test_a_request_that_breaks_the_protocol_is_refused(identity: IdentityServer, query: str) -> None:
    reply = httpx.get(identity.endpoint + query, headers={"X-IDENTITY-HEADER": "open-sesame"}, timeout=30)
    assert reply.status_code == 400


def test_a_token_is_accepted_unchanged_until_it_expires() -> None:
    clock = ManualClock()
    with IdentityServer(header="h", clock=clock, lifetime=timedelta(minutes=5)) as server:
        token, expires = server.issue(AUDIENCE)
        assert expires == (clock() + timedelta(minutes=5)).timestamp()
        assert server.accepts(token, AUDIENCE)
        header, payload, signature = token.split(".")
        assert not server.accepts(f"{header}.{payload[:-2]}AA.{signature}")
        assert not server.accepts("nonsense")
        clock.advance(300)
        assert not server.accepts(token, AUDIENCE)
