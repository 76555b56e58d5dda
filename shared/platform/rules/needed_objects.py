"""What objects need by name is there, with the keys and ports that they need of it.

The API server takes a workload whose account or ConfigMap is missing; its pods never start. Source of the
classes that AKS has: learn.microsoft.com/azure/aks/concepts-storage.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shared.json_tree import Json
from shared.kubernetes.flux_objects import NAMESPACE
from shared.platform.changes.needs import ALWAYS_SAID, ObjectNeed, asks, needs_of
from shared.platform.changes.objects import (
    FLUX,
    HELM,
    KUSTOMIZE,
    is_open,
    mapping,
    mapping_at,
    objects_in,
    value_at,
)
from shared.platform.inventory import ObjectId
from shared.platform.rules.finding import ClusterPlatform, Finding, texts_in
from shared.platform.rules.references import meant

_KNOWN_GROUPS = (
    "",
    "apps",
    "batch",
    "autoscaling",
    "policy",
    "networking.k8s.io",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "gateway.networking.k8s.io",
)
_FILLED = ("Merge", "IfNotPresent")
"""The values of Flux's annotation ``ssa`` of an object that others may write."""
_SURE = ("ServiceAccount", "PriorityClass", "ConfigMap", "PersistentVolumeClaim")
"""Kinds of which a name that is a slip of another one is a fault; many things create the others."""


def missing_objects(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield what objects need and nothing defines: faults where that is certain, notes otherwise.

    What a chart or another controller brings is not known. So nothing is said of a name where there are
    charts, unless it is nearly one that is there, or Flux itself or the API server needs it; nor of one that
    an object of another kind has, such as the Secret of an ExternalSecret.
    """
    is_certain = platform.is_sure
    own = {owned.id.name for owned in platform.of_kind("", "Namespace")}
    elsewhere = {
        text
        for owned in platform.objects
        if owned.id.group not in _KNOWN_GROUPS and not owned.id.group.endswith(FLUX)
        for text in texts_in(owned.manifest)
    }
    for name, manifest, file in _referring(platform):
        for need in needs_of(name, manifest):
            wanted = need.id
            if (
                need.is_quiet
                or any(map(is_open, (wanted.name, wanted.namespace)))
                or _is_always_there(wanted)
            ):
                continue
            is_elsewhere = wanted.name in elsewhere and wanted.group in _KNOWN_GROUPS
            if wanted in platform.known:
                found = platform.known[wanted]
                for path, key in () if is_elsewhere and wanted.kind != "Service" else need.keys:
                    if found is not None and not (is_open(key) or _has(found.manifest, key)):
                        what = "port" if wanted.kind == "Service" else "key"
                        message = f"{wanted} has no {what} {key}, so {need.effect}"
                        yield Finding(file, name, path, message)
                continue
            if need.path[:2] == _CHECKS and (fault := _of_no_kind(wanted, platform)):
                path = (*need.path[:-1], "apiVersion")
                yield Finding(file, name, path, f"{fault}; until then {need.effect}")
                continue
            near, hint = meant(wanted, platform)
            is_fault = bool(near) and is_certain and wanted.kind in _SURE
            is_ours = wanted.namespace in own or wanted.group.endswith(FLUX)
            is_said = bool(near) or (is_certain and (is_ours or not wanted.namespace))
            if asks(name, wanted):
                is_said, is_fault = True, is_certain and "it is not asked" not in need.effect
            elif name[:2] in ALWAYS_SAID and (
                wanted.kind != "ServiceAccount" or wanted.namespace == NAMESPACE
            ):
                is_sure = wanted.group in (HELM, KUSTOMIZE) and platform.is_whole
                is_said, is_fault = True, is_sure or (bool(near) and wanted.kind == "ConfigMap")
            elif is_elsewhere:
                continue
            if is_said:
                message = f"nothing here defines {wanted}, and without it {need.effect}"
                hint = hint or _elsewhere(name, need, platform)
                hint = hint or "; add it, or correct the name, unless something else creates it"
                yield Finding(file, name, need.path, message + hint, is_note=not is_fault)


_CHECKS = ("spec", "healthChecks")


def _of_no_kind(wanted: ObjectId, platform: ClusterPlatform) -> str:
    """Return what is wrong with the group of a health check, "" for nothing; its version does not count.

    Report: fluxcd/kustomize-controller#373.
    """
    right = platform.kinds.right_api(wanted.group, wanted.kind)
    given = wanted.group or "the core group"
    return f"there is no {wanted.kind} in {given}; write {right}" if right else ""


def _referring(platform: ClusterPlatform) -> Iterator[tuple[ObjectId, Json, str]]:
    """Yield all objects, and the Kustomizations of the manifest of the cluster, each with its file."""
    for owned in platform.objects:
        yield owned.id, owned.manifest, owned.file
    built_here = {owned.id for owned in platform.objects}
    for owner in platform.inventory.owners.values():
        if owner.id not in built_here:
            yield owner.id, {"spec": owner.spec}, owner.file


def _elsewhere(name: ObjectId, need: ObjectNeed, platform: ClusterPlatform) -> str:
    """Return a hint where an object of Flux names one that is in another namespace, "" for none."""
    wanted = need.id
    same = (known for known in platform.known if known[:2] == wanted[:2] and known.name == wanted.name)
    found = next((known.namespace for known in same), "") if name[:2] in ALWAYS_SAID else ""
    if not found:
        return ""
    how = "write that" if need.path[:2] == _CHECKS else f"and a {name.kind} reads that of its own"
    return f"; it is in the namespace {found}, {how}"


def _has(manifest: Json, key: Any) -> bool:
    """Return whether a ConfigMap, or a Secret, has a key, or a Service a port; True where others fill it.

    ingress-nginx takes the ``targetPort`` too (``internal/ingress/controller``, ``serviceEndpoints``).
    """
    if manifest.get("kind") == "Service":
        ports = [port for _, port in objects_in(value_at(manifest, "spec.ports"))]
        named = [[port.get(field) for field in ("name", "port", "targetPort")] for port in ports]
        return not ports or any(key in names or any(map(is_open, names)) for names in named)
    data = [mapping(manifest.get(field)) for field in ("data", "binaryData", "stringData")]
    marks = mapping_at(manifest, "metadata.annotations")
    filled = any(mark in _FILLED for mark in marks.values())
    if filled or manifest.get("type") == "kubernetes.io/service-account-token" or not any(data):
        return True
    return not isinstance(key, str) or any(key in part for part in data)


def _is_always_there(wanted: ObjectId) -> bool:
    """Return whether Kubernetes, AKS or Flux itself brings an object to each cluster."""
    name = wanted.name
    match wanted.kind:
        case "ServiceAccount":
            return name == "default" or (wanted.namespace == NAMESPACE and name.endswith("-controller"))
        case "PriorityClass":
            return name.startswith("system-")
        case "ConfigMap":
            return name == "kube-root-ca.crt"
        case "ClusterRole":
            return name in ("cluster-admin", "admin", "edit", "view") or name.startswith(("system:", "flux-"))
        case "IngressClass":
            return name.startswith(("webapprouting", "azure-"))
        case "StorageClass":
            return name in ("default", "managed") or name.startswith(("managed-", "azurefile", "azureblob-"))
    return False
