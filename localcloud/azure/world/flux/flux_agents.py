"""What the Flux extension does in a cluster: it installs Flux, and its agents apply and report.

Names of objects and the form of a report are those that Microsoft's pages show
(learn.microsoft.com/azure/azure-arc/kubernetes/conceptual-gitops-flux2 and tutorial-use-gitops-flux2). The
Flux that is installed is the small one of the local cloud.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any

from localcloud.common.control_plane import InsideCluster
from localcloud.common.flux_manifests import APPLIED, KINDS, NAMESPACE, definition, deployment
from shared.json_tree import Json

_CONTROLLERS = ("source-controller", "kustomize-controller", "fluxconfig-agent", "fluxconfig-controller")
_OWNER = "kustomize.toolkit.fluxcd.io"
_STATES = {"True": "Compliant", "False": "Non-Compliant"}
_WORST = ("Non-Compliant", "Suspended", "Pending", "Compliant")


def install(cluster: InsideCluster) -> None:
    """Install Flux with the agents."""
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    for kind in KINDS:
        cluster.apply(definition(kind))
    for name in _CONTROLLERS:
        cluster.apply(deployment(name, f"mcr.microsoft.com/oss/fluxcd/{name}:v1"))


def apply(cluster: InsideCluster, name: str, properties: Json, protected: Mapping[str, str]) -> None:
    """Apply a configuration: its Secret, source and Kustomizations; delete those that it lacks now."""
    namespace = str(properties["namespace"])
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    if protected.get("httpsKey"):
        user = str(properties["gitRepository"].get("httpsUser") or "")
        data = {"username": base64.b64encode(user.encode()).decode(), "password": protected["httpsKey"]}
        cluster.apply(_object("v1", "Secret", f"{name}-auth", namespace, type="Opaque", data=data))
    for manifest in _objects(name, namespace, properties, with_secret=bool(protected.get("httpsKey"))):
        cluster.apply(manifest)
    wanted = {f"{name}-{kustomization}" for kustomization in properties.get("kustomizations") or {}}
    for live in _own(cluster, name, namespace):
        called = live["metadata"]["name"]
        if called not in wanted:
            cluster.delete(APPLIED, "Kustomization", called, namespace)


def remove(cluster: InsideCluster, name: str, properties: Json) -> None:
    """Delete the objects of a configuration; Flux then prunes what they applied."""
    namespace = str(properties["namespace"])
    for live in _own(cluster, name, namespace):
        cluster.delete(APPLIED, "Kustomization", live["metadata"]["name"], namespace)
    kind = _kind_of(properties)
    cluster.delete(KINDS[kind][0], kind, name, namespace)


def report(cluster: InsideCluster, name: str, properties: Json) -> dict[str, Any]:
    """Return what Azure shows of a configuration's objects, and of those that they applied."""
    namespace = str(properties["namespace"])
    kind = _kind_of(properties)
    sources = [
        document for document in cluster.list(KINDS[kind][0], kind) if _place(document) == (namespace, name)
    ]
    own = list(_own(cluster, name, namespace))
    children = [
        entry
        for kind, (api_version, _) in KINDS.items()
        for entry in cluster.list(api_version, kind)
        if _parent(entry) in {_place(parent) for parent in own}
        and _place(entry) not in {_place(document) for document in own}
    ]
    statuses = [_status(document) for document in (*sources, *own, *children)]
    states = {status["complianceState"] for status in statuses} or {"Pending"}
    shown: dict[str, Any] = {
        "statuses": statuses,
        "complianceState": next(state for state in _WORST if state in states),
    }
    artifact = ((sources[0].get("status") or {}).get("artifact") or {}) if sources else {}
    if artifact:
        shown |= {
            "sourceSyncedCommitId": artifact["revision"],
            "sourceUpdatedAt": artifact["lastUpdateTime"],
        }
    return shown


def _kind_of(properties: Json) -> str:
    kind = str(properties["sourceKind"])
    return "Bucket" if kind == "AzureBlob" else kind


def _own(cluster: InsideCluster, name: str, namespace: str) -> Iterator[Json]:
    label = {"clusterconfig.azure.com/name": name}
    for document in cluster.list(APPLIED, "Kustomization"):
        labels = document["metadata"].get("labels") or {}
        if document["metadata"].get("namespace") == namespace and label.items() <= labels.items():
            yield document


def _place(document: Json) -> tuple[str, str]:
    return str(document["metadata"].get("namespace", "")), str(document["metadata"]["name"])


def _parent(document: Json) -> tuple[str, str]:
    labels = document["metadata"].get("labels") or {}
    return str(labels.get(f"{_OWNER}/namespace", "")), str(labels.get(f"{_OWNER}/name", ""))


def _status(document: Json) -> dict[str, Any]:
    conditions = (document.get("status") or {}).get("conditions") or ()
    ready: Json = next((condition for condition in conditions if condition["type"] == "Ready"), {})
    current = ready.get("observedGeneration") == document["metadata"].get("generation")
    state = _STATES.get(str(ready.get("status")), "Pending") if current else "Pending"
    namespace, parent = _parent(document)
    fields = ("lastTransitionTime", "message", "reason", "status", "type")
    return {
        "name": document["metadata"]["name"],
        "namespace": document["metadata"].get("namespace"),
        "kind": document["kind"],
        "complianceState": "Suspended" if document["spec"].get("suspend") else state,
        "appliedBy": {"name": parent, "namespace": namespace} if parent else None,
        "statusConditions": [{field: condition.get(field) for field in fields} for condition in conditions],
        "helmReleaseProperties": None,
    }


def _objects(name: str, namespace: str, properties: Json, *, with_secret: bool) -> Iterator[dict[str, Any]]:
    labels = {"clusterconfig.azure.com/name": name}
    suspend = bool(properties.get("suspend"))
    kind = _kind_of(properties)
    section = {
        "GitRepository": "gitRepository",
        "OCIRepository": "ociRepository",
        "Bucket": "bucket",
        "AzureBlob": "azureBlob",
    }[str(properties["sourceKind"])]
    given = properties[section]
    source = {"interval": f"{given.get('syncIntervalInSeconds') or 600}s", "suspend": suspend}
    source |= {"url": given["url"]} if kind != "Bucket" else {"endpoint": given["url"]}
    if given.get("repositoryRef"):
        source["ref"] = given["repositoryRef"]
    secret = f"{name}-auth" if with_secret else given.get("localAuthRef")
    if secret:
        source["secretRef"] = {"name": secret}
    yield _object(KINDS[kind][0], kind, name, namespace, labels, spec=source)
    for key, kustomization in (properties.get("kustomizations") or {}).items():
        spec = {
            "sourceRef": {"kind": kind, "name": name},
            "path": kustomization.get("path") or "",
            "prune": bool(kustomization.get("prune")),
            "wait": bool(kustomization.get("wait")),
            "interval": f"{kustomization.get('syncIntervalInSeconds') or 600}s",
            "timeout": f"{kustomization.get('timeoutInSeconds') or 600}s",
            "dependsOn": [
                {"name": f"{name}-{document}"} for document in kustomization.get("dependsOn") or ()
            ],
            "suspend": suspend,
        }
        if kustomization.get("postBuild") is not None:
            spec["postBuild"] = kustomization["postBuild"]
        yield _object(APPLIED, "Kustomization", f"{name}-{key}", namespace, labels, spec=spec)


def _object(
    api_version: str,
    kind: str,
    name: str,
    namespace: str,
    labels: Mapping[str, str] | None = None,
    **rest: Any,
) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "namespace": namespace}
    if labels:
        metadata["labels"] = dict(labels)
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}
