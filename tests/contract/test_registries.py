"""The registries: the digest of a tag, and the layer of an artifact, in memory and over the wire."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest

from localcloud.common.certificates import Authority
from localcloud.common.front_door import ScriptedFault
from localcloud.memory.memory_stores import MemoryStores
from localcloud.registry.registry_app import RegistryServer
from localcloud.registry.registry_store import OCI_MANIFEST, digest_of_bytes
from shared.adapters.registries import OciRegistries
from shared.cluster.failures.errors import (
    Dependency,
    InvalidManifest,
    ReconcileError,
    Throttled,
    Unauthorized,
    Unavailable,
)
from shared.ports import Registries
from shared.ports.artifact import MAX_LAYER, UnreadableArtifact, unpacked
from tests.support.azure_ports import StaticCredential

pytestmark = pytest.mark.lives

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


def test_the_first_layer_of_an_artifact_has_the_files_that_were_pushed(setting: Setting) -> None:
    files = {"platform/a.yaml": b"a: 1\n", "b.yaml": b"b: 1\n"}
    digest = setting.stores.push("team/platform", "stable", files)
    assert unpacked(setting.port.layer(AZURE, "team/platform", digest)).contents == files


def test_a_digest_stays_what_it_was_after_its_tag_has_moved(setting: Setting) -> None:
    first = setting.stores.push("platform", "stable", {"a.yaml": b"1"})
    setting.stores.push("platform", "stable", {"a.yaml": b"2"})
    assert unpacked(setting.port.layer(AZURE, "platform", first)).contents == {"a.yaml": b"1"}


def test_a_digest_that_is_not_there_is_a_missing_dependency(setting: Setting) -> None:
    setting.stores.push("platform", "stable", {})
    with pytest.raises(Dependency):
        setting.port.layer(AZURE, "platform", f"sha256:{'0' * 64}")


def pushed(stores: MemoryStores, *layers: bytes, said: int | None = None) -> str:
    """Push a manifest with these layers; return its digest. ``said`` is the size that it claims of each."""
    contents = (b"{}", *layers)
    described = [
        {"mediaType": "a/b", "digest": digest_of_bytes(c), "size": len(c) if said is None else said}
        for c in contents
    ]
    for content in contents:
        stores.registry.put_blob("platform", content, digest_of_bytes(content))
    manifest = {"schemaVersion": 2, "config": described[0], "layers": described[1:]}
    return stores.registry.put_manifest("platform", "stable", OCI_MANIFEST, json.dumps(manifest).encode())


def test_the_first_of_several_layers_counts(setting: Setting) -> None:
    digest = pushed(setting.stores, b"1", b"2")
    assert setting.port.layer(AZURE, "platform", digest) == b"1"


@pytest.mark.parametrize(
    ("layers", "size", "said"),
    [((), None, "names no layers"), ((b"1",), MAX_LAYER + 1, f"has {MAX_LAYER + 1} bytes")],
)
def test_an_artifact_without_a_layer_that_is_read_says_why(
    setting: Setting, layers: tuple[bytes, ...], size: int | None, said: str
) -> None:
    digest = pushed(setting.stores, *layers, said=size)
    with pytest.raises(UnreadableArtifact, match=said):
        setting.port.layer(AZURE, "platform", digest)


def test_a_layer_that_is_larger_than_its_manifest_says_is_not_read_to_its_end(wire: Setting) -> None:
    digest = pushed(wire.stores, b"\0" * (MAX_LAYER + 1), said=1)
    with pytest.raises(UnreadableArtifact, match="at most"):
        wire.port.layer(AZURE, "platform", digest)


def test_a_download_that_takes_too_long_ends(wire: Setting) -> None:
    digest = wire.stores.push("platform", "stable", {"a.yaml": b"1"})
    assert wire.server is not None
    slow = OciRegistries({AZURE: wire.server.url}, StaticCredential(), elapsed=count(0, 61).__next__)
    with pytest.raises(Unavailable, match="longer than 60 seconds"):
        slow.layer(AZURE, "platform", digest)


def test_a_layer_is_read_once_and_no_token_goes_where_its_content_is(wire: Setting) -> None:
    digest = wire.stores.push("platform", "stable", {"a.yaml": b"1"})
    wire.stores.registry.users, wire.stores.registry.identities = {}, {"a-token"}
    first = wire.port.layer(AZURE, "platform", digest)
    wire.stores.registry.identities = set()
    assert wire.port.layer(AZURE, "platform", digest) == first


def test_a_layer_of_a_public_registry_needs_no_identity(wire: Setting) -> None:
    digest = wire.stores.push("platform", "stable", {"a.yaml": b"1"})
    wire.stores.registry.users, wire.stores.registry.public = {}, True
    assert unpacked(wire.port.layer(PUBLIC, "platform", digest)).contents == {"a.yaml": b"1"}


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


def test_a_host_that_nobody_allows_is_not_asked() -> None:
    port: Registries = OciRegistries({}, StaticCredential())
    with pytest.raises(InvalidManifest, match="REGISTRIES"):
        port.digest("elsewhere.example.com", "platform", "stable")
    with pytest.raises(InvalidManifest, match="REGISTRIES"):
        port.layer("elsewhere.example.com", "platform", "sha256:")


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
    digest = wire.stores.push("platform", "stable", {})
    wire.server.door.faults = [ScriptedFault("HEAD /v2", **fault)]
    with pytest.raises(error):
        wire.port.digest(AZURE, "platform", "stable")
    for path in ("/v2/platform/manifests", "/v2/platform/blobs", "/storage"):
        wire.server.door.faults = [ScriptedFault(f"GET {path}", **fault)]
        with pytest.raises((error, UnreadableArtifact)):
            wire.port.layer(AZURE, "platform", digest)


def test_a_registry_that_does_not_answer_is_unavailable() -> None:
    nowhere = OciRegistries({AZURE: "https://127.0.0.1:1"}, StaticCredential())
    with pytest.raises(Unavailable):
        nowhere.digest(AZURE, "platform", "stable")
    with pytest.raises(Unavailable):
        nowhere.layer(AZURE, "platform", f"sha256:{'0' * 64}")
