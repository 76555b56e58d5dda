"""A registry and the containers of storage accounts, in memory, as Flux reads them."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping

from werkzeug.test import Client
from werkzeug.wrappers import Request

from localcloud.flux.flux_controllers import Stores
from localcloud.flux.sources.bucket_source import Blob, BlobError
from localcloud.flux.sources.distribution_client import DistributionClient, Reply
from localcloud.flux.sources.fetched import SourceLogin
from localcloud.registry.registry_app import RegistryApp
from localcloud.registry.registry_store import (
    OCI_MANIFEST,
    RegistryRefusal,
    RegistryStore,
    digest_of_bytes,
)
from shared.cluster.failures.errors import Dependency
from shared.ports.artifact import first_layer

CONFIG = "application/vnd.cncf.flux.config.v1+json"
CONTENT = "application/vnd.cncf.flux.content.v1.tar+gzip"
"""The media types of what ``flux push artifact`` pushes."""


class MemoryStores:
    """What Flux pulls besides git; each address ends at the one registry, and at the one account.

    ``readers`` are the client ids, and the keys, that may read the containers, None for everybody.
    """

    def __init__(self) -> None:
        self.registry = RegistryStore()
        self.containers: dict[str, dict[str, bytes]] = {}
        self.readers: set[str] | None = None
        self._client = Client(Request.application(RegistryApp(self.registry).answer))
        self.stores = Stores(DistributionClient(self._send), self._blobs)

    def push(
        self, name: str, tag: str, files: Mapping[str, bytes], annotations: Mapping[str, str] | None = None
    ) -> str:
        """Push files as an artifact, as ``flux push artifact`` does; return its digest."""
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            for path, content in sorted(files.items()):
                member = tarfile.TarInfo(path)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
        parts = (CONFIG, b"{}"), (CONTENT, gzip.compress(archive.getvalue(), mtime=0))
        described = []
        for kind, content in parts:
            digest = digest_of_bytes(content)
            self.registry.put_blob(name, content, digest)
            described.append({"mediaType": kind, "digest": digest, "size": len(content)})
        config, *layers = described
        manifest = {"schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": config, "layers": layers}
        whole = manifest | ({"annotations": dict(annotations)} if annotations else {})
        return self.registry.put_manifest(name, tag, OCI_MANIFEST, json.dumps(whole).encode())

    def digest(self, host: str, name: str, tag: str) -> str:
        """Return the digest of a tag, as the app reads it: from any host."""
        try:
            return digest_of_bytes(self.registry.manifest(name, tag)[1])
        except RegistryRefusal as error:
            raise Dependency(f"{host}/{name}:{tag}: {error.code}") from None

    def layer(self, host: str, name: str, digest: str) -> bytes:
        """Return the first layer of an artifact, as the app reads it: from any host."""
        try:
            return self.registry.blob(
                name, first_layer(self.registry.manifest(name, digest)[1], digest).digest
            )
        except RegistryRefusal as error:
            raise Dependency(f"{host}/{name}@{digest}: {error.code}") from None

    def _send(self, _host: str, path: str, headers: Mapping[str, str]) -> Reply:
        reply = self._client.get(path, headers=dict(headers))
        return Reply(reply.status_code, dict(reply.headers), reply.get_data())

    def _blobs(self, endpoint: str, container: str, prefix: str, login: SourceLogin) -> dict[str, Blob]:
        if self.readers is not None and not self.readers & {login.client_id, login.password}:
            raise BlobError(
                f"failed to list blobs of {endpoint}: RESPONSE 403: AuthorizationPermissionMismatch"
            )
        if container not in self.containers:
            raise BlobError(f"bucket '{container}' not found")
        return {
            path: _blob(content)
            for path, content in self.containers[container].items()
            if path.startswith(prefix)
        }


def _blob(content: bytes) -> Blob:
    return Blob(hashlib.sha256(content).hexdigest(), lambda: content)
