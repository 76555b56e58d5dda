"""What objects of Kubernetes need by name is there: accounts, configuration, claims, Services, roles.

The API server takes a workload whose account or ConfigMap is missing; its pods never start. Sources:
kubernetes.io, "Configure Service Accounts for Pods", "Pod Priority and Preemption", "ConfigMaps", "Secrets",
"Persistent Volumes", "Ingress", "Using RBAC Authorization"; the classes that AKS has:
learn.microsoft.com/azure/aks/concepts-storage.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shared.frozen import dataclass
from shared.json_tree import Json
from shared.language.resolve.problems import Path
from shared.platform.inventory import BuiltObject, ObjectId
from shared.platform.rules.finding import (
    ClusterPlatform,
    Finding,
    is_kind,
    is_open,
    mapping,
    objects_in,
    texts_in,
)
from shared.platform.rules.pods import PODS, at
from shared.platform.rules.references import meant

_RBAC, _STORAGE, _NETWORK = "rbac.authorization.k8s.io", "storage.k8s.io", "networking.k8s.io"
_KNOWN_GROUPS = ("", "apps", "batch", "autoscaling", "policy", _NETWORK, _RBAC, _STORAGE)
_EFFECTS = {
    "ServiceAccount": "no pod of it is created",
    "PriorityClass": "no pod of it is created",
    "ConfigMap": "its pods do not start",
    "Secret": "its pods do not start",
    "PersistentVolumeClaim": "its pods do not start",
    "StorageClass": "it stays Pending",
    "Service": "nothing answers there",
    "IngressClass": "nothing answers there",
}
_FILLED = ("Merge", "IfNotPresent")
"""The values of Flux's annotation ``ssa`` of an object that others may write."""
_SURE = ("ServiceAccount", "PriorityClass", "ConfigMap", "PersistentVolumeClaim")
"""Kinds of which a name that is a slip of another one is a fault; many things create the others."""


@dataclass(frozen=True)
class _Need:
    """An object that another one needs, with the field that says so.

    ``key`` is what it needs of it, "" for the object itself: a key of its data, or the name or number of a
    port.
    """

    path: Path
    id: ObjectId
    key: Any = ""


def missing_objects(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield what objects need and nothing defines: faults where that is certain, notes otherwise.

    What a chart or another controller brings is not known. So nothing is said of a name where there are
    charts, unless it is nearly one that is there; nor of one that an object of another kind has, such as
    the Secret of an ExternalSecret.
    """
    is_certain = platform.is_whole and not platform.has_charts
    own = {name.name for _, name, _ in platform.objects if is_kind(name, "", "Namespace")}
    elsewhere = {
        text
        for _, name, built in platform.objects
        if name.group not in _KNOWN_GROUPS
        for text in texts_in(built.manifest)
    }
    for owner, name, built in platform.objects:
        for need in _needs(name, built):
            wanted, file = need.id, built.file or owner.file
            if any(map(is_open, (wanted.name, wanted.namespace, need.key))) or _is_always_there(wanted):
                continue
            if need.key:
                found = platform.known.get(wanted)
                others_fill = wanted.kind != "Service" and wanted.name in elsewhere
                if found is not None and not others_fill and not _has(found.manifest, need.key):
                    what = "port" if wanted.kind == "Service" else "key"
                    message = f"{wanted} has no {what} {need.key}, so {_effect(name, wanted)}"
                    yield Finding(file, name, need.path, message)
                continue
            if wanted in platform.known or wanted.name in elsewhere:
                continue
            near, hint = meant(wanted, platform)
            if near or (is_certain and wanted.namespace in ("", *own)):
                message = f"nothing here defines {wanted}, and without it {_effect(name, wanted)}"
                is_note = not (near and is_certain and wanted.kind in _SURE)
                hint = hint or "; add it, or correct the name, unless something else creates it"
                yield Finding(file, name, need.path, message + hint, is_note=is_note)


def selects_nothing(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield a note for each Service, or budget, that selects no pod, and each port that none of them has."""
    if not platform.is_whole or platform.has_charts:
        return
    pods = [
        (
            name.namespace,
            mapping(at(built.manifest, (*path[:-1], "metadata", "labels"))),
            at(built.manifest, path),
        )
        for _, name, built in platform.objects
        if (path := PODS.get((name.group, name.kind)))
    ]
    for owner, name, built in platform.objects:
        spec = mapping(built.manifest.get("spec"))
        if is_kind(name, "", "Service"):
            field: Path = ("spec", "selector")
            wanted = mapping(spec.get("selector"))
        elif is_kind(name, "policy", "PodDisruptionBudget"):
            field, wanted = (
                ("spec", "selector", "matchLabels"),
                mapping(at(spec, ("selector", "matchLabels"))),
            )
        else:
            continue
        chosen = [
            pod for where, labels, pod in pods if where == name.namespace and wanted.items() <= labels.items()
        ]
        if not wanted or any(map(is_open, wanted.values())):
            continue
        file = built.file or owner.file
        if not chosen:
            labels = ", ".join(f"{key}={value}" for key, value in wanted.items())
            message = f"no pod of {name.namespace} here has {labels}, so {name} is for nothing; correct it"
            yield Finding(
                file, name, field, f"{message}, unless something else creates its pods", is_note=True
            )
            continue
        names = {
            str(port.get("name"))
            for pod in chosen
            for part in ("initContainers", "containers")
            for _, container in objects_in(mapping(pod).get(part))
            for _, port in objects_in(container.get("ports"))
        }
        for number, port in objects_in(spec.get("ports") if name.kind == "Service" else None):
            target = port.get("targetPort")
            if isinstance(target, str) and target not in names and not is_open(target):
                message = (
                    f"no port of the pods that this selects is called {target}, so nothing answers there"
                )
                yield Finding(file, name, ("spec", "ports", number, "targetPort"), message, is_note=True)


def _effect(name: ObjectId, wanted: ObjectId) -> str:
    if name.kind in ("RoleBinding", "ClusterRoleBinding"):
        return "the binding gives no rights"
    if name.kind == "HorizontalPodAutoscaler":
        return "it scales nothing"
    return _EFFECTS.get(wanted.kind, "it does not work")


def _has(manifest: Json, key: Any) -> bool:
    """Return whether a ConfigMap, or a Secret, has a key, or a Service a port; True where others fill it."""
    if manifest.get("kind") == "Service":
        ports = [port for _, port in objects_in(at(manifest, ("spec", "ports")))]
        named = [(port.get("name"), port.get("port")) for port in ports]
        return not ports or any(key in names or any(map(is_open, names)) for names in named)
    data = [mapping(manifest.get(field)) for field in ("data", "binaryData", "stringData")]
    marks = mapping(at(manifest, ("metadata", "annotations")))
    filled = any(mark in _FILLED for mark in marks.values())
    if filled or manifest.get("type") == "kubernetes.io/service-account-token" or not any(data):
        return True
    return not isinstance(key, str) or any(key in part for part in data)


def _is_always_there(wanted: ObjectId) -> bool:
    """Return whether Kubernetes, AKS or Flux itself brings an object to each cluster."""
    name = wanted.name
    match wanted.kind:
        case "ServiceAccount":
            return name == "default"
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


def _needs(name: ObjectId, built: BuiltObject) -> Iterator[_Need]:
    manifest, namespace = built.manifest, name.namespace
    spec = mapping(manifest.get("spec"))
    if path := PODS.get((name.group, name.kind)):
        yield from _of_pod(mapping(at(manifest, path)), path, namespace)
    if is_kind(name, "apps", "StatefulSet"):
        for number, claim in objects_in(spec.get("volumeClaimTemplates")):
            yield from _class_of(claim, ("spec", "volumeClaimTemplates", number))
    elif is_kind(name, "", "PersistentVolumeClaim"):
        yield from _class_of(manifest, ())
    elif is_kind(name, "autoscaling", "HorizontalPodAutoscaler"):
        ref = mapping(spec.get("scaleTargetRef"))
        group = str(ref.get("apiVersion") or "apps/v1").rpartition("/")[0]
        if group == "apps" and ref.get("name"):
            target = ObjectId(group, str(ref.get("kind")), namespace, str(ref["name"]))
            yield _Need(("spec", "scaleTargetRef", "name"), target)
    elif is_kind(name, _RBAC, "RoleBinding", "ClusterRoleBinding"):
        ref = mapping(manifest.get("roleRef"))
        where = namespace if ref.get("kind") == "Role" else ""
        yield _Need(("roleRef", "name"), ObjectId(_RBAC, str(ref.get("kind")), where, str(ref.get("name"))))
        for number, subject in objects_in(manifest.get("subjects")):
            if subject.get("kind") == "ServiceAccount":
                where = str(subject.get("namespace") or namespace)
                target = ObjectId("", "ServiceAccount", where, str(subject.get("name")))
                yield _Need(("subjects", number, "name"), target)
    elif is_kind(name, _NETWORK, "Ingress"):
        if spec.get("ingressClassName"):
            target = ObjectId(_NETWORK, "IngressClass", "", str(spec["ingressClassName"]))
            yield _Need(("spec", "ingressClassName"), target)
        yield from _backend(spec.get("defaultBackend"), ("spec", "defaultBackend"), namespace)
        for number, rule in objects_in(spec.get("rules")):
            for place, entry in objects_in(at(rule, ("http", "paths"))):
                at_path = ("spec", "rules", number, "http", "paths", place, "backend")
                yield from _backend(entry.get("backend"), at_path, namespace)


def _class_of(claim: Mapping[str, Any], path: Path) -> Iterator[_Need]:
    storage = at(claim, ("spec", "storageClassName"))
    if storage and isinstance(storage, str):
        yield _Need((*path, "spec", "storageClassName"), ObjectId(_STORAGE, "StorageClass", "", storage))


def _backend(backend: Any, path: Path, namespace: str) -> Iterator[_Need]:
    service = mapping(mapping(backend).get("service"))
    if service.get("name"):
        port = mapping(service.get("port"))
        target = ObjectId("", "Service", namespace, str(service["name"]))
        yield _Need((*path, "service", "name"), target)
        for field in ("name", "number"):
            if port.get(field):
                yield _Need((*path, "service", "port", field), target, port[field])


def _of_pod(spec: Mapping[str, Any], path: Path, namespace: str) -> Iterator[_Need]:
    account, priority = spec.get("serviceAccountName"), spec.get("priorityClassName")
    if account:
        yield _Need((*path, "serviceAccountName"), ObjectId("", "ServiceAccount", namespace, str(account)))
    if priority:
        target = ObjectId("scheduling.k8s.io", "PriorityClass", "", str(priority))
        yield _Need((*path, "priorityClassName"), target)
    for number, volume in objects_in(spec.get("volumes")):
        where: Path = (*path, "volumes", number)
        yield from _source(volume, where, namespace)
        for place, source in objects_in(at(volume, ("projected", "sources"))):
            yield from _source(source, (*where, "projected", "sources", place), namespace)
        claim = at(volume, ("persistentVolumeClaim", "claimName"))
        if claim:
            target = ObjectId("", "PersistentVolumeClaim", namespace, str(claim))
            yield _Need((*where, "persistentVolumeClaim", "claimName"), target)
    for field in ("initContainers", "containers"):
        for number, container in objects_in(spec.get(field)):
            for place, variable in objects_in(container.get("env")):
                at_value = (*path, field, number, "env", place, "valueFrom")
                yield from _source(mapping(variable.get("valueFrom")), at_value, namespace)
            for place, source in objects_in(container.get("envFrom")):
                yield from _source(source, (*path, field, number, "envFrom", place), namespace)


_SOURCES = {
    "configMap": ("ConfigMap", "name"),
    "configMapRef": ("ConfigMap", "name"),
    "configMapKeyRef": ("ConfigMap", "name"),
    "secret": ("Secret", "secretName"),
    "secretRef": ("Secret", "name"),
    "secretKeyRef": ("Secret", "name"),
}
"""The fields that name configuration, in a volume, a variable or a list of variables."""


def _source(given: Mapping[str, Any], path: Path, namespace: str) -> Iterator[_Need]:
    for field, (kind, named_in) in _SOURCES.items():
        ref = mapping(given.get(field))
        named_by = named_in if named_in in ref else "name"
        if not ref.get(named_by) or ref.get("optional"):
            continue
        target = ObjectId("", kind, namespace, str(ref[named_by]))
        yield _Need((*path, field, named_by), target)
        if ref.get("key"):
            yield _Need((*path, field, "key"), target, ref["key"])
        for number, item in objects_in(ref.get("items")):
            yield _Need((*path, field, "items", number, "key"), target, item.get("key") or "")
