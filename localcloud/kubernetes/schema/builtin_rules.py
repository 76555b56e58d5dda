"""What the API server validates in built-in kinds, beyond their types.

Source: ``pkg/apis/*/validation/validation.go`` of Kubernetes. It is a part of those rules: what the objects
of Flux, of tenants and of nodes can meet.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from localcloud.kubernetes.schema.by_content import by_content
from localcloud.kubernetes.schema.crd_rules import definition_problems
from localcloud.kubernetes.schema.definitions import FieldProblem, Type, invalid, required, unsupported
from localcloud.kubernetes.schema.names import DATA_KEY, DATA_KEY_TEXT, LABEL, LABEL_TEXT, metadata_problems

_CORE, _APPS, _RBAC = "io.k8s.api.core.v1.", "io.k8s.api.apps.v1.", "io.k8s.api.rbac.v1."
_CRD = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
_MATCH = "`selector` does not match template `labels`"

_PULL = ("Always", "IfNotPresent", "Never")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
VALUES: Mapping[tuple[str, str], tuple[str, ...]] = {
    (f"{_CORE}PodSpec", "restartPolicy"): ("Always", "Never", "OnFailure"),
    (f"{_CORE}PodSpec", "dnsPolicy"): ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"),
    (f"{_CORE}Container", "imagePullPolicy"): _PULL,
    (f"{_CORE}Container", "terminationMessagePolicy"): ("FallbackToLogsOnError", "File"),
    (f"{_CORE}ContainerPort", "protocol"): _PROTOCOLS,
    (f"{_CORE}ServicePort", "protocol"): _PROTOCOLS,
    (f"{_CORE}ServiceSpec", "type"): ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort"),
    (f"{_CORE}ServiceSpec", "sessionAffinity"): ("ClientIP", "None"),
    (f"{_CORE}Taint", "effect"): ("NoExecute", "NoSchedule", "PreferNoSchedule"),
    (f"{_CORE}PersistentVolumeSpec", "persistentVolumeReclaimPolicy"): ("Delete", "Recycle", "Retain"),
    (f"{_APPS}DeploymentStrategy", "type"): ("Recreate", "RollingUpdate"),
    (f"{_APPS}StatefulSetSpec", "podManagementPolicy"): ("OrderedReady", "Parallel"),
    ("io.k8s.api.batch.v1.CronJobSpec", "concurrencyPolicy"): ("Allow", "Forbid", "Replace"),
    ("io.k8s.api.policy.v1.PodDisruptionBudgetSpec", "unhealthyPodEvictionPolicy"): (
        "AlwaysAllow",
        "IfHealthyBudget",
    ),
    (f"{_CRD}CustomResourceDefinitionSpec", "scope"): ("Cluster", "Namespaced"),
    (f"{_RBAC}RoleRef", "apiGroup"): ("rbac.authorization.k8s.io",),
    (f"{_RBAC}RoleRef", "kind"): ("ClusterRole", "Role"),
    (f"{_RBAC}Subject", "kind"): ("ServiceAccount", "User", "Group"),
}
"""The values of a field, by the type that has it; the constants are in ``types.go`` of its group."""

_NOT_REQUIRED = frozenset(
    (name, field)
    for name, fields in {
        f"{_CORE}Event": ("metadata", "involvedObject"),
        f"{_CORE}ConfigMapVolumeSource": ("items",),
        f"{_RBAC}Role": ("rules",),
        f"{_RBAC}ClusterRole": ("rules",),
        f"{_CORE}PodReadinessGate": (),
        f"{_CRD}CustomResourceDefinitionVersion": ("served", "storage"),
        "io.k8s.api.networking.v1.NetworkPolicySpec": ("podSelector",),
        "io.k8s.api.scheduling.v1.PriorityClass": ("value",),
        f"{_CORE}TopologySpreadConstraint": (),
    }.items()
    for field in fields
)
"""Fields that the document marks required and whose empty value the server accepts."""


_REQUIRED_TEXTS = {(f"{_RBAC}PolicyRule", "verbs"): "verbs must contain at least one value"}


def problems(kind: Type, value: Mapping[str, Any]) -> list[FieldProblem]:
    """Return what validation refuses in an object of a built-in kind; its status is not examined."""
    content = {name: inner for name, inner in value.items() if name not in ("status", "metadata")}
    missing, refused = _of_content(kind, content)
    return [*missing, *_of_metadata(kind, value.get("metadata") or {}), *refused]


@by_content
def _of_content(kind: Type, content: Any) -> tuple[list[FieldProblem], list[FieldProblem]]:
    return list(_required(kind, content, "")), list(_of_types(kind, content, ""))


def _of_metadata(kind: Type, metadata: Mapping[str, Any]) -> Iterator[FieldProblem]:
    yield from _required(kind.fields["metadata"], metadata, "metadata")
    yield from metadata_problems(metadata, custom=kind.name.startswith(_CRD))


def _required(kind: Type, value: Any, path: str) -> Iterator[FieldProblem]:
    """Yield the fields that the document requires and that are missing or empty."""
    if kind.sort == "list" and isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _required(kind.item, inner, f"{path}[{number}]")
    if kind.sort not in ("object", "map") or not isinstance(value, dict):
        return
    for name in kind.raw.get("required") or () if kind.sort == "object" else ():
        if (kind.name, name) not in _NOT_REQUIRED and value.get(name) in (None, "", [], {}):
            below = kind.child(name)
            if below is not None and below.sort in ("string", "list", "object", "integer", "int-or-string"):
                yield required(_joined(path, name), _REQUIRED_TEXTS.get((kind.name, name), ""))
    for name, inner in value.items():
        below = kind.child(name)
        if below is not None:
            place = f"{path}[{name}]" if kind.sort == "map" else _joined(path, name)
            yield from _required(below, inner, place)


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _of_types(kind: Type, value: Any, path: str) -> Iterator[FieldProblem]:
    if kind.sort == "list" and isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _of_types(kind.item, inner, f"{path}[{number}]")
    if kind.sort not in ("object", "map") or not isinstance(value, dict):
        return
    rule = RULES.get(kind.name)
    if rule is not None:
        yield from rule(value, path)
    for name, inner in value.items():
        below = kind.child(name)
        place = f"{path}[{name}]" if kind.sort == "map" else _joined(path, name)
        values = VALUES.get((kind.name, name))
        if values is not None and inner and inner not in values:
            yield unsupported(place, inner, values)
        if below is not None:
            yield from _of_types(below, inner, place)


def _selects(labels: Mapping[str, Any], selector: Mapping[str, Any]) -> bool:
    plain = selector.get("matchLabels") or {}
    return all(labels.get(name) == text for name, text in plain.items())


def _workload(spec: Mapping[str, Any], path: str) -> Iterator[FieldProblem]:
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    selector = spec.get("selector")
    if selector == {}:
        yield invalid(f"{path}.selector", selector, "empty selector is invalid for deployment")
    elif not selector or not _selects(labels, selector):
        yield invalid(f"{path}.template.metadata.labels", labels or None, _MATCH)
    if (spec.get("replicas") or 0) < 0:
        text = "must be greater than or equal to 0"
        yield invalid(f"{path}.replicas", spec["replicas"], text)


def _container(container: Mapping[str, Any], path: str) -> Iterator[FieldProblem]:
    name = container.get("name") or ""
    if name and not (LABEL.fullmatch(name) and len(name) <= 63):
        yield invalid(f"{path}.name", name, LABEL_TEXT)
    if not container.get("image"):
        yield required(f"{path}.image")


def _pod(spec: Mapping[str, Any], path: str) -> Iterator[FieldProblem]:
    names: set[str] = set()
    for number, container in enumerate(spec.get("containers") or ()):
        name = container.get("name")
        if name and name in names:
            place = f"{path}.containers[{number}].name"
            yield FieldProblem(place, "FieldValueDuplicate", f'Duplicate value: "{name}"')
        names.add(name)


def _volume(volume: Mapping[str, Any], path: str) -> Iterator[FieldProblem]:
    name = volume.get("name") or ""
    if name and not (LABEL.fullmatch(name) and len(name) <= 63):
        yield invalid(f"{path}.name", name, LABEL_TEXT)


def _port(field: str) -> Callable[[Mapping[str, Any], str], Iterator[FieldProblem]]:
    def rule(port: Mapping[str, Any], path: str) -> Iterator[FieldProblem]:
        number = port.get(field)
        if isinstance(number, int) and not 1 <= number <= 65535:
            yield invalid(f"{path}.{field}", number, "must be between 1 and 65535, inclusive")

    return rule


def _data(value: Mapping[str, Any], path: str) -> Iterator[FieldProblem]:
    for field in ("data", "binaryData"):
        for name in value.get(field) or {}:
            if not DATA_KEY.fullmatch(name):
                yield invalid(f"{_joined(path, field)}[{name}]", name, DATA_KEY_TEXT)


def _policy_rule(rule: Mapping[str, Any], path: str) -> Iterator[FieldProblem]:
    if rule.get("nonResourceURLs"):
        return
    if not rule.get("apiGroups"):
        yield required(f"{path}.apiGroups", "resource rules must supply at least one api group")
    if not rule.get("resources"):
        yield required(f"{path}.resources", "resource rules must supply at least one resource")


def _subject(subject: Mapping[str, Any], path: str) -> Iterator[FieldProblem]:
    if subject.get("kind") == "ServiceAccount" and not subject.get("namespace"):
        yield required(f"{path}.namespace")


def _budget(spec: Mapping[str, Any], path: str) -> Iterator[FieldProblem]:
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        both = {name: spec[name] for name in ("minAvailable", "maxUnavailable")}
        yield invalid(path, both, "minAvailable and maxUnavailable cannot be both set")
    for name in ("minAvailable", "maxUnavailable"):
        value = spec.get(name)
        if isinstance(value, int) and value < 0:
            yield invalid(f"{path}.{name}", value, "must be greater than or equal to 0")
        if isinstance(value, str) and not re.fullmatch(r"[0-9]+%", value):
            text = "a valid percent string must be a numeric string followed by an ending '%'"
            yield invalid(
                f"{path}.{name}",
                value,
                f"{text} (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
            )


def _service(spec: Mapping[str, Any], path: str) -> Iterator[FieldProblem]:
    headless = spec.get("clusterIP") == "None"
    if not spec.get("ports") and spec.get("type") != "ExternalName" and not headless:
        yield required(f"{path}.ports")
    names = [port.get("name") for port in spec.get("ports") or ()]
    for number, name in enumerate(names):
        if len(names) > 1 and not name:
            yield required(f"{path}.ports[{number}].name")


def _amounts(*fields: str) -> Callable[[Mapping[str, Any], str], Iterator[FieldProblem]]:
    def rule(value: Mapping[str, Any], path: str) -> Iterator[FieldProblem]:
        for field in fields:
            for name, amount in (value.get(field) or {}).items():
                if str(amount).startswith("-"):
                    yield invalid(f"{path}.{field}[{name}]", amount, "must be greater than or equal to 0")

    return rule


RULES: Mapping[str, Callable[[Mapping[str, Any], str], Iterator[FieldProblem]]] = {
    f"{_APPS}DeploymentSpec": _workload,
    f"{_APPS}StatefulSetSpec": _workload,
    f"{_APPS}DaemonSetSpec": _workload,
    f"{_APPS}ReplicaSetSpec": _workload,
    f"{_CORE}PodSpec": _pod,
    f"{_CORE}Container": _container,
    f"{_CORE}Volume": _volume,
    f"{_CORE}ContainerPort": _port("containerPort"),
    f"{_CORE}ServicePort": _port("port"),
    f"{_CORE}ServiceSpec": _service,
    f"{_CORE}ResourceQuotaSpec": _amounts("hard"),
    f"{_CORE}ResourceRequirements": _amounts("limits", "requests"),
    f"{_CORE}ConfigMap": _data,
    f"{_CORE}Secret": _data,
    f"{_CRD}CustomResourceDefinitionSpec": definition_problems,
    f"{_RBAC}PolicyRule": _policy_rule,
    f"{_RBAC}Subject": _subject,
    "io.k8s.api.policy.v1.PodDisruptionBudgetSpec": _budget,
}
