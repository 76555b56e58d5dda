"""The storage versions of a CustomResourceDefinition, when a new one drops a version that is in use.

Kubernetes refuses a definition without a version in which objects may still be stored
(``status.storedVersions``). So a definition with the versions of both is applied first, every object is
written once, which stores it in the new version, and then the old version can go
(kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shared.json_tree import Json
from shared.kubernetes.flux_objects import DIGEST, stamped


def dropped_versions(manifest: Json, live: Json) -> list[str]:
    """Return the versions in which objects may be stored and which the new definition lacks."""
    names = {version["name"] for version in manifest["spec"]["versions"]}
    stored: Sequence[str] = (live.get("status") or {}).get("storedVersions") or ()
    return [name for name in stored if name not in names]


def bridge(manifest: Json, live: Json) -> Json:
    """Return the new definition with the versions that it drops, as they are served now."""
    dropped = dropped_versions(manifest, live)
    old = [
        {**version, "storage": False} for version in live["spec"]["versions"] if version["name"] in dropped
    ]
    metadata = dict(manifest["metadata"])
    metadata["annotations"] = {k: v for k, v in (metadata.get("annotations") or {}).items() if k != DIGEST}
    spec = {**manifest["spec"], "versions": [*manifest["spec"]["versions"], *old]}
    return stamped({**manifest, "metadata": metadata, "spec": spec})


def storage_version(manifest: Json) -> str:
    """Return the version in which a definition stores its objects."""
    return next(str(version["name"]) for version in manifest["spec"]["versions"] if version.get("storage"))


def kind_in(manifest: Json, version: str) -> tuple[str, str]:
    """Return the apiVersion and the kind of a definition's objects in a version."""
    spec = manifest["spec"]
    return f"{spec['group']}/{version}", str(spec["names"]["kind"])


def migrated(live: Json, version: str) -> dict[str, Any]:
    """Return a definition whose objects are all stored in one version."""
    return {**live, "status": {**live["status"], "storedVersions": [version]}}
