"""The fields of Kubernetes' objects that never change once an object exists: a table of data.

The API server refuses such a change. kustomize-controller then stops the whole path, or deletes the object
and creates it again where that is forced (fluxcd/pkg ``ssa/manager_apply.go``, ``shouldForceApply``). The
source of an entry is the function of kubernetes/kubernetes ``pkg/apis/<group>/validation/validation.go``, if
no file is named. A definition's own rule ``self == oldSelf`` (kubernetes.io, "Enforce CRD Immutability with
CEL Transition Rules") counts as an entry for the objects of its kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from shared.frozen import dataclass
from shared.json_tree import Json, path_text
from shared.platform.changes.comparison import quantity, value_differences
from shared.platform.changes.objects import items, kind_defined, mapping, mapping_at, objects_in, value_at
from shared.platform.inventory import ObjectId

_Only = Literal[
    "",
    "immutable",
    "both",
    "given",
    "balancer",
    "cluster-ip",
    "first",
    "claim",
    "unfinished",
    "counted",
    "set",
]


@dataclass(frozen=True)
class FixedField:
    """A field that never changes, with all below it but ``mutable``.

    ``only`` is when it is fixed: once the object is ``immutable``; where ``both`` sides have a value; where
    it was ``given``, and the cluster did not choose it; the ``first`` of a list that is written; while a
    Service is a ``balancer``, or as its address; as the request of a claim, which may grow; for a Job that
    stays when it has finished, or that is ``counted``; as a ``set``, in any order.
    """

    group: str
    kind: str
    path: str
    source: str
    mutable: tuple[str, ...] = ()
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
    ),
    *_each("apps", "Deployment DaemonSet ReplicaSet", "spec.selector", _APPS),
    *_each("batch", "Job", "spec.template spec.selector", "ValidateJobSpecUpdate", "unfinished"),
    *_each(
        "batch",
        "Job",
        "spec.completionMode spec.podFailurePolicy spec.successPolicy spec.backoffLimitPerIndex"
        " spec.managedBy",
        "ValidateJobSpecUpdate",
        "unfinished",
    ),
    *_each("batch", "Job", "spec.completions", "validateCompletions", "counted"),
    *_each("", "Service", "spec.clusterIP", "ValidateServiceUpdate", "cluster-ip"),
    *_each("", "Service", "spec.loadBalancerClass", "validateLoadBalancerClassField", "balancer"),
    *_each("", "Service", "spec.healthCheckNodePort", "ValidateServiceUpdate", "both"),
    *_each(
        "", "Service", "spec.ipFamilies", "ValidateServiceUpdate, validateUpgradeDowngradeIPFamilies", "first"
    ),
    FixedField(
        "",
        "PersistentVolumeClaim",
        "spec",
        _CLAIM,
        ("resources", "volumeAttributesClassName", "storageClassName", "volumeName"),
    ),
    *_each("", "PersistentVolumeClaim", "spec.storageClassName spec.volumeName", _CLAIM, "given"),
    *_each("", "PersistentVolumeClaim", "spec.resources.requests.storage", _CLAIM, "claim"),
    *_each("", "PersistentVolumeClaim", "spec.resources.limits", _CLAIM),
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
    ),
    *_each("", "PersistentVolume", "spec.nodeAffinity", "ValidatePersistentVolumeUpdate", "both"),
    *_each("", "ConfigMap", "data binaryData immutable", "ValidateConfigMapUpdate", "immutable"),
    *_each("", "Secret", "data stringData immutable", "ValidateSecretUpdate", "immutable"),
    *_each("", "Secret", "type", "ValidateSecretUpdate"),
    *_each("", "ResourceQuota", "spec.scopes", "ValidateResourceQuotaUpdate", "set"),
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
    *_each(
        "storage.k8s.io",
        "StorageClass",
        "provisioner parameters reclaimPolicy volumeBindingMode",
        "ValidateStorageClassUpdate",
    ),
    *_each(
        "storage.k8s.io",
        "CSIDriver",
        "spec.attachRequired spec.volumeLifecycleModes",
        "ValidateCSIDriverUpdate",
    ),
    *_each(
        "storage.k8s.io",
        "VolumeAttributesClass",
        "driverName parameters",
        "ValidateVolumeAttributesClassUpdate",
    ),
    *_each("rbac.authorization.k8s.io", "RoleBinding", "roleRef", "ValidateRoleBindingUpdate"),
    *_each("rbac.authorization.k8s.io", "ClusterRoleBinding", "roleRef", "ValidateClusterRoleBindingUpdate"),
    *_each("scheduling.k8s.io", "PriorityClass", "value preemptionPolicy", "ValidatePriorityClassUpdate"),
    *_each("networking.k8s.io", "IngressClass", "spec.controller", "ValidateIngressClassUpdate"),
    *_each("networking.k8s.io", "ServiceCIDR", "spec.cidrs", "ValidateServiceCIDRUpdate", "first"),
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

_OF_FIELD = re.compile(
    r"(?:!has\(oldSelf\.[\w.]+\)\|\|)?(?:has\(self\.[\w.]+\)&&)?"
    r"\(?self\.(?P<field>[\w.]+)==oldSelf\.(?P=field)\)?"
)
"""A rule of an object that one of its fields never changes, or never once it is there."""
_HAS = re.compile(r"has\((?:self|oldSelf)\.([\w.]+)\)")
"""The fields that have to be there for that: others than this one make it a rule of some objects only."""
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


_ROLLED = {
    ("apps", "Deployment"): ("spec.strategy", "Recreate"),
    ("apps", "StatefulSet"): ("spec.updateStrategy", "OnDelete"),
}
"""Where a kind says how its pods are replaced, and with what it takes no ``rollingUpdate`` next to it."""


def defaulted_field(old: Json, new: Json) -> str:
    """Return a field that Kubernetes has filled in, and that stays and has no place any more, "" for none.

    No apply removes what none has written (kubernetes/kubernetes#24198, devantler-tech/platform#1922).
    """
    where, other = _ROLLED.get(ObjectId.of(new)[:2], ("", ""))
    if not where or value_at(new, f"{where}.type") != other or value_at(old, f"{where}.type") == other:
        return ""
    field = f"{where}.rollingUpdate"
    return field if value_at(old, field) is None else ""


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
    if entry.only == "set":
        before, after = (sorted(map(str, items(side))) for side in (before, after))
    if not _applies(entry, old, new, before, after):
        return ""
    name = entry.path.rpartition(".")[2]
    sides = (_plain({name: side}) for side in (before, after))
    below = next(iter(value_differences(*sides)), None)
    return ".".join(filter(None, (entry.path, path_text(below[0][1:])))) if below else ""


def _applies(entry: FixedField, old: Json, new: Json, before: Any, after: Any) -> bool:
    types = [str(value_at(side, "spec.type") or "") for side in (old, new)]
    match entry.only:
        case "immutable":
            return old.get("immutable") is True
        case "both":
            return before is not None and after is not None
        case "first":  # a Service has IPv4 first: AKS has no clusters of IPv6 alone ("dual-stack networking")
            return after is not None
        case "given":
            return before is not None
        case "balancer":
            return types == ["LoadBalancer", "LoadBalancer"]
        case "cluster-ip":  # one that is not given stays as it is, and so does none
            stays = after in (None, "") and not (before == "None" and types[1] in _WITH_ADDRESS)
            return not stays and "ExternalName" not in types
        case "claim":
            sizes = [quantity(str(side)) for side in (before, after)]
            return None not in sizes and bool(sizes[1] < sizes[0])  # type: ignore[operator]
        case "unfinished":  # of one that is suspended, a queue may still say where its pods run
            is_open_to_queues = entry.path == "spec.template" and bool(value_at(old, "spec.suspend"))
            return not is_open_to_queues and value_at(old, "spec.ttlSecondsAfterFinished") is None
        case "counted":  # with indexes, it may change together with spec.parallelism
            is_indexed = value_at(old, "spec.completionMode") == "Indexed"
            return not is_indexed and value_at(old, "spec.ttlSecondsAfterFinished") is None
    return True


_WITH_ADDRESS = ("NodePort", "LoadBalancer")
"""Types of a Service that need an address in the cluster (``ValidateService``)."""


def _at(document: Json, entry: FixedField) -> Any:
    value = value_at(document, entry.path)
    if not entry.mutable:
        return value
    return {key: inner for key, inner in mapping(value).items() if key not in entry.mutable}


# What the API server stores: 10Gi and 10240Mi are one size, and a default that somebody writes is none.
#
# Sources: ``pkg/apis/{core,batch,apps,rbac,storage,scheduling,resource}/v1/defaults.go``.

_OF_TEMPLATES = ("apiVersion", "kind", "status")
"""What the API server fills in for a claim's template."""
_DEFAULTS: Mapping[str, Any] = {
    **{"podManagementPolicy": "OrderedReady", "completionMode": "NonIndexed", "completions": 1},
    **{"volumeMode": "Filesystem", "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
    **{"attachRequired": True, "volumeLifecycleModes": ["Persistent"], "defaultMode": 420},
    **{"value": 0, "preemptionPolicy": "PreemptLowerPriority", "type": "Opaque"},
    **{"apiGroup": "rbac.authorization.k8s.io", "allocationMode": "ExactCount", "count": 1},
    **{"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler"},
    **{"terminationGracePeriodSeconds": 30, "terminationMessagePath": "/dev/termination-log"},
    **{"terminationMessagePolicy": "File", "protocol": "TCP", "scheme": "HTTP", "apiVersion": "v1"},
    **{"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3},
    **{"initialDelaySeconds": 0, "path": "/", "expirationSeconds": 3600, "status": "True"},
    **dict.fromkeys(("readOnly", "hostNetwork", "hostPID", "hostIPC", "tty", "stdin", "stdinOnce"), False),
    **{"ipFamilies": ["IPv4"]},
}
"""What no value means, by the name of a field."""
_ALIASES: Mapping[str, str] = {"dataSource": "dataSourceRef", "serviceAccount": "serviceAccountName"}
"""Fields that always equal others (``NormalizeDataSources``; ``pkg/apis/core/v1/conversion.go``)."""


def _plain(value: Any, key: str = "") -> Any:
    """Return a value in the one form that the API server stores it in, as far as that matters here."""
    if isinstance(value, Mapping):
        if key in ("requests", "limits", "capacity"):
            return {name: _size(inner) for name, inner in value.items()}
        found = {_ALIASES.get(str(name), str(name)): _plain(inner, name) for name, inner in value.items()}
        filled = _OF_TEMPLATES if key == "volumeClaimTemplates" else ()
        return {
            name: inner
            for name, inner in found.items()
            if name not in filled and not _is_default(name, inner, value)
        }
    of_items = key if key == "volumeClaimTemplates" else ""
    return [_plain(item, of_items) for item in value] if isinstance(value, list) else value


def _is_default(name: str, value: Any, around: Json) -> bool:
    if name == "imagePullPolicy":
        image = str(around.get("image") or "")
        is_newest = "@" not in image and image.rpartition("/")[2].partition(":")[2] in ("", "latest")
        return bool(value == ("Always" if is_newest else "IfNotPresent"))
    return value in (None, "", {}, []) or (name in _DEFAULTS and value == _DEFAULTS[name])


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
    for text in sorted(texts):
        below_it = _OF_FIELD.fullmatch(text)
        if below_it and all(f"{below_it['field']}.".startswith(f"{name}.") for name in _HAS.findall(text)):
            yield f"{path}.{below_it['field']}".removeprefix(".")
    for name, below in mapping_at(schema, "properties").items():
        yield from _immutable(below, f"{path}.{name}".removeprefix("."))
