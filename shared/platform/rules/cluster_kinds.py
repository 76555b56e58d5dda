"""What the API server refuses of kinds that govern a cluster: rights, quotas, webhooks, definitions.

Source: ``pkg/apis/{core,admissionregistration,rbac,scheduling}/validation/validation.go`` of Kubernetes and
``apiextensions-apiserver``; ionos-cloud/cluster-api-provider-proxmox#552 (for server-side apply, the rules of
validation of a schema are a list by their texts).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from shared.language.resolve.problems import Path, nearest
from shared.platform.changes.comparison import quantity
from shared.platform.changes.objects import is_open, mapping, mapping_at, objects_in, value_at
from shared.platform.rules.finding import lacks
from shared.platform.rules.pods import once
from shared.platform.schemas.fields import Fault


def _subjects(manifest: Mapping[str, Any]) -> Iterator[Fault]:
    for number, subject in objects_in(manifest.get("subjects")):
        if subject.get("kind") == "ServiceAccount" and not subject.get("namespace"):
            yield ("subjects", number), "namespace is missing, and a ServiceAccount needs it"


def _policy_rules(manifest: Mapping[str, Any]) -> Iterator[Fault]:
    for number, rule in objects_in(manifest.get("rules")):
        for field in ("verbs",) if rule.get("nonResourceURLs") else ("verbs", "apiGroups", "resources"):
            if lacks(rule, field):
                hint = '; the core group is ""' if field == "apiGroups" else "; add at least one"
                yield ("rules", number), f"{field} is missing{hint}"


def _cluster_role(manifest: Mapping[str, Any]) -> Iterator[Fault]:
    kind = value_at(manifest, "roleRef.kind")
    if isinstance(kind, str) and kind != "ClusterRole" and not is_open(kind):
        yield ("roleRef", "kind"), f"must be ClusterRole, got {kind}"


# Quotas, limits and priorities

_COMPUTED = ("cpu", "memory", "ephemeral-storage")
_QUOTA = frozenset(
    (
        *_COMPUTED,
        *(f"{field}.{name}" for field in ("requests", "limits") for name in _COMPUTED),
        *("requests.storage", "pods", "services", "services.nodeports", "services.loadbalancers"),
        *("replicationcontrollers", "resourcequotas", "secrets", "configmaps", "persistentvolumeclaims"),
    )
)
"""What a quota counts by a name without a group: ``IsStandardQuotaResourceName``."""


def _quota(manifest: Mapping[str, Any]) -> Iterator[Fault]:
    for key in map(str, mapping_at(manifest, "spec.hard")):
        if not ("/" in key or key in _QUOTA or is_open(key) or key.startswith(_PAGES)):
            near = nearest(key, sorted(_QUOTA))
            hint = f"did you mean {near}?" if near else "such as requests.cpu or count/deployments.apps"
            yield ("spec", "hard", key), f"is nothing that a quota counts; {hint}"


_PAGES = ("hugepages-", "requests.hugepages-")


def _limits(manifest: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield the bounds of a LimitRange that contradict each other."""
    for number, limit in objects_in(value_at(manifest, "spec.limits")):
        for least, most in _ORDER:
            for resource, given in mapping(limit.get(least)).items():
                upper = mapping(limit.get(most)).get(resource)
                low, high = quantity(str(given)), quantity(str(upper))
                if upper is not None and low is not None and high is not None and low > high:
                    path: Path = ("spec", "limits", number, least, str(resource))
                    yield path, f"must be at most {most}, {upper}, got {given}"


_ORDER = (
    *(("min", "max"), ("min", "defaultRequest"), ("min", "default"), ("defaultRequest", "default")),
    *(("defaultRequest", "max"), ("default", "max")),
)
_HIGHEST = 1_000_000_000
_OF_KUBERNETES = ("system-cluster-critical", "system-node-critical")


def _priority(manifest: Mapping[str, Any]) -> Iterator[Fault]:
    name, value = str(value_at(manifest, "metadata.name")), manifest.get("value")
    if name in _OF_KUBERNETES:
        return
    if name.startswith("system-"):
        yield ("metadata", "name"), "must not begin with system-, which Kubernetes keeps for itself"
    if isinstance(value, int) and value > _HIGHEST:
        yield ("value",), f"must be at most {_HIGHEST:,}, got {value:,}"
    elif isinstance(value, int) and value < -(2**31):
        yield ("value",), f"must be at least {-(2**31):,}, got {value:,}"


# Webhooks and definitions


def _webhooks(manifest: Mapping[str, Any]) -> Iterator[Fault]:
    for number, webhook in objects_in(manifest.get("webhooks")):
        name, effects, seconds = (webhook.get(field) for field in ("name", "sideEffects", "timeoutSeconds"))
        place: Path = ("webhooks", number)
        if isinstance(name, str) and name.count(".") < 2 and not is_open(name):
            yield (*place, "name"), f"must be a domain with at least three parts, got {name}"
        if isinstance(effects, str) and effects not in ("None", "NoneOnDryRun") and not is_open(effects):
            yield (*place, "sideEffects"), f"must be None or NoneOnDryRun, got {effects}"
        if isinstance(seconds, int) and not 1 <= seconds <= 30:
            yield (*place, "timeoutSeconds"), f"must be 1 to 30, got {seconds}"


def _definition(manifest: Mapping[str, Any]) -> Iterator[Fault]:
    spec = mapping_at(manifest, "spec")
    plural, group = value_at(spec, "names.plural"), spec.get("group")
    wanted, name = f"{plural}.{group}", value_at(manifest, "metadata.name")
    is_known = plural and group and not any(map(is_open, (name, wanted)))
    if isinstance(name, str) and name and name != wanted and is_known:
        yield ("metadata", "name"), f"must be {wanted}, the plural and the group, got {name}"
    versions = [version for _, version in objects_in(spec.get("versions"))]
    if versions and sum(bool(version.get("storage")) for version in versions) != 1:
        yield ("spec", "versions"), "exactly one version must have storage: true"
    for number, version in enumerate(versions):
        if lacks(version, "schema.openAPIV3Schema"):
            yield ("spec", "versions", number), "schema.openAPIV3Schema is missing; add it"
        place: Path = ("spec", "versions", number, "schema", "openAPIV3Schema")
        yield from _repeated(value_at(version, "schema.openAPIV3Schema"), place)


def _repeated(schema: Any, place: Path) -> Iterator[Fault]:
    """Yield the rules that a schema, or one in it, has twice."""
    waiting: list[tuple[Any, Path]] = [(schema, place)]
    while waiting:
        part, where = waiting.pop()
        if isinstance(part, Mapping):
            waiting += [(part.get(below), (*where, below)) for below in ("items", "additionalProperties")]
            named = mapping(part.get("properties"))
            waiting += [(inner, (*where, "properties", str(name))) for name, inner in named.items()]
            yield from once(part.get(_RULES_OF_SCHEMAS), ("rule",), (*where, _RULES_OF_SCHEMAS))


_RULES_OF_SCHEMAS = "x-kubernetes-validations"
_RBAC, _ADMISSION = "rbac.authorization.k8s.io", "admissionregistration.k8s.io"
OF_CLUSTERS: Mapping[tuple[str, str], tuple[Callable[[Mapping[str, Any]], Iterator[Fault]], ...]] = {
    (_RBAC, "ClusterRoleBinding"): (_subjects, _cluster_role),
    (_RBAC, "Role"): (_policy_rules,),
    (_RBAC, "ClusterRole"): (_policy_rules,),
    ("", "ResourceQuota"): (_quota,),
    ("", "LimitRange"): (_limits,),
    ("scheduling.k8s.io", "PriorityClass"): (_priority,),
    (_ADMISSION, "ValidatingWebhookConfiguration"): (_webhooks,),
    (_ADMISSION, "MutatingWebhookConfiguration"): (_webhooks,),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): (_definition,),
}
