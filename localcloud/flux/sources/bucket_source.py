"""Blobs of containers.

Source of messages: ``internal/controller/bucket_controller.go`` of ``fluxcd/source-controller``, and of the
keys that a Secret may have: ``internal/bucket/azure/blob.go``. A revision is the digest of all names with
their ETags.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from localcloud.flux.flux_conditions import ObjectNotReady
from localcloud.flux.sources.fetched import (
    SourceArtifact,
    SourceLogin,
    SourceRevision,
    identity_of,
    secret_of,
)
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.kubernetes.world.object_store import Object


@dataclass(frozen=True)
class Blob:
    """A blob: its ETag, and a way to read it."""

    etag: str
    read: Callable[[], bytes]


ListBlobs = Callable[[str, str, str, SourceLogin], Mapping[str, Blob]]
"""Returns the blobs at (endpoint, container, prefix) for who asks; raises BlobError."""


class BlobError(Exception):
    """A storage account refused, or has no such container."""


def fetch_bucket(world: KubernetesWorld, blobs: ListBlobs, value: Object) -> SourceArtifact:
    """Return the blobs that a Bucket names; raise NotReady."""
    spec = value.get("spec") or {}
    if spec.get("provider") != "azure":
        raise ObjectNotReady("BucketOperationFailed", "this Flux reads buckets of the provider azure only")
    name = str(spec.get("bucketName") or "")
    login = _login(world, value)
    try:
        found = blobs(str(spec.get("endpoint") or ""), name, str(spec.get("prefix") or ""), login)
    except BlobError as error:
        raise ObjectNotReady("BucketOperationFailed", str(error)) from error
    index = "".join(f"{path} {blob.etag}\n" for path, blob in sorted(found.items()))
    revision = f"sha256:{hashlib.sha256(index.encode()).hexdigest()}"
    files = {path: blob.read() for path, blob in found.items() if not path.endswith("/")}
    event = f"stored artifact with {len(files)} fetched files from '{name}' bucket"
    return SourceArtifact(
        SourceRevision(revision, lambda: files), revision, f"stored artifact: revision '{revision}'", event
    )


def _login(world: KubernetesWorld, value: Object) -> SourceLogin:
    data = secret_of(world, value)
    if data is None:
        return SourceLogin(client_id=identity_of(world, value))
    key = data.get("accountKey") or data.get("sasKey")
    if key:
        return SourceLogin(password=key)
    if data.get("clientId"):
        return SourceLogin(client_id=data["clientId"])
    namespace, name = value["metadata"]["namespace"], (value.get("spec") or {})["secretRef"]["name"]
    needed = "requires a 'accountKey' or 'sasKey' field, or a 'clientId'"
    raise ObjectNotReady("AuthenticationFailed", f"invalid '{namespace}/{name}' secret data: {needed}")
