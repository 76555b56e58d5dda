"""The vaults: what a secret of Azure Key Vault is to Roadstead, in memory and over the wire."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import requests
from azure.core.credentials import AccessToken

from localcloud.azure.world.catalog import TENANT
from localcloud.common.certificates import Authority
from localcloud.common.clock import ManualClock
from localcloud.common.front_door import ScriptedFault
from localcloud.keyvault.vault_server import LIST, SECRETS_USER, VaultServer
from localcloud.keyvault.vault_world import VaultWorld
from localcloud.keyvault.vaults_port import WorldVaults
from shared.adapters.vault import KeyVaults
from shared.cluster.failures.errors import (
    InvalidManifest,
    ReconcileError,
    SecretMissing,
    Throttled,
    Unauthenticated,
    VaultForbidden,
    VaultUnavailable,
)
from shared.ports.services import OwnVault
from tests.support.azure_ports import StaticCredential
from tests.support.odd_bodies import odd_bodies

VAULT = "platform"


@dataclass(frozen=True)
class VaultSetting:
    """A vault as the port sees it, and as its owner does; ``server`` is None in memory."""

    port: OwnVault
    world: VaultWorld
    server: VaultServer | None = None


VALUE = "c4nary-of-the-vault-93ba"


class Stranger:
    """A credential whose tokens no vault accepts."""

    def get_token(self, *_scopes: str, **_: Any) -> AccessToken:
        return AccessToken("another", int(time.time()) + 3600)


@contextmanager
def over_the_wire(world: VaultWorld, authority: Authority, **options: Any) -> Iterator[VaultSetting]:
    """Yield the adapter on a server that takes one token."""
    accepts = options.pop("accepts", lambda token, _: token == "a-token")
    with VaultServer(world, authority, tenant=TENANT, accepts=accepts, **options) as server:
        adapter = KeyVaults({VAULT: server.url}, StaticCredential())
        yield VaultSetting(adapter, world, server)
        adapter.close()


@pytest.fixture(params=["world", "adapter"])
def vault(request: pytest.FixtureRequest, trusted: Authority) -> Iterator[VaultSetting]:
    world = VaultWorld(VAULT, ManualClock())
    if request.param == "world":
        yield VaultSetting(WorldVaults({VAULT: world}), world)
        return
    with over_the_wire(world, trusted) as setting:
        yield setting


@pytest.fixture
def served(trusted: Authority) -> Iterator[VaultSetting]:
    world = VaultWorld(VAULT, ManualClock())
    world.set("age", VALUE)
    with over_the_wire(world, trusted) as setting:
        yield setting


def refused(setting: VaultSetting, name: str = "age", vault: str = VAULT) -> ReconcileError:
    with pytest.raises(ReconcileError) as raised:
        setting.port.secret(vault, name)
    assert VALUE not in f"{raised.value!r} {raised.value.__cause__!r}"
    return raised.value


def test_the_newest_version_is_read(vault: VaultSetting) -> None:
    vault.world.set("age", "before")
    newest = vault.world.set("age", VALUE)
    found = vault.port.secret(VAULT, "age")
    assert (found.version, found.value) == (newest.version, VALUE)
    assert vault.port.secret(VAULT.upper(), "AGE").version == newest.version


def test_a_version_is_written_with_its_tags(vault: VaultSetting) -> None:
    vault.world.set("age", "before")
    vault.port.write(VAULT, "age", VALUE, {"github-app": "one"})
    found = vault.port.secret(VAULT, "age")
    assert (found.value, found.tags) == (VALUE, {"github-app": "one"})
    assert len(vault.world.versions("age")) == 2
    with pytest.raises(InvalidManifest):
        vault.port.write("evil", "age", VALUE, {})


def test_a_secret_shows_no_value(vault: VaultSetting) -> None:
    vault.world.set("age", VALUE)
    assert VALUE not in repr(vault.port.secret(VAULT, "age"))


def test_an_unknown_secret_is_missing(vault: VaultSetting) -> None:
    error = refused(vault)
    assert isinstance(error, SecretMissing)
    assert error.code == "SecretNotFound"
    assert str(error) == "the secret age of the vault platform does not exist, or is deleted"


def test_a_deleted_secret_is_missing_until_it_is_recovered(vault: VaultSetting) -> None:
    made = vault.world.set("age", VALUE)
    vault.world.delete("age")
    assert isinstance(refused(vault), SecretMissing)
    vault.world.recover("age")
    assert vault.port.secret(VAULT, "age").version == made.version


def test_a_disabled_secret_is_missing_although_a_vault_forbids_it(vault: VaultSetting) -> None:
    vault.world.set("age", "before")
    vault.world.set("age", VALUE)
    vault.world.enable("age", enabled=False)
    error = refused(vault)
    assert isinstance(error, SecretMissing)
    assert (error.code, str(error)) == (
        "SecretDisabled",
        "the secret age of the vault platform is disabled",
    )


def test_a_vault_that_the_settings_lack_is_not_asked(vault: VaultSetting) -> None:
    error = refused(vault, vault="evil")
    assert isinstance(error, InvalidManifest)
    assert "KEY_VAULTS" in str(error)


def test_a_missing_role_is_named_with_the_secret(trusted: Authority) -> None:
    world = VaultWorld(VAULT, ManualClock())
    world.set("age", VALUE)
    with over_the_wire(world, trusted, granted=lambda _: (LIST,)) as setting:
        error = refused(setting)
    assert isinstance(error, VaultForbidden)
    assert error.code == "ForbiddenByRbac"
    assert str(error) == "the identity of this app may not read the secret age of the vault platform"


def test_who_may_only_read_writes_nothing(trusted: Authority) -> None:
    world = VaultWorld(VAULT, ManualClock())
    world.set("age", VALUE)
    with (
        over_the_wire(world, trusted, granted=lambda _: SECRETS_USER) as setting,
        pytest.raises(VaultForbidden) as raised,
    ):
        setting.port.write(VAULT, "age", "another", {})
    assert str(raised.value) == "the identity of this app may not write the secret age of the vault platform"
    assert world.get("age").value == VALUE


def test_the_role_of_the_worker_suffices(trusted: Authority) -> None:
    world = VaultWorld(VAULT, ManualClock())
    world.set("age", VALUE)
    with over_the_wire(world, trusted, granted=lambda _: SECRETS_USER) as setting:
        assert setting.port.secret(VAULT, "age").value == VALUE


def test_the_firewall_of_a_vault_is_no_missing_role(served: VaultSetting) -> None:
    assert served.server is not None
    body = {"error": {"code": "Forbidden", "message": VALUE, "innererror": {"code": "ForbiddenByFirewall"}}}
    served.server.door.faults.append(ScriptedFault("GET /secrets", 403, body))
    error = refused(served)
    assert isinstance(error, VaultForbidden)
    assert "firewall" in str(error)


def test_a_throttled_read_has_the_vaults_own_wait(served: VaultSetting) -> None:
    assert served.server is not None
    served.server.door.faults.append(
        ScriptedFault(
            "GET /secrets", 429, {"error": {"code": "Throttled", "message": VALUE}}, {"Retry-After": "7"}
        )
    )
    error = refused(served)
    assert isinstance(error, Throttled)
    assert error.retry_after == 7
    served.port.secret(VAULT, "age")
    (first, *rest) = served.server.door.requests
    assert (first["status"], [document["status"] for document in rest]) == (429, [401, 200]), (
        "no call is repeated"
    )


def test_a_server_error_and_no_answer_are_the_vaults_own_unavailability(served: VaultSetting) -> None:
    assert served.server is not None
    served.server.door.faults.append(ScriptedFault("GET /secrets", 503))
    assert isinstance(refused(served), VaultUnavailable)
    nowhere = KeyVaults({VAULT: "https://127.0.0.1:1"}, StaticCredential())
    assert isinstance(refused(VaultSetting(nowhere, served.world)), VaultUnavailable)


SECRET = {"id": "https://ops.vault.azure.net/secrets/age/1", "value": VALUE, "attributes": {"enabled": True}}
ERROR = {"error": {"code": "Forbidden", "message": "no", "innererror": {"code": "ForbiddenByRbac"}}}


@pytest.mark.lives
@pytest.mark.parametrize(("status", "answer"), [(200, SECRET), (403, ERROR), (404, ERROR), (500, ERROR)])
def test_whatever_a_vault_answers_is_a_secret_or_an_error_of_ours(
    status: int, answer: Any, served: VaultSetting
) -> None:
    assert served.server is not None
    served.port.secret(VAULT, "age")
    for odd in odd_bodies(answer):
        try:
            body = json.loads(odd)
        except (ValueError, RecursionError):
            continue
        served.server.door.faults[:] = [ScriptedFault("GET /secrets", status, body)]
        try:
            found = served.port.secret(VAULT, "age")
        except ReconcileError as error:
            assert VALUE not in f"{error!r} {error.__cause__!r}"  # noqa: PT017
        else:
            assert isinstance(found.value, str)


def test_no_vault_gets_a_token_for_another_service(trusted: Authority) -> None:
    world = VaultWorld(VAULT, ManualClock())
    world.set("age", VALUE)
    resource = "https://management.azure.com"
    with over_the_wire(world, trusted, accepts=lambda *_: True, resource=resource) as setting:
        assert isinstance(refused(setting), Unauthenticated)
        assert setting.server is not None
        assert not [request for request in setting.server.door.requests if request["status"] == 200]


def test_a_token_for_another_audience_opens_nothing(served: VaultSetting) -> None:
    assert served.server is not None
    stranger = KeyVaults({VAULT: served.server.url}, Stranger())
    assert isinstance(refused(VaultSetting(stranger, served.world)), Unauthenticated)


def test_a_request_without_a_version_of_the_api_is_refused(served: VaultSetting) -> None:
    assert served.server is not None
    for query in ("", "?api-version=1.0"):
        answer = requests.get(f"{served.server.url}/secrets/age{query}", timeout=5)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "BadParameter")


def test_a_probe_without_a_credential_shows_that_a_vault_answers(served: VaultSetting) -> None:
    adapter = served.port
    assert isinstance(adapter, KeyVaults)
    probe = adapter.probe_of(VAULT)
    probe.probe()
    assert served.server is not None
    served.server.close()
    with pytest.raises(VaultUnavailable) as raised:
        probe.probe()
    assert "did not answer" in str(raised.value)
    probe.close()


def test_a_probe_of_what_is_no_vault_fails(trusted: Authority) -> None:
    with over_the_wire(VaultWorld(VAULT, ManualClock()), trusted) as setting:
        assert setting.server is not None
        other = KeyVaults({VAULT: f"{setting.server.url}/_local"}, StaticCredential()).probe_of(VAULT)
        with pytest.raises(VaultUnavailable) as raised:
            other.probe()
        assert "with no challenge" in str(raised.value)
        other.close()
