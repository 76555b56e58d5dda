"""What a HelmRelease says of its release, and what the helm-controller writes on the objects of one.

Source: ``fluxcd/helm-controller`` v1.4 (``api/v2/helmrelease_types.go``, ``api/v2/snapshot_types.go``, the
labels of ``internal/postrender``); ``helm.sh/helm`` (``pkg/action/validate.go``, its labels and annotations).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from localcloud.flux.flux_conditions import ObjectNotReady
from localcloud.flux.helm.helm_templates import Chart, Release
from localcloud.flux.inventory import ClusterClient
from localcloud.kubernetes.world.object_store import At

GROUP = "helm.toolkit.fluxcd.io"


def release_name(at: At, spec: Mapping[str, Any]) -> str:
    """Return the name of the release of an object."""
    given = spec.get("releaseName")
    target = spec.get("targetNamespace")
    return str(given or (f"{target}-{at.name}" if target else at.name))


def failed(action: str, release: Release, chart: Chart, text: str) -> str:
    """Return the message of a failed action."""
    named = f"{release.namespace}/{release.name} with chart {chart.name}@{chart.version}"
    return f"Helm {action} failed for release {named}: {text}"


def origin_labels(at: At) -> dict[str, str]:
    """Return the labels of the objects that belong to a HelmRelease."""
    return {f"{GROUP}/name": at.name, f"{GROUP}/namespace": at.namespace}


def marked(client: ClusterClient, item: Mapping[str, Any], at: At, release: Release) -> dict[str, Any]:
    """Return an object with the labels and annotations of its release, in the namespace of the release."""
    metadata = dict(item["metadata"])
    metadata["labels"] = {
        **(metadata.get("labels") or {}),
        "app.kubernetes.io/managed-by": "Helm",
        **origin_labels(at),
    }
    about = {"meta.helm.sh/release-name": release.name, "meta.helm.sh/release-namespace": release.namespace}
    metadata["annotations"] = {**(metadata.get("annotations") or {}), **about}
    kind = client.kind(item["apiVersion"], item["kind"])
    if (kind is None or kind.namespaced) and "namespace" not in metadata:
        metadata["namespace"] = release.namespace
    return {**item, "metadata": metadata}


def place(client: ClusterClient, item: Mapping[str, Any]) -> At:
    """Return where an object of a release is; raise NotReady when its kind is not served."""
    kind, metadata = client.kind(item["apiVersion"], item["kind"]), item["metadata"]
    if kind is None:
        raise ObjectNotReady(
            "InstallFailed", f'no matches for kind "{item["kind"]}" in version "{item["apiVersion"]}"'
        )
    return At(kind, metadata["name"], metadata.get("namespace", "") if kind.namespaced else "")


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return values merged as Helm does: maps field by field, everything else replaced."""
    whole = dict(below)
    for name, value in above.items():
        before = whole.get(name)
        is_map = isinstance(before, Mapping) and isinstance(value, Mapping)
        whole[name] = merged(before, value) if is_map else value  # type: ignore[arg-type]
    return whole


def snapshot_of(
    release: Release, chart: Chart, digest: str, history: Sequence[Any], now: str
) -> dict[str, Any]:
    """Return the entry of ``status.history`` of a release that begins now."""
    return {
        "name": release.name,
        "namespace": release.namespace,
        "version": release.revision,
        "status": "pending-install" if release.revision == 1 else "pending-upgrade",
        "chartName": chart.name,
        "chartVersion": chart.version,
        "appVersion": chart.app_version,
        "configDigest": f"sha256:{digest}",
        "digest": f"sha256:{hashlib.sha256(repr((chart.version, digest)).encode()).hexdigest()}",
        "firstDeployed": history[-1]["firstDeployed"] if history else now,
        "lastDeployed": now,
    }
