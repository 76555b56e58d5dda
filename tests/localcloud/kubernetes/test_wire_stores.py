"""What the small Flux pulls over the wire: the registry of the local cloud over TLS, and blobs of Azurite."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator

import pytest
from azure.storage.blob import ContainerClient

from localcloud.common.certificates import Authority
from localcloud.flux.flux_controllers import Stores
from localcloud.flux.sources.bucket_source import BlobError
from localcloud.flux.sources.distribution_client import RegistryError
from localcloud.flux.sources.fetched import SourceLogin
from localcloud.flux.sources.wire_stores import ACCOUNT, ACCOUNT_KEY, wire_stores
from localcloud.registry.registry_app import RegistryServer
from localcloud.registry.registry_store import RegistryStore
from tests.support.artifact_pushes import NAME, Pusher
from tests.support.azurite import running_storage

pytestmark = pytest.mark.lives

HOST = "example.azurecr.io"
CLIENT = "00000000-0000-0000-0000-000000000031"


@pytest.fixture
def authority() -> Authority:
    return Authority()


@pytest.fixture
def registry(authority: Authority) -> Iterator[RegistryServer]:
    store = RegistryStore()
    store.users, store.identities = {"ann": "secret"}, (CLIENT,)
    with RegistryServer(store, authority) as server:
        yield server


def stores(server: RegistryServer, authority: Authority) -> Stores:
    return wire_stores(registry=server.url, blobs="http://127.0.0.1:1", authority=authority.pem)


def test_what_is_pushed_by_the_specification_is_pulled_by_tag_and_by_digest(
    registry: RegistryServer, authority: Authority
) -> None:
    pusher = Pusher(registry.url, authority.pem, "ann:secret")
    layer, config = pusher.blob(b"layer"), pusher.blob(b"{}")
    digest = pusher.manifest("v1", config=config, layer=layer).headers["Docker-Content-Digest"]
    pusher.manifest("v2", config=config, layer=layer)
    pulled, login = stores(registry, authority).registries, SourceLogin(client_id=CLIENT)
    manifest, found = pulled.manifest(HOST, NAME, "v1", login)
    assert (found, manifest["layers"][0]["digest"]) == (digest, layer)
    assert pulled.manifest(HOST, NAME, digest, login)[1] == digest
    assert pulled.blob(HOST, NAME, layer, SourceLogin("ann", "secret")) == b"layer"
    assert pulled.tags(HOST, NAME, login) == ["v1", "v2"]
    head = pusher.ask("HEAD", f"/v2/{NAME}/manifests/v1")
    assert (head.status, head.headers["Docker-Content-Digest"], head.data) == (200, digest, b"")


def test_the_registry_refuses_in_the_words_of_the_specification(
    registry: RegistryServer, authority: Authority
) -> None:
    pulled = stores(registry, authority).registries
    for login in (SourceLogin(), SourceLogin("ann", "wrong"), SourceLogin(client_id="somebody")):
        with pytest.raises(RegistryError, match="UNAUTHORIZED: authentication required"):
            pulled.manifest(HOST, NAME, "v1", login)
    with pytest.raises(RegistryError, match="NAME_UNKNOWN"):
        pulled.tags(HOST, "nothing", SourceLogin("ann", "secret"))
    pusher = Pusher(registry.url, authority.pem, "ann:secret")
    layer = pusher.blob(b"layer")
    missing = pusher.manifest("v1", config=f"sha256:{'0' * 64}", layer=layer)
    assert json.loads(missing.data)["errors"][0]["code"] == "MANIFEST_BLOB_UNKNOWN"
    wrong = pusher.ask("POST", f"/v2/{NAME}/blobs/uploads/?digest=sha256:{'0' * 64}", b"layer")
    assert json.loads(wrong.data)["errors"][0]["code"] == "DIGEST_INVALID"
    with pytest.raises(RegistryError, match="MANIFEST_UNKNOWN"):
        pulled.manifest(HOST, NAME, "v1", SourceLogin("ann", "secret"))


def test_blobs_are_pulled_from_azurite_with_the_key_of_the_account(authority: Authority) -> None:
    with running_storage() as (port, _):
        url = f"http://127.0.0.1:{port}"
        credential = {"account_name": ACCOUNT, "account_key": ACCOUNT_KEY}
        with ContainerClient(f"{url}/{ACCOUNT}", "fleet", credential=credential) as container:
            container.create_container()
            container.upload_blob("platform/a.yaml", b"a")
            container.upload_blob("other/b.yaml", b"b")
        pulled = wire_stores(registry="https://127.0.0.1:1", blobs=url, authority=authority.pem).blobs
        endpoint, whoever = "https://store.blob.core.windows.net", SourceLogin(client_id=CLIENT)
        found = pulled(endpoint, "fleet", "platform/", whoever)
        assert {name: blob.read() for name, blob in found.items()} == {"platform/a.yaml": b"a"}
        assert len(pulled(endpoint, "fleet", "", SourceLogin(password=ACCOUNT_KEY))) == 2
        with pytest.raises(BlobError, match="failed to list objects of bucket 'fleet'"):
            pulled(endpoint, "fleet", "", SourceLogin(password=base64.b64encode(b"wrong").decode()))
        with pytest.raises(BlobError, match="container does not exist"):
            pulled(endpoint, "gone", "", whoever)
