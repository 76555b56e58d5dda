"""The fields of Kubernetes' objects that never change once an object exists: a table of data.

The API server refuses such a change. kustomize-controller then stops the whole path, or deletes the object
and creates it again where that is forced (fluxcd/pkg ``ssa/manager_apply.go``, ``shouldForceApply``). The
source of an entry is the function of kubernetes/kubernetes ``pkg/apis/<group>/validation/validation.go``, if
no file is named. A definition's own rule ``self == oldSelf`` (kubernetes.io, "Enforce CRD Immutability with
CEL Transition Rules") counts as an entry for the objects of its kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from shared.frozen import dataclass
from shared.json_tree import Json, path_text
from shared.platform.changes.comparison import quantity, value_differences
from shared.platform.changes.objects import items, kind_defined, mapping_at, objects_in, value_at
from shared.platform.inventory import ObjectId

_Only = Literal["", "immutable", "both", "cluster-ip", "first", "claim", "unfinished"]


@dataclass(frozen=True)
class FixedField:
    """A field that never changes, with all below it but ``mutable``; ``absent`` is what no value means.

    ``only`` is when it is fixed: once the object is ``immutable``; where ``both`` sides have a value; the
    ``first`` of a list, where both have one; as the address of a Service, or the request of a claim, which
    may grow; for a Job that stays when it has finished.
    """

    group: str
    kind: str
    path: str
    source: str
    mutable: tuple[str, ...] = ()
    absent: Any = None
    only: _Only = ""


def _each(group: str, kinds: str, paths: str, source: str, only: _Only = "") -> Iterator[FixedField]:
    for kind in kinds.split():
        for path in paths.split():
            yield FixedField(group, kind, path, source, only=only)


_APPS = "pkg/registry/apps/*/strategy.go, ValidateUpdate"
_CLAIM = "ValidatePersistentVolumeClaimUpdate"
FIXED = (
    FixedField(
        "apps",
        "StatefulSet",
        "spec",
        "ValidateStatefulSetUpdate",
        (
            "replicas",
            "ordinals",
            "template",
            "updateStrategy",
            "revisionHistoryLimit",
            "persistentVolumeClaimRetentionPolicy",
            "minReadySeconds",
        ),
        {"podManagementPolicy": "OrderedReady"},
    ),
    *_each("apps", "Deployment DaemonSet ReplicaSet", "spec.selector", _APPS),
    *_each("batch", "Job", "spec.template spec.selector", "ValidateJobSpecUpdate", "unfinished"),
    FixedField(
        "batch", "Job", "spec.completionMode", "ValidateJobSpecUpdate", absent="NonIndexed", only="unfinished"
    ),
    *_each(
        "batch",
        "Job",
        "spec.podFailurePolicy spec.successPolicy spec.backoffLimitPerIndex spec.managedBy",
        "ValidateJobSpecUpdate",
        "unfinished",
    ),
    *_each("", "Service", "spec.clusterIP", "ValidateServiceUpdate", "cluster-ip"),
    *_each("", "Service", "spec.loadBalancerClass", "validateLoadBalancerClassField", "both"),
    *_each(
        "", "Service", "spec.ipFamilies", "ValidateServiceUpdate, validateUpgradeDowngradeIPFamilies", "first"
    ),
    FixedField(
        "",
        "PersistentVolumeClaim",
        "spec",
        _CLAIM,
        ("resources", "volumeAttributesClassName"),
        {"volumeMode": "Filesystem"},
    ),
    *_each("", "PersistentVolumeClaim", "spec.resources.requests.storage", _CLAIM, "claim"),
    FixedField(
        "",
        "PersistentVolume",
        "spec",
        "ValidatePersistentVolumeUpdate",
        (
            "capacity",
            "accessModes",
            "claimRef",
            "persistentVolumeReclaimPolicy",
            "storageClassName",
            "mountOptions",
            "nodeAffinity",
            "volumeAttributesClassName",
        ),
        {"volumeMode": "Filesystem"},
    ),
    *_each("", "ConfigMap", "data binaryData immutable", "ValidateConfigMapUpdate", "immutable"),
    *_each("", "Secret", "data stringData immutable", "ValidateSecretUpdate", "immutable"),
    FixedField("", "Secret", "type", "ValidateSecretUpdate", absent="Opaque"),
    FixedField(
        "",
        "Pod",
        "spec",
        "ValidatePodUpdate",
        (
            "containers",
            "initContainers",
            "activeDeadlineSeconds",
            "tolerations",
            "terminationGracePeriodSeconds",
            "schedulingGates",
        ),
    ),
    *_each("storage.k8s.io", "StorageClass", "provisioner parameters", "ValidateStorageClassUpdate"),
    FixedField(
        "storage.k8s.io",
        "StorageClass",
        "reclaimPolicy",
        "ValidateStorageClassUpdate",
        absent="Delete",
    ),
    FixedField(
        "storage.k8s.io",
        "StorageClass",
        "volumeBindingMode",
        "ValidateStorageClassUpdate",
        absent="Immediate",
    ),
    FixedField("storage.k8s.io", "CSIDriver", "spec.attachRequired", "ValidateCSIDriverUpdate", absent=True),
    *_each(
        "storage.k8s.io",
        "VolumeAttributesClass",
        "driverName parameters",
        "ValidateVolumeAttributesClassUpdate",
    ),
    *_each("rbac.authorization.k8s.io", "RoleBinding", "roleRef", "ValidateRoleBindingUpdate"),
    *_each("rbac.authorization.k8s.io", "ClusterRoleBinding", "roleRef", "ValidateClusterRoleBindingUpdate"),
    FixedField("scheduling.k8s.io", "PriorityClass", "value", "ValidatePriorityClassUpdate", absent=0),
    FixedField(
        "scheduling.k8s.io",
        "PriorityClass",
        "preemptionPolicy",
        "ValidatePriorityClassUpdate",
        absent="PreemptLowerPriority",
    ),
    *_each("networking.k8s.io", "IngressClass", "spec.controller", "ValidateIngressClassUpdate"),
    *_each("node.k8s.io", "RuntimeClass", "handler", "ValidateRuntimeClassUpdate"),
    *_each("discovery.k8s.io", "EndpointSlice", "addressType", "ValidateEndpointSliceUpdate"),
    *_each("resource.k8s.io", "ResourceClaim ResourceClaimTemplate", "spec", "ValidateResourceClaimUpdate"),
    *_each(
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        "spec.group spec.scope spec.names.kind spec.names.plural",
        "apiextensions-apiserver pkg/apis/apiextensions/validation, ValidateCustomResourceDefinitionUpdate",
    ),
)

Definitions = Mapping[tuple[str, str], tuple[FixedField, ...]]
"""The entries that definitions add, by group and kind."""
_NO_DEFINITIONS: Definitions = {}


def fixed_field(old: Json, new: Json, definitions: Definitions = _NO_DEFINITIONS) -> str:
    """Return the first field that differs and never changes, "" for none."""
    group, kind = ObjectId.of(new)[:2]
    known = (entry for entry in FIXED if (entry.group, entry.kind) == (group, kind))
    for entry in (*known, *definitions.get((group, kind), ())):
        if found := _refused(entry, old, new):
            return found
    return lost_version(old, new, "storage") and "spec.versions"


def lost_version(old: Json, new: Json, what: Literal["storage", "served"]) -> str:
    """Return a version that a definition stores or serves and loses, "" for none.

    A version that objects may be stored in must stay (``ValidateCustomResourceDefinitionStoredVersions``).
    """
    if ObjectId.of(new).kind != "CustomResourceDefinition":
        return ""
    before = [version["name"] for version in _versions(old) if version.get(what)]
    after = {version["name"] for version in _versions(new) if what == "storage" or version.get(what)}
    return next((str(name) for name in before if name not in after), "")


def _versions(definition: Json) -> Iterator[Json]:
    versions = objects_in(value_at(definition, "spec.versions"))
    return (version for _, version in versions if "name" in version)


def _refused(entry: FixedField, old: Json, new: Json) -> str:
    before, after = (_at(side, entry) for side in (old, new))
    if entry.only == "first":
        before, after = (items(side)[:1] or None for side in (before, after))
    if not _applies(entry, old, new, before, after):
        return ""
    below = next(iter(value_differences(_plain(before), _plain(after))), None)
    return ".".join(filter(None, (entry.path, path_text(below[0])))) if below else ""


def _applies(entry: FixedField, old: Json, new: Json, before: Any, after: Any) -> bool:
    match entry.only:
        case "immutable":
            return old.get("immutable") is True
        case "both" | "first":
            return before is not None and after is not None
        case "cluster-ip":  # one that is not given stays as it is
            names = [value_at(side, "spec.type") for side in (old, new)]
            return after not in (None, "") and "ExternalName" not in names
        case "claim":
            sizes = [quantity(str(side)) for side in (before, after)]
            return None not in sizes and bool(sizes[1] < sizes[0])  # type: ignore[operator]
        case "unfinished":
            return value_at(old, "spec.ttlSecondsAfterFinished") is None
    return True


def _at(document: Json, entry: FixedField) -> Any:
    value = value_at(document, entry.path)
    if not isinstance(entry.absent, Mapping) and not entry.mutable:
        return entry.absent if value is None else value
    fields = {**(entry.absent or {}), **mapping_at(document, entry.path)}
    return {key: inner for key, inner in fields.items() if key not in entry.mutable}


# Quantities: 10Gi and 10240Mi are one size.

_OF_TEMPLATES = ("apiVersion", "kind", "status")
"""What the API server fills in for a claim's template."""


def _plain(value: Any, key: str = "") -> Any:
    """Return a value in the one form that the API server stores it in, as far as that matters here."""
    if isinstance(value, Mapping):
        if key in ("requests", "limits", "capacity"):
            return {name: _size(inner) for name, inner in value.items()}
        found = {name: _plain(inner, name) for name, inner in value.items() if inner is not None}
        if key == "volumeClaimTemplates":
            found = {name: inner for name, inner in found.items() if name not in _OF_TEMPLATES}
            spec = found.get("spec")
            return (
                {**found, "spec": {"volumeMode": "Filesystem", **spec}}
                if isinstance(spec, Mapping)
                else found
            )
        return found
    return [_plain(item, key) for item in value] if isinstance(value, list) else value


def _size(value: Any) -> str:
    number = quantity(str(value))
    return str(value) if number is None else str(number.normalize())


# Definitions


def fixed_by_definitions(definitions: Iterable[Json]) -> Definitions:
    """Return the fields that the definitions of custom resources say never change."""
    found: dict[tuple[str, str], tuple[FixedField, ...]] = {}
    for definition in definitions:
        group, kind = kind_defined(definition)
        paths: dict[str, None] = {}
        for version in _versions(definition):
            paths |= dict.fromkeys(_immutable(value_at(version, "schema.openAPIV3Schema"), ""))
        name = str(value_at(definition, "metadata.name"))
        found[group, kind] = tuple(FixedField(group, kind, path, name, only="both") for path in paths)
    return found


def _immutable(schema: Any, path: str) -> Iterator[str]:
    if not isinstance(schema, Mapping):
        return
    rules = schema.get("x-kubernetes-validations")
    texts = {"".join(str(value_at(rule, "rule")).split()) for rule in items(rules)}
    if path and texts & {"self==oldSelf", "oldSelf==self"}:
        yield path
        return
    for name, below in mapping_at(schema, "properties").items():
        yield from _immutable(below, f"{path}.{name}".removeprefix("."))
