"""The faults of an object against the schema of its kind: the published one, or that of its definition.

kustomize-controller decodes a built-in object into its type before it applies it, so an unknown field is
dropped without a word (fluxcd/pkg ``ssa/normalize``; not for roles); the API server refuses a wrong type and
a missing value. What the documents require and the server accepts as empty is in ``OPTIONAL``.

Of a custom object, the API server prunes what a structural schema does not name, and refuses it in a
server-side apply, as Flux applies; it validates types, ``required``, ``enum`` and bounds (kubernetes.io/docs/
tasks/extend-kubernetes/custom-resources/custom-resource-definitions). Rules in CEL and most patterns are its
own.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
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
_NUMBERS = ("i", "n", "b", INT_OR_STRING)
_TYPES = {
    **{"s": "string", "i": "integer", "n": "number", "b": "boolean"},
    **{QUANTITY: "quantity", INT_OR_STRING: "integer or string", BYTES: "base64"},
}

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
    (f"{_CORE}Toleration", "operator"): ("Equal", "Exists", "Gt", "Lt"),
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
_PORT, _WEIGHT = {"minimum": 1, "maximum": 65535}, {"minimum": 1, "maximum": 100}
_BOUNDS: Mapping[tuple[str, str], Mapping[str, int]] = {
    (f"{_CORE}ContainerPort", "containerPort"): _PORT,
    (f"{_CORE}ServicePort", "port"): _PORT,
    (f"{_CORE}TCPSocketAction", "port"): _PORT,
    (f"{_CORE}HTTPGetAction", "port"): _PORT,
    (f"{_CORE}GRPCAction", "port"): _PORT,
    (f"{_CORE}WeightedPodAffinityTerm", "weight"): _WEIGHT,
    (f"{_CORE}PreferredSchedulingTerm", "weight"): _WEIGHT,
    (f"{_CORE}TopologySpreadConstraint", "maxSkew"): {"minimum": 1},
    ("io.k8s.api.autoscaling.v1.HorizontalPodAutoscalerSpec", "maxReplicas"): {"minimum": 1},
    ("io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerSpec", "maxReplicas"): {"minimum": 1},
    ("io.k8s.api.batch.v1.CronJobSpec", "startingDeadlineSeconds"): {"minimum": 0},
}
"""The bounds of a number, as ``validation.go`` of its group has them; a missing required number is 0."""
_NOT_EXAMINED = ("status", "metadata")
"""Flux removes a status, and metadata has rules of its own."""
_ENVELOPE = ("apiVersion", "kind", "metadata")
_OPEN = "x-kubernetes-preserve-unknown-fields"
_DEFINITION, _DEFAULTED = "x-definition", "x-defaulted"
"""The published definition that a schema stands for, with the minor; and whether "" is no value of it."""
_DURATION = re.compile(r"([0-9]+(\.[0-9]+)?(ms|s|m|h))+")
_DURATIONS = frozenset(
    f"^([0-9]+(\\.[0-9]+)?({units}))+$" for units in ("ms|s|m|h", "ms|s|m", "s|m|h", "ms|s|m|h)?")
)
"""The patterns that Flux's kinds have for durations; any other may take very long, or mean another thing."""
_ADDRESS = re.compile(r"\^\(?([a-z|]+)\)?://\.\*\$")
"""The patterns that Flux's kinds have for addresses: the schemes that one may begin with."""
_OF_SSH = re.compile(r"([^@/\s]+@[^:/\s]+):([^\s]+)")
"""An address of git as scp has it (git-scm.com/docs/git-clone, "Git URLs")."""
Schema = Mapping[str, Any]


def faults_of_kind(name: str, minor: Minor, manifest: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield the faults of an object of a built-in kind; ``name`` is its definition."""
    yield from faults_of(_published(name, minor), manifest)
    if "metadata" in manifest:
        allowed = definition("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", minor).fields
        metadata = manifest["metadata"]
        for key in metadata if isinstance(metadata, Mapping) else ():
            if key not in allowed:
                yield ("metadata", key), unknown_field(str(key), allowed)


def faults_of(schema: Schema, manifest: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield the faults of an object; ``schema`` is the ``openAPIV3Schema`` of its version."""
    content = {key: value for key, value in manifest.items() if key not in (*_ENVELOPE, "status", "sops")}
    yield from _of_object(schema, content, (), embedded=True)


@cache
def _published(name: str, minor: Minor) -> Schema:
    """Return a published definition as a schema, in which the ones below are named."""
    known = definition(name, minor)
    required = [
        field
        for field in known.required
        if field not in _NOT_EXAMINED and _is_required(name, field, known.fields[field], minor)
    ]
    properties = {field: _of_letters(kind, minor) for field, kind in known.fields.items()}
    for field in known.fields:
        if (name, field) in VALUES:
            properties[field] = {**properties[field], "enum": VALUES[name, field], _DEFAULTED: True}
        properties[field] = {**properties[field], **_BOUNDS.get((name, field), {})}
        if (name, field) in _LISTS_OF_VALUES:
            items = {"type": "string", "enum": _LISTS_OF_VALUES[name, field]}
            properties[field] = {**properties[field], "items": items}
    return {"type": "object", "properties": properties, "required": required, _DEFINITION: (name, minor)}


def _of_letters(kind: str, minor: Minor) -> Schema:
    """Return the schema of a type as the published documents are stored; its null is no value."""
    if kind == ANY:
        return {}
    if kind.startswith(REFERENCE):
        return {"type": "object", "nullable": True, _DEFINITION: (kind[1:], minor)}
    if kind.startswith(LIST):
        return {"type": "array", "nullable": True, "items": _of_letters(kind[1:], minor)}
    if kind.startswith(MAP):
        more = _of_letters(kind[1:], minor)
        return {"type": "object", "nullable": True, "additionalProperties": more}
    return {"type": _TYPES[kind], "nullable": True}


def _is_required(name: str, field: str, kind: str, minor: Minor) -> bool:
    """Return whether a missing field is refused: one is that has no valid value of its own."""
    if (name, field) in OPTIONAL:
        return False
    if kind.startswith(REFERENCE):
        below = definition(kind[1:], minor)
        return any(_is_required(below.name, inner, below.fields[inner], minor) for inner in below.required)
    return kind not in _NUMBERS or _BOUNDS.get((name, field), {}).get("minimum", 0) > 0


def _of_value(schema: Schema, value: Any, path: Path) -> Iterator[Fault]:
    if isinstance(value, str) and "${" in value:
        return
    if value is None:
        if schema.get("type") and "default" not in schema and not schema.get("nullable"):
            yield (
                path,
                f"must be {_CHECKS[str(schema['type'])][1]}, and is empty; give it a value, or remove it",
            )
        return
    kind = "integer or string" if schema.get("x-kubernetes-int-or-string") else str(schema.get("type") or "")
    if kind in _CHECKS and not _CHECKS[kind][0](value):
        given = "" if kind == "base64" and isinstance(value, str) else f", got {described(value)}"
        yield path, f"must be {_CHECKS[kind][1]}{given}{_quoted(value) if kind == 'string' else ''}"
        return
    values = schema.get("enum")
    if (
        isinstance(values, list | tuple)
        and values
        and value not in values
        and not (value == "" and schema.get(_DEFAULTED))
    ):
        yield path, not_among(described(value).strip('"'), values)
    if isinstance(value, Mapping):
        embedded = bool(schema.get("x-kubernetes-embedded-resource"))
        yield from _of_object(schema, value, path, embedded=embedded)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _of_value(schema.get("items") or {}, item, (*path, number))
        yield from _bounds(schema, len(value), ("minItems", "maxItems"), "items", path)
    elif isinstance(value, str):
        yield from _bounds(schema, len(value), ("minLength", "maxLength"), "characters", path)
        if schema.get("pattern") in _DURATIONS and not _DURATION.fullmatch(value):
            yield path, f"must be a duration such as 30s, 10m or 1h, got {described(value)}"
        address = _ADDRESS.fullmatch(str(schema.get("pattern")))
        if address and not value.startswith(tuple(f"{scheme}://" for scheme in address[1].split("|"))):
            yield path, _no_address(value, address[1].split("|"))
    elif not isinstance(value, bool):
        least, most = schema.get("minimum"), schema.get("maximum")
        if _is_number(least) and value < least:
            yield path, f"must be {least} or more, got {value}"
        if _is_number(most) and value > most:
            yield path, f"must be {most} or less, got {value}"


def _of_object(schema: Schema, value: Mapping[str, Any], path: Path, *, embedded: bool) -> Iterator[Fault]:
    published = schema.get(_DEFINITION)
    if published and "properties" not in schema:
        schema = _published(*published)
    fields, more = schema.get("properties") or {}, schema.get("additionalProperties")
    for name in schema.get("required") or ():
        default = (fields.get(name) or {}).get("default")
        is_missing = value.get(name) is None if published else name not in value
        if is_missing and default is None and not (embedded and name in _ENVELOPE):
            yield path, f"{name} is missing; add it"
    is_open = not (fields or published) or more or schema.get(_OPEN)
    for key, inner in value.items():
        below = fields.get(key)
        if below is not None:
            yield from _of_value(below, inner, (*path, str(key)))
        elif isinstance(more, Mapping):
            yield from _of_value(more, inner, (*path, str(key)))
        elif not (is_open or inner is None or (embedded and key in _ENVELOPE)):
            known = _of_another_version(str(key), *published) if published else ""
            yield (*path, str(key)), known or unknown_field(str(key), fields)


def _no_address(value: str, schemes: Sequence[str]) -> str:
    """Return what is said of an address with no scheme, or another one; it may have a credential."""
    scp = _OF_SSH.fullmatch(value)
    allowed = " or ".join(f"{scheme}://" for scheme in schemes)
    hint = "; write ssh:// before it, and / for the : behind the host" if scp and "ssh" in schemes else ""
    return f"must begin with {allowed}{hint}"


def _bounds(schema: Schema, size: int, names: tuple[str, str], what: str, path: Path) -> Iterator[Fault]:
    least, most = schema.get(names[0]), schema.get(names[1])
    if isinstance(least, int) and size < least:
        yield path, f"must have at least {least} {what}, and has {size}"
    if isinstance(most, int) and size > most:
        yield path, f"must have at most {most} {what}, and has {size}"


NO_FIELD = "there is no such field"
"""How it is said that a schema has no field of a name."""


def unknown_field(name: str, fields: Mapping[str, Any]) -> str:
    """Return what is said about a field that there is not."""
    near = nearest(name, [field for field in fields if field != name])
    hint = f"did you mean {near}?" if near else "remove it"
    if not near and 0 < len(fields) <= 12:
        hint = f"the fields here are {', '.join(sorted(fields))}"
    return f"{NO_FIELD}; {hint}"


def _of_another_version(field: str, name: str, minor: Minor) -> str:
    """Return what is said of a field that another version of Kubernetes has, "" where none has it."""
    having = [other for other in minors() if field in definition(name, other).fields]
    if having and having[0] > minor:
        return f"there is no such field in Kubernetes {_text(minor)}; it comes with {_text(having[0])}"
    if having and having[-1] < minor:
        return f"there is no such field since Kubernetes {_text(minors()[minors().index(having[-1]) + 1])}"
    return ""


def _text(minor: Minor) -> str:
    return ".".join(map(str, minor))


def not_among(value: Any, values: tuple[Any, ...] | list[Any]) -> str:
    """Return what is said about a value that is none of those there are."""
    near = nearest(str(value), [str(other) for other in values])
    return f"must be {' or '.join(map(str, values))}, got {value}" + (
        f"; did you mean {near}?" if near else ""
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return _is_number(value) and (isinstance(value, int) or value.is_integer())


def _is_quantity(value: Any) -> bool:
    return _is_number(value) or (isinstance(value, str) and _QUANTITY.fullmatch(value) is not None)


def _is_base64(value: Any) -> bool:
    if not isinstance(value, str) or value.startswith("ENC["):  # of SOPS
        return isinstance(value, str)
    try:
        base64.b64decode("".join(value.split("\n")), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


_CHECKS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "object": (lambda value: isinstance(value, Mapping), "an object"),
    "array": (lambda value: isinstance(value, list), "a list"),
    "string": (lambda value: isinstance(value, str), "a string"),
    "boolean": (lambda value: isinstance(value, bool), "true or false"),
    "integer": (_is_whole, "an integer"),
    "number": (_is_number, "a number"),
    "integer or string": (
        lambda value: isinstance(value, str) or _is_whole(value),
        "an integer or a string",
    ),
    "quantity": (_is_quantity, "a quantity such as 500m or 1Gi"),
    "base64": (_is_base64, "base64"),
}
"""Whether a value has a type, and what the type is called."""


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
