"""The faults of a value against the published fields of a built-in kind.

kustomize-controller decodes a built-in object into its type before it applies it, so an unknown field is
dropped without a word (fluxcd/pkg ``ssa/normalize``; not for roles); the API server refuses a wrong type and
a missing value. What the documents require and the server accepts as empty is in ``OPTIONAL``.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any

from shared.language.resolve.problems import Path, nearest
from shared.platform.schemas.published import (
    ANY,
    BYTES,
    INT_OR_STRING,
    LIST,
    MAP,
    QUANTITY,
    REFERENCE,
    definition,
    minors,
)

Fault = tuple[Path, str]
Minor = tuple[int, ...]

_QUANTITY = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?")
_CORE, _APPS, _RBAC = "io.k8s.api.core.v1.", "io.k8s.api.apps.v1.", "io.k8s.api.rbac.v1."
_CRD = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
OPTIONAL = frozenset(
    (
        *((f"{_RBAC}Role", "rules"), (f"{_RBAC}ClusterRole", "rules"), (f"{_RBAC}RoleRef", "apiGroup")),
        *((f"{_CORE}HTTPHeader", "value"), (f"{_CORE}Sysctl", "value"), (f"{_CORE}LimitRangeSpec", "limits")),
        (f"{_CORE}ConfigMapVolumeSource", "items"),
        *((f"{_CORE}Event", "metadata"), (f"{_CORE}Event", "involvedObject")),
        *((f"{_APPS}StatefulSetSpec", "serviceName"), (f"{_APPS}ControllerRevision", "revision")),
        *((f"{_CRD}CustomResourceDefinitionVersion", field) for field in ("served", "storage")),
        ("io.k8s.api.networking.v1.NetworkPolicySpec", "podSelector"),
        ("io.k8s.api.scheduling.v1.PriorityClass", "value"),
        ("io.k8s.api.discovery.v1.EndpointSlice", "endpoints"),
    )
)
"""Fields that the documents mark required, and whose empty value validation accepts. Source: the rules of
``pkg/apis/*/validation/validation.go``, and what a later document no longer requires."""
_POSITIVE = frozenset(
    (
        *((f"{_CORE}ContainerPort", "containerPort"), (f"{_CORE}ServicePort", "port")),
        *((f"{_CORE}TopologySpreadConstraint", "maxSkew"), (f"{_CORE}WeightedPodAffinityTerm", "weight")),
        *((f"{_CORE}PreferredSchedulingTerm", "weight"), (f"{_CORE}TCPSocketAction", "port")),
        *((f"{_CORE}HTTPGetAction", "port"), (f"{_CORE}GRPCAction", "port")),
        *((f"io.k8s.api.autoscaling.{v}.HorizontalPodAutoscalerSpec", "maxReplicas") for v in ("v1", "v2")),
    )
)
"""Required numbers of which 0 is refused; of others, a missing one is 0."""
_NUMBERS = ("i", "n", "b", INT_OR_STRING)

_PULL, _PROTOCOLS = ("Always", "IfNotPresent", "Never"), ("SCTP", "TCP", "UDP")
VALUES: Mapping[tuple[str, str], tuple[str, ...]] = {
    (f"{_CORE}PodSpec", "restartPolicy"): ("Always", "Never", "OnFailure"),
    (f"{_CORE}PodSpec", "dnsPolicy"): ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"),
    (f"{_CORE}PodSpec", "preemptionPolicy"): ("Never", "PreemptLowerPriority"),
    (f"{_CORE}Container", "imagePullPolicy"): _PULL,
    (f"{_CORE}Container", "terminationMessagePolicy"): ("FallbackToLogsOnError", "File"),
    (f"{_CORE}ContainerPort", "protocol"): _PROTOCOLS,
    (f"{_CORE}ServicePort", "protocol"): _PROTOCOLS,
    (f"{_CORE}ServiceSpec", "type"): ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort"),
    (f"{_CORE}ServiceSpec", "sessionAffinity"): ("ClientIP", "None"),
    (f"{_CORE}ServiceSpec", "externalTrafficPolicy"): ("Cluster", "Local"),
    (f"{_CORE}ServiceSpec", "internalTrafficPolicy"): ("Cluster", "Local"),
    (f"{_CORE}Taint", "effect"): ("NoExecute", "NoSchedule", "PreferNoSchedule"),
    (f"{_CORE}Toleration", "effect"): ("NoExecute", "NoSchedule", "PreferNoSchedule"),
    (f"{_CORE}NodeSelectorRequirement", "operator"): ("DoesNotExist", "Exists", "Gt", "In", "Lt", "NotIn"),
    (f"{_CORE}TopologySpreadConstraint", "whenUnsatisfiable"): ("DoNotSchedule", "ScheduleAnyway"),
    (f"{_CORE}PersistentVolumeSpec", "persistentVolumeReclaimPolicy"): ("Delete", "Recycle", "Retain"),
    (f"{_CORE}SeccompProfile", "type"): ("Localhost", "RuntimeDefault", "Unconfined"),
    (f"{_CORE}LimitRangeItem", "type"): ("Container", "PersistentVolumeClaim", "Pod"),
    (f"{_APPS}DeploymentStrategy", "type"): ("Recreate", "RollingUpdate"),
    (f"{_APPS}DaemonSetUpdateStrategy", "type"): ("OnDelete", "RollingUpdate"),
    (f"{_APPS}StatefulSetUpdateStrategy", "type"): ("OnDelete", "RollingUpdate"),
    (f"{_APPS}StatefulSetSpec", "podManagementPolicy"): ("OrderedReady", "Parallel"),
    ("io.k8s.api.batch.v1.CronJobSpec", "concurrencyPolicy"): ("Allow", "Forbid", "Replace"),
    ("io.k8s.api.batch.v1.JobSpec", "completionMode"): ("Indexed", "NonIndexed"),
    ("io.k8s.api.policy.v1.PodDisruptionBudgetSpec", "unhealthyPodEvictionPolicy"): (
        "AlwaysAllow",
        "IfHealthyBudget",
    ),
    ("io.k8s.api.networking.v1.HTTPIngressPath", "pathType"): ("Exact", "ImplementationSpecific", "Prefix"),
    ("io.k8s.api.networking.v1.NetworkPolicyPort", "protocol"): _PROTOCOLS,
    ("io.k8s.api.storage.v1.StorageClass", "reclaimPolicy"): ("Delete", "Recycle", "Retain"),
    ("io.k8s.api.storage.v1.StorageClass", "volumeBindingMode"): ("Immediate", "WaitForFirstConsumer"),
    ("io.k8s.api.scheduling.v1.PriorityClass", "preemptionPolicy"): ("Never", "PreemptLowerPriority"),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelectorRequirement", "operator"): (
        *("DoesNotExist", "Exists", "In", "NotIn"),
    ),
    (f"{_CRD}CustomResourceDefinitionSpec", "scope"): ("Cluster", "Namespaced"),
    (f"{_RBAC}RoleRef", "apiGroup"): ("rbac.authorization.k8s.io",),
    (f"{_RBAC}RoleRef", "kind"): ("ClusterRole", "Role"),
    (f"{_RBAC}Subject", "kind"): ("ServiceAccount", "User", "Group"),
}
"""The values of a field, by the definition that has it: the constants of ``types.go`` of its group."""
_LISTS_OF_VALUES: Mapping[tuple[str, str], tuple[str, ...]] = {
    (f"{_CORE}PersistentVolumeClaimSpec", "accessModes"): (
        *("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"),
    ),
    (f"{_CORE}PersistentVolumeSpec", "accessModes"): (
        *("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"),
    ),
    ("io.k8s.api.networking.v1.NetworkPolicySpec", "policyTypes"): ("Egress", "Ingress"),
}
_NOT_EXAMINED = ("status", "metadata")
"""Flux removes a status, and metadata has rules of its own."""


def faults_of(name: str, minor: Minor, manifest: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield the faults of an object of a built-in kind; ``name`` is its definition."""
    content = {key: value for key, value in manifest.items() if key not in _NOT_EXAMINED and key != "sops"}
    yield from _of_object(name, minor, content, ())
    if "metadata" in manifest:
        allowed = definition("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", minor).fields
        metadata = manifest["metadata"]
        for key in metadata if isinstance(metadata, Mapping) else ():
            if key not in allowed:
                yield ("metadata", key), unknown_field(str(key), allowed)


def unknown_field(name: str, fields: Mapping[str, Any]) -> str:
    """Return what is said about a field that there is not."""
    near = nearest(name, [field for field in fields if field != name])
    hint = f"did you mean {near}?" if near else "remove it"
    if not near and 0 < len(fields) <= 12:
        hint = f"the fields here are {', '.join(sorted(fields))}"
    return f"there is no such field; {hint}"


def _of_type(kind: str, minor: Minor, value: Any, path: Path) -> Iterator[Fault]:
    if value is None or kind == ANY or (isinstance(value, str) and "${" in value):
        return
    if kind.startswith(LIST):
        if not isinstance(value, list):
            yield path, f"must be a list, got {described(value)}"
            return
        for number, item in enumerate(value):
            yield from _of_type(kind[1:], minor, item, (*path, number))
    elif kind.startswith((MAP, REFERENCE)):
        if not isinstance(value, Mapping):
            yield path, f"must be an object, got {described(value)}"
        elif kind.startswith(REFERENCE):
            yield from _of_object(kind[1:], minor, value, path)
        else:
            for key, item in value.items():
                yield from _of_type(kind[1:], minor, item, (*path, str(key)))
    else:
        wrong = _scalar_fault(kind, value)
        if wrong:
            yield path, wrong


def _of_object(name: str, minor: Minor, value: Mapping[str, Any], path: Path) -> Iterator[Fault]:
    known = definition(name, minor)
    for field in known.required:
        required = field not in _NOT_EXAMINED and _is_required(name, field, known.fields[field], minor)
        if required and value.get(field) is None:
            yield path, f"{field} is missing; add it"
    for key, inner in value.items():
        kind = known.fields.get(str(key))
        if kind is None:
            if inner is not None:
                yield (*path, str(key)), _unknown(name, str(key), minor)
            continue
        yield from _of_type(kind, minor, inner, (*path, str(key)))
        yield from _value_faults(name, str(key), inner, (*path, str(key)))


def _is_required(name: str, field: str, kind: str, minor: Minor) -> bool:
    """Return whether a missing field is refused: one is that has no valid value of its own."""
    if (name, field) in OPTIONAL:
        return False
    if kind.startswith(REFERENCE):
        below = definition(kind[1:], minor)
        return any(_is_required(below.name, inner, below.fields[inner], minor) for inner in below.required)
    return kind not in _NUMBERS or (name, field) in _POSITIVE


def _unknown(name: str, field: str, minor: Minor) -> str:
    """Return the message of an unknown field: also whether another version of Kubernetes has it."""
    having = [other for other in minors() if field in definition(name, other).fields]
    if having and having[0] > minor:
        return f"there is no such field in Kubernetes {_text(minor)}; it comes with {_text(having[0])}"
    if having and having[-1] < minor:
        return f"there is no such field since Kubernetes {_text(minors()[minors().index(having[-1]) + 1])}"
    return unknown_field(field, definition(name, minor).fields)


def _text(minor: Minor) -> str:
    return ".".join(map(str, minor))


def _value_faults(name: str, field: str, value: Any, path: Path) -> Iterator[Fault]:
    values = VALUES.get((name, field))
    if values and isinstance(value, str) and value and "${" not in value and value not in values:
        yield path, not_among(value, values)
    allowed = _LISTS_OF_VALUES.get((name, field), ())
    for number, item in enumerate(value if allowed and isinstance(value, list) else ()):
        if isinstance(item, str) and "${" not in item and item not in allowed:
            yield (*path, number), not_among(item, allowed)


def not_among(value: Any, values: tuple[Any, ...] | list[Any]) -> str:
    """Return what is said about a value that is none of those there are."""
    near = nearest(str(value), [str(other) for other in values])
    return f"must be {' or '.join(map(str, values))}, got {value}" + (
        f"; did you mean {near}?" if near else ""
    )


def _scalar_fault(kind: str, value: Any) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "s":
        return "" if isinstance(value, str) else f"must be a string, got {described(value)}{_quoted(value)}"
    if kind in ("i", "n"):
        fits = number and (kind == "n" or _is_whole(value))
        return "" if fits else f"must be a{'n integer' if kind == 'i' else ' number'}, got {described(value)}"
    if kind == "b":
        return "" if isinstance(value, bool) else f"must be true or false, got {described(value)}"
    if kind == INT_OR_STRING:
        fits = isinstance(value, str) or (number and _is_whole(value))
        return "" if fits else f"must be an integer or a string, got {described(value)}"
    if kind == QUANTITY:
        fits = number or (isinstance(value, str) and _QUANTITY.fullmatch(value) is not None)
        return "" if fits else f"must be a quantity such as 500m or 1Gi, got {described(value)}"
    if kind == BYTES:
        return "" if isinstance(value, str) and _is_base64(value) else "must be base64"
    return ""


def _is_whole(value: float) -> bool:
    return isinstance(value, int) or value.is_integer()


def _is_base64(value: str) -> bool:
    if value.startswith("ENC["):  # of SOPS
        return True
    try:
        base64.b64decode("".join(value.split("\n")), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _quoted(value: Any) -> str:
    if isinstance(value, bool):
        return f'; write it in quotes, as "{str(value).lower()}"'
    return f'; write it in quotes, as "{value}"' if isinstance(value, int | float) else ""


def described(value: Any) -> str:
    """Return a short form of a value; nothing of a long text."""
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    shown = text if len(text) <= 60 and text.isprintable() else "a text"
    return f'"{shown}"' if isinstance(value, str) and shown == text else shown
