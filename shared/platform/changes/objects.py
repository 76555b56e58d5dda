"""What an object says about itself: what Flux may do with it, its release, its claims, its generated name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

from shared.json_tree import Json
from shared.kubernetes.flux_objects import NAMESPACE
from shared.language.resolve.problems import Path
from shared.platform.inventory import ObjectId

FLUX = "toolkit.fluxcd.io"
KUSTOMIZE, HELM, SOURCE = f"kustomize.{FLUX}", f"helm.{FLUX}", f"source.{FLUX}"
IMAGE, NOTIFICATION = f"image.{FLUX}", f"notification.{FLUX}"
DEFINITION = "CustomResourceDefinition"


def value_at(document: Any, path: str | tuple[str, ...]) -> Any:
    """Return the value at a path such as ``spec.chart``, None for none; a manifest may have any form."""
    for step in path.split(".") if isinstance(path, str) else path:
        document = document.get(step) if isinstance(document, Mapping) else None
    return document


def mapping_at(document: Any, path: str | tuple[str, ...]) -> Json:
    """Return the object at a path, {} where there is none."""
    return mapping(value_at(document, path))


def mapping(value: Any) -> Mapping[str, Any]:
    """Return an object as it is, and {} for any other value."""
    return value if isinstance(value, Mapping) else {}


def items(value: Any) -> Sequence[Any]:
    """Return a list as it is, and () for any other value."""
    return value if isinstance(value, list | tuple) else ()


def objects_in(value: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the objects of a list, each with its number."""
    for number, item in enumerate(items(value)):
        if isinstance(item, Mapping):
            yield number, item


def is_open(value: Any) -> bool:
    """Return whether a value has a variable that nobody here knows the value of, as one of a Secret."""
    return isinstance(value, str) and "${" in value


WORKLOADS = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")
PODS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("", "Pod"): ("spec",),
    **{("apps", kind): ("spec", "template", "spec") for kind in WORKLOADS},
    ("batch", "Job"): ("spec", "template", "spec"),
    ("batch", "CronJob"): ("spec", "jobTemplate", "spec", "template", "spec"),
}


class PodTemplate(NamedTuple):
    """The pod that an object asks for, and where its spec is written."""

    path: tuple[str, ...]
    spec: Json
    labels: Json

    @classmethod
    def of(cls, name: ObjectId, manifest: Json) -> Self | None:
        """Return the pod of an object, None for a kind without one."""
        path = PODS.get((name.group, name.kind))
        if path is None:
            return None
        return cls(path, mapping_at(manifest, path), mapping_at(manifest, (*path[:-1], "metadata", "labels")))

    def containers(self, *parts: str) -> Iterator[tuple[Path, Json]]:
        """Yield its containers with their places: by default all, those that run first before the others."""
        for part in parts or ("initContainers", "containers"):
            for number, container in objects_in(self.spec.get(part)):
                yield (*self.path, part, number), container


def is_owner(name: ObjectId) -> bool:
    """Return whether an object is a Kustomization of Flux."""
    return (name.group, name.kind) == (KUSTOMIZE, "Kustomization")


def is_definition(name: ObjectId) -> bool:
    """Return whether an object is a CustomResourceDefinition."""
    return (name.group, name.kind) == ("apiextensions.k8s.io", DEFINITION)


def is_asleep(name: ObjectId, old: Json, new: Json) -> bool:
    """Return whether an object of Flux is suspended and stays so, so that its controller does nothing."""
    if not name.group.endswith(FLUX):
        return False
    return all(bool(value_at(manifest, "spec.suspend")) for manifest in (old, new))


_CONTROLLERS = ("source-controller", "kustomize-controller", "helm-controller")


def is_controller(name: ObjectId) -> bool:
    """Return whether an object is a controller without which Flux brings nothing to the cluster any more."""
    return name[:3] == ("apps", "Deployment", NAMESPACE) and name.name in _CONTROLLERS


def carries_flux(name: ObjectId, manifest: Json) -> bool:
    """Return whether Flux brings nothing to a cluster without an object: a controller, its account or rights.

    Source: fluxcd/flux2 ``manifests/rbac/reconciler.yaml``: the controllers are bound to cluster-admin.
    """
    if name[:3] == ("", "ServiceAccount", NAMESPACE):
        return name.name in _CONTROLLERS
    if name.kind != "ClusterRoleBinding" or value_at(manifest, "roleRef.name") != "cluster-admin":
        return is_controller(name)
    return any(
        value_at(subject, "kind") == "ServiceAccount"
        and (value_at(subject, "namespace"), value_at(subject, "name")) == (NAMESPACE, _CONTROLLERS[1])
        for subject in items(manifest.get("subjects"))
    )


def stops(name: ObjectId, old: Json, new: Json) -> bool:
    """Return whether a controller of Flux loses all of its pods."""
    counts = [value_at(manifest, "spec.replicas") for manifest in (old, new)]
    return is_controller(name) and counts[1] == 0 and counts[0] != 0


_HASHED = re.compile(r"(.+)-[245-9bcdfghkmt]{10}")
"""A name with the hash that kustomize adds: kubernetes-sigs/kustomize ``api/hasher/hasher.go``."""


def stem(name: ObjectId) -> str:
    """Return the name of a generated ConfigMap or Secret without its hash, "" for another object."""
    found = _HASHED.fullmatch(name.name) if name.kind in ("ConfigMap", "Secret") and not name.group else None
    return found[1] if found else ""


_SKIPPED = (("reconcile", "disabled"), ("ssa", "Ignore"))


def is_skipped(manifest: Json) -> bool:
    """Return whether Flux does not apply an object of an active Kustomization."""
    return any(is_marked(manifest, *mark) for mark in _SKIPPED)


def is_protected(manifest: Json) -> bool:
    """Return whether an object is not pruned, because its annotation on the cluster says so."""
    return is_marked(manifest, "prune", "disabled") and not is_skipped(manifest)


def is_marked(manifest: Json, mark: str, value: str) -> bool:
    """Return whether an annotation or label of Flux has a value; letter case does not count."""
    for part in ("labels", "annotations"):
        found = mapping_at(manifest, f"metadata.{part}").get(f"{KUSTOMIZE}/{mark}")
        if str(found).lower() == value.lower():
            return True
    return False


def kind_defined(definition: Json) -> tuple[str, str]:
    """Return the group and the kind that a definition has."""
    group, kind = (value_at(definition, path) for path in ("spec.group", "spec.names.kind"))
    return str(group or ""), str(kind or "")


# Releases of Helm


def is_suspended_release(name: ObjectId, manifest: Json) -> bool:
    """Return whether a HelmRelease is suspended, so that its deletion uninstalls nothing.

    Source: helm-controller ``internal/controller/helmrelease_controller.go``, ``reconcileDelete``.
    """
    return is_release(name) and bool(value_at(manifest, "spec.suspend"))


def is_release(name: ObjectId) -> bool:
    """Return whether an object is a HelmRelease."""
    return (name.group, name.kind) == (HELM, "HelmRelease")


def other_release(name: ObjectId, old: Json, new: Json) -> str:
    """Return the field by which a HelmRelease gets another release, "" for none.

    The old one is uninstalled then (helm-controller ``internal/action/verify.go``, ``ReleaseTargetChanged``).
    """
    if not is_release(name):
        return ""
    before, after = (release_target(name, manifest) for manifest in (old, new))
    found = (field for field in before if before[field] != after[field])
    return next((field for field in found if before[field] and after[field]), "")


def release_target(name: ObjectId, manifest: Json) -> Mapping[str, str]:
    """Return what says which release it is (helm-controller ``api/v2``, ``GetReleaseName`` and its like)."""
    spec = mapping_at(manifest, "spec")
    namespace = str(spec.get("targetNamespace") or "")
    chart = value_at(spec, "chart.spec.chart")
    return {
        "spec.targetNamespace": namespace or name.namespace,
        "spec.releaseName": str(spec.get("releaseName") or "-".join(filter(None, (namespace, name.name)))),
        "spec.storageNamespace": str(spec.get("storageNamespace") or name.namespace),
        "spec.chart.spec.chart": str(chart or "").rstrip("/").rpartition("/")[2],
    }


def loses_claims(old: Json, new: Json) -> bool:
    """Return whether a StatefulSet gets fewer replicas, and deletes the claims of those that go.

    kubernetes.io, "StatefulSets", PersistentVolumeClaim retention: ``whenScaled``.
    """
    if new.get("kind") != "StatefulSet" or claims_go(new, "whenScaled") is False:
        return False
    counts = [mapping_at(manifest, "spec").get("replicas", 1) for manifest in (old, new)]
    return all(isinstance(count, int) for count in counts) and counts[1] < counts[0]


def claims_go(manifest: Json, when: str) -> bool:
    """Return whether a StatefulSet's claims go with it, ``whenDeleted``, or with replicas, ``whenScaled``."""
    return bool(value_at(manifest, f"spec.persistentVolumeClaimRetentionPolicy.{when}") == "Delete")
