"""Artifacts of registries.

Source of references, revisions and messages: ``internal/controller/ocirepository_controller.go`` of
``fluxcd/source-controller``. The layers are archives, as ``flux push artifact`` makes them.
"""

from __future__ import annotations

import base64
import io
import json
import tarfile
from collections.abc import Mapping
from typing import Any

from localcloud.flux.flux_conditions import ObjectNotReady
from localcloud.flux.sources.distribution_client import DistributionClient, RegistryError
from localcloud.flux.sources.fetched import (
    SourceArtifact,
    SourceLogin,
    SourceRevision,
    identity_of,
    secret_of,
)
from localcloud.flux.sources.semver_range import newest
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.kubernetes.world.object_store import Object

_PREFIX = "oci://"
_SOURCE, _REVISION = "org.opencontainers.image.source", "org.opencontainers.image.revision"


def fetch_artifact(world: KubernetesWorld, registries: DistributionClient, value: Object) -> SourceArtifact:
    """Return the artifact that an OCIRepository names; raise NotReady."""
    spec = value.get("spec") or {}
    url = str(spec.get("url") or "")
    host, _, name = url.removeprefix(_PREFIX).partition("/")
    login = _login(world, value, host)
    tag, reference = _reference(registries, login, spec, host, name)
    try:
        manifest, digest = registries.manifest(host, name, reference, login)
    except RegistryError as error:
        raise ObjectNotReady(
            "OCIArtifactPullFailed", f"failed to determine artifact digest: {error}"
        ) from error
    revision = f"{tag}@{digest}" if tag else digest
    metadata = {key: str(text) for key, text in (manifest.get("annotations") or {}).items()}
    files = _files(registries, login, host, name, _layer(manifest, spec))
    event = f"stored artifact with revision '{revision}' from '{url}'"
    if metadata.get(_SOURCE) and metadata.get(_REVISION):
        origin = f"origin source '{metadata[_SOURCE]}', origin revision '{metadata[_REVISION]}'"
        event = f"{event}, {origin}"
    return SourceArtifact(
        SourceRevision(digest, lambda: files),
        revision,
        f"stored artifact for digest '{revision}'",
        event,
        metadata,
    )


def _reference(
    registries: DistributionClient, login: SourceLogin, spec: Mapping[str, Any], host: str, name: str
) -> tuple[str, str]:
    """Return the tag, "" for a digest, and what is read: of several fields of ``ref`` the first of these."""
    ref = spec.get("ref") or {}
    if ref.get("digest"):
        return "", str(ref["digest"])
    if not ref.get("semver"):
        tag = str(ref.get("tag") or "latest")
        return tag, tag
    try:
        tags = registries.tags(host, name, login)
    except RegistryError as error:
        failed = f"failed to determine the artifact tag for '{spec['url']}'"
        raise ObjectNotReady("ReadOperationFailed", f"{failed}: {error}") from error
    found = newest(tags, str(ref["semver"]))
    if found is None:
        failed = f"failed to determine the artifact tag for '{spec['url']}'"
        raise ObjectNotReady("ReadOperationFailed", f"{failed}: no match found for semver: {ref['semver']}")
    return found, found


def _layer(manifest: Mapping[str, Any], spec: Mapping[str, Any]) -> str:
    """Return the digest of the layer that counts."""
    layers, selector = manifest.get("layers") or [], spec.get("layerSelector") or {}
    if selector.get("operation") == "copy":
        raise ObjectNotReady(
            "OCIArtifactLayerOperationFailed", "this Flux unpacks layers only, and copies none"
        )
    if not layers:
        raise ObjectNotReady("OCIArtifactLayerOperationFailed", "no layers found in artifact")
    wanted = selector.get("mediaType")
    found = next((layer for layer in layers if wanted in (None, layer.get("mediaType"))), None)
    if found is None:
        missing = f"failed to find layer with media type '{wanted}' in artifact"
        raise ObjectNotReady("OCIArtifactLayerOperationFailed", missing)
    return str(found["digest"])


def _files(
    registries: DistributionClient, login: SourceLogin, host: str, name: str, digest: str
) -> Mapping[str, bytes]:
    try:
        blob = registries.blob(host, name, digest, login)
        with tarfile.open(fileobj=io.BytesIO(blob), mode="r:gz") as archive:
            found = {}
            for member in archive:
                _check(member)
                content = archive.extractfile(member) if member.isfile() else None
                if content is not None:
                    found[member.name.removeprefix("./")] = content.read()
            return found
    except (RegistryError, tarfile.TarError) as error:
        failed = f"failed to extract layer contents from artifact: {error}"
        raise ObjectNotReady("OCIArtifactLayerOperationFailed", failed) from error


def _check(member: tarfile.TarInfo) -> None:
    """Raise TarError for an entry that is not unpacked (``Untar`` of ``fluxcd/pkg``, ``tar/tar.go``)."""
    name = member.name
    if not name or "\\" in name or name.startswith("/") or "../" in name:
        raise tarfile.TarError(f"tar contained invalid name error {name!r}")
    if not (member.isfile() or member.isdir() or member.issym() or member.islnk()):
        raise tarfile.TarError(f"tar file entry {name} contained unsupported file type")


def _login(world: KubernetesWorld, value: Object, host: str) -> SourceLogin:
    data = secret_of(world, value)
    if data is None:
        azure = (value.get("spec") or {}).get("provider") == "azure"
        return SourceLogin(client_id=identity_of(world, value)) if azure else SourceLogin()
    try:
        entry = json.loads(data.get(".dockerconfigjson", ""))["auths"].get(host) or {}
        user, _, password = base64.b64decode(entry.get("auth") or "").decode().partition(":")
    except (ValueError, KeyError, AttributeError) as error:
        raise ObjectNotReady("AuthenticationFailed", f"failed to parse the pull secret: {error}") from error
    return SourceLogin(str(entry.get("username") or user), str(entry.get("password") or password))
