"""The registries: the digest of a tag, in memory and over the wire."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from localcloud.common.certificates import Authority
from localcloud.common.front_door import ScriptedFault
from localcloud.memory.memory_stores import MemoryStores
from localcloud.registry.registry_app import RegistryServer
from shared.adapters.registries import OciRegistries
from shared.cluster.failures.errors import (
    Dependency,
    InvalidManifest,
    ReconcileError,
    Throttled,
    Unauthorized,
    Unavailable,
)
from shared.ports import NoRegistries, Registries
from tests.support.azure_ports import StaticCredential

AZURE, PUBLIC = "example.azurecr.io", "registry.example.com"


@dataclass
class Setting:
    """The port, and the registry behind it."""

    port: Registries
    stores: MemoryStores
    server: RegistryServer | None = None


@pytest.fixture(params=["memory", "adapter"])
def setting(request: pytest.FixtureRequest, trusted: Authority) -> Iterator[Setting]:
    stores = MemoryStores()
    if request.param == "memory":
        yield Setting(stores, stores)
        return
    with RegistryServer(stores.registry, trusted) as server:
        urls = dict.fromkeys((AZURE, PUBLIC), server.url)
        yield Setting(OciRegistries(urls, StaticCredential()), stores, server)


@pytest.fixture
def wire(trusted: Authority) -> Iterator[Setting]:
    stores = MemoryStores()
    with RegistryServer(stores.registry, trusted) as server:
        urls = dict.fromkeys((AZURE, PUBLIC), server.url)
        yield Setting(OciRegistries(urls, StaticCredential()), stores, server)


def test_a_tag_has_the_digest_of_what_was_pushed_last(setting: Setting) -> None:
    first = setting.stores.push("team/platform", "stable", {"a.yaml": b"1"})
    assert setting.port.digest(AZURE, "team/platform", "stable") == first
    second = setting.stores.push("team/platform", "stable", {"a.yaml": b"2"})
    assert first != second == setting.port.digest(AZURE, "team/platform", "stable")


@pytest.mark.parametrize(("name", "tag"), [("platform", "none"), ("none", "stable")])
def test_a_tag_that_is_not_there_is_a_missing_dependency(setting: Setting, name: str, tag: str) -> None:
    setting.stores.push("platform", "stable", {})
    with pytest.raises(Dependency):
        setting.port.digest(AZURE, name, tag)


def test_an_identity_of_azure_gets_a_token_of_the_registry_of_azure_alone(wire: Setting) -> None:
    digest = wire.stores.push("platform", "stable", {})
    wire.stores.registry.users, wire.stores.registry.identities = {}, {"a-token"}
    assert wire.port.digest(AZURE, "platform", "stable") == digest
    with pytest.raises(Unauthorized):
        wire.port.digest(PUBLIC, "platform", "stable")


def test_a_public_registry_gives_everybody_a_token(wire: Setting) -> None:
    digest = wire.stores.push("platform", "stable", {})
    wire.stores.registry.users, wire.stores.registry.public = {}, True
    assert wire.port.digest(PUBLIC, "platform", "stable") == digest


def test_an_identity_without_the_role_is_refused_and_the_error_names_it(wire: Setting) -> None:
    wire.stores.push("platform", "stable", {})
    wire.stores.registry.users = {}
    with pytest.raises(Unauthorized, match="AcrPull"):
        wire.port.digest(AZURE, "platform", "stable")


@pytest.mark.parametrize("port", [NoRegistries(), OciRegistries({}, StaticCredential())])
def test_a_host_that_nobody_allows_is_not_asked(port: Registries) -> None:
    with pytest.raises(InvalidManifest, match="REGISTRIES"):
        port.digest("elsewhere.example.com", "platform", "stable")


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ({"status": 429}, Throttled),
        ({"status": 503}, Unavailable),
        ({"status": 307, "headers": {"Location": "https://elsewhere.example.com"}}, Unavailable),
        ({"status": 403}, Unauthorized),
        ({"status": 200, "body": {}}, Unavailable),
    ],
)
def test_what_a_registry_answers_besides_is_an_error_of_the_app(
    wire: Setting, fault: dict[str, Any], error: type[ReconcileError]
) -> None:
    assert wire.server is not None
    wire.server.door.faults = [ScriptedFault("HEAD /v2", **fault)]
    with pytest.raises(error):
        wire.port.digest(AZURE, "platform", "stable")


def test_a_registry_that_does_not_answer_is_unavailable() -> None:
    nowhere = OciRegistries({AZURE: "https://127.0.0.1:1"}, StaticCredential())
    with pytest.raises(Unavailable):
        nowhere.digest(AZURE, "platform", "stable")
