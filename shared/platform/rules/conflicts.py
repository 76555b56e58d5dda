"""Objects that work against each other, or against the cluster, though the API server takes each of them.

Sources: kubernetes.io, "Horizontal Pod Autoscaling" (leave ``spec.replicas`` to it), "Specifying a Disruption
Budget" (a budget that allows none holds a drain), "Network Policies" (a policy that selects all pods
and allows nothing cuts them off), "Dynamic Admission Control" (a webhook that fails closed refuses what it is
asked about while it does not answer); helm-controller ``api/v2`` (a release is known by its name and its
storage namespace); Azure/AKS#3558, #5767.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shared.json_tree import Json
from shared.language.resolve.problems import Path
from shared.platform.changes.objects import is_release, release_target, value_at
from shared.platform.inventory import BuiltObject, ObjectId, Owner
from shared.platform.rules.finding import (
    ClusterPlatform,
    Finding,
    full_name,
    is_kind,
    is_open,
    items,
    mapping,
    named,
    objects_in,
)
from shared.platform.rules.pods import PODS, at

_Owned = tuple[Owner, ObjectId, BuiltObject]


def one_release_twice(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield each release of Helm that several HelmReleases are for: each upgrades it to its own chart."""
    having: dict[tuple[str, str], list[_Owned]] = {}
    for owned in platform.objects:
        _, name, built = owned
        if is_release(name):
            target = release_target(name, built.manifest)
            place = target["spec.storageNamespace"], target["spec.releaseName"]
            if not any(map(is_open, place)) and not value_at(built.manifest, "spec.kubeConfig"):
                having.setdefault(place, []).append(owned)
    for (namespace, release), all_of in having.items():
        if len({name for _, name, _ in all_of}) > 1:
            owner, name, built = all_of[-1]
            names = named([f"{full_name(other)} ({found.file})" for _, other, found in all_of])
            yield _finding(
                owner,
                name,
                built,
                ("metadata", "name"),
                f"the release {namespace}/{release} has {len(all_of)} HelmReleases: {names}; each upgrades "
                "it to its own chart in turns, and uninstalls it when it goes; rename one",
            )


_SCALERS = (("autoscaling", "HorizontalPodAutoscaler"), ("keda.sh", "ScaledObject"))


def scaled_twice(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield what two scale: two autoscalers are refused, an autoscaler and Flux are a note."""
    scalers: dict[ObjectId, list[_Owned]] = {}
    for owned in platform.objects:
        _, name, built = owned
        if (name.group, name.kind) in _SCALERS:
            ref = mapping(mapping(built.manifest.get("spec")).get("scaleTargetRef"))
            group = str(ref.get("apiVersion") or "apps/v1").rpartition("/")[0]
            kind = str(ref.get("kind") or "Deployment")
            target = ObjectId(group, kind, name.namespace, str(ref.get("name") or ""))
            scalers.setdefault(target, []).append(owned)
    for target, all_of in scalers.items():
        owner, name, built = all_of[-1]
        if len({other for _, other, _ in all_of}) > 1:
            names = named([str(other) for _, other, _ in all_of])
            message = f"{names} scale {target} in turns; keep one of them"
            yield _finding(owner, name, built, ("spec", "scaleTargetRef"), message)
    for owner, name, built in platform.objects:
        if name in scalers and value_at(built.manifest, "spec.replicas") is not None:
            scaler = scalers[name][-1][1]
            message = (
                f"{scaler} scales {name}, and Flux sets it back to these replicas with each reconciliation; "
                "remove spec.replicas"
            )
            yield _finding(owner, name, built, ("spec", "replicas"), message, is_note=True)


def unscaled(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield a note for each autoscaler that goes by a share of requests which containers do not have.

    It scales nothing then; a LimitRange may give the requests. Source: kubernetes#79365.
    """
    ranges = {name.namespace for name in platform.known if is_kind(name, "", "LimitRange")}
    for owner, name, built in platform.objects:
        ref = mapping(value_at(built.manifest, "spec.scaleTargetRef"))
        target = ObjectId("apps", str(ref.get("kind") or ""), name.namespace, str(ref.get("name") or ""))
        found, path = platform.known.get(target), PODS.get(("apps", target.kind))
        if not is_kind(name, *_SCALERS[0]) or found is None or path is None or name.namespace in ranges:
            continue
        pod = mapping(at(found.manifest, path))
        for number, metric in objects_in(value_at(built.manifest, "spec.metrics")):
            resource = mapping(metric.get("resource"))
            what = str(resource.get("name") or "")
            lacking = [
                str(container.get("name"))
                for _, container in objects_in(pod.get("containers"))
                if not _amount_of(container, "requests", what) and not pod.get("resources")
            ]
            if value_at(resource, "target.type") == "Utilization" and lacking:
                message = (
                    f"a share of the requests of {what}, which {named(lacking)} of {target} does not have, "
                    f"so nothing is scaled; set resources.requests.{what}"
                )
                yield _finding(owner, name, built, ("spec", "metrics", number), message, is_note=True)


def undrainable(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield a note for each budget by which no pod of a workload may be evicted: no node is upgraded.

    So it is where a pod has two: ``pkg/registry/core/pod/storage/eviction.go``, kubernetes#75957.
    """
    having: dict[ObjectId, ObjectId] = {}
    labelled = _labelled(platform)
    for owner, name, built in platform.objects:
        if not is_kind(name, "policy", "PodDisruptionBudget"):
            continue
        spec = mapping(built.manifest.get("spec"))
        for workload, manifest in _selected(labelled, name.namespace, spec.get("selector")):
            field, other = _allows_none(spec, value_at(manifest, "spec.replicas")), having.get(workload)
            having.setdefault(workload, name)
            if other not in (None, name):
                message = (
                    f"{other} is for the pods of {workload} too, and a pod with two budgets is not evicted: "
                    "no drain of its nodes ends, and an upgrade of the cluster fails; remove one"
                )
                yield _finding(owner, name, built, ("spec", "selector"), message, is_note=True)
                break
            if field:
                message = (
                    f"no pod of {workload} may be evicted, so no drain of its nodes ends, and an upgrade of "
                    "the cluster fails; allow one, or run more replicas"
                )
                yield _finding(owner, name, built, ("spec", field), message, is_note=True)
                break


def _allows_none(spec: Mapping[str, Any], replicas: Any) -> str:
    """Return the field of a budget by which no pod may go, "" where one may."""
    if str(spec.get("maxUnavailable")) in ("0", "0%"):
        return "maxUnavailable"
    least, count = spec.get("minAvailable"), 1 if replicas is None else replicas
    if str(least) == "100%":
        return "minAvailable"
    if isinstance(least, int) and isinstance(count, int) and 0 < count <= least:
        return "minAvailable"
    return ""


_Labelled = Mapping[tuple[str, str, str], list[tuple[ObjectId, Json]]]
"""The workloads by namespace and each label of their pods: many budgets do not each look at all of them."""


def _labelled(platform: ClusterPlatform) -> _Labelled:
    found: dict[tuple[str, str, str], list[tuple[ObjectId, Json]]] = {}
    for _, name, built in platform.objects:
        if is_kind(name, "apps", "Deployment", "StatefulSet"):
            for key, value in mapping(value_at(built.manifest, _LABELS)).items():
                found.setdefault((name.namespace, key, str(value)), []).append((name, built.manifest))
    return found


_LABELS = "spec.template.metadata.labels"


def _selected(labelled: _Labelled, namespace: str, selector: Any) -> Iterator[tuple[ObjectId, Json]]:
    wanted = mapping(mapping(selector).get("matchLabels"))
    having = (labelled.get((namespace, key, str(value)), []) for key, value in wanted.items())
    for name, manifest in min(having, key=len, default=[]):
        labels = mapping(value_at(manifest, _LABELS))
        if all(labels.get(key) == value for key, value in wanted.items()):
            yield name, manifest


def cut_off(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield the network policies that cut the pods of Kubernetes off, DNS among them."""
    policies = [
        owned
        for owned in platform.objects
        if is_kind(owned[1], "networking.k8s.io", "NetworkPolicy") and owned[1].namespace == "kube-system"
    ]
    for owner, name, built in policies:
        for direction, what in _CUT_OFF.items():
            allowed = any(items(value_at(other.manifest, f"spec.{direction}")) for _, _, other in policies)
            if _denies_all(built.manifest, direction) and not allowed:
                yield _finding(owner, name, built, ("spec",), what)
                break


_CUT_OFF = {
    "ingress": "no pod of kube-system gets a connection any more, so no pod of the cluster resolves a name; "
    "allow port 53 to CoreDNS, and what else is needed there",
    "egress": "no pod of kube-system reaches anything any more, so CoreDNS resolves no name outside of the "
    "cluster; allow what is needed",
}


def _denies_all(policy: Json, direction: str) -> bool:
    """Return whether a policy selects every pod and allows nothing in a direction."""
    types = [str(kind).lower() for kind in items(value_at(policy, "spec.policyTypes")) or ["Ingress"]]
    selects_all = not mapping(value_at(policy, "spec.podSelector"))
    return selects_all and direction in types and not items(value_at(policy, f"spec.{direction}"))


def without_dns(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield a note for each namespace whose pods may send something, and no question to DNS."""
    policies: dict[str, list[_Owned]] = {}
    for owned in platform.objects:
        if is_kind(owned[1], "networking.k8s.io", "NetworkPolicy"):
            policies.setdefault(owned[1].namespace, []).append(owned)
    for namespace, of_namespace in policies.items():
        rules = [
            rule
            for _, _, built in of_namespace
            for _, rule in objects_in(value_at(built.manifest, "spec.egress"))
        ]
        reaching = [rule for rule in rules if _may_reach_dns(rule)]
        ports = [items(rule.get("ports")) for rule in reaching]
        asks = any(not given or any(_is_dns(port) for port in given) for given in ports)
        wide = [
            owned
            for owned in of_namespace
            if not mapping(value_at(owned[2].manifest, "spec.podSelector"))
            and "Egress" in items(value_at(owned[2].manifest, "spec.policyTypes"))
        ]
        if wide and rules and not asks:
            owner, name, built = wide[0]
            message = (
                f"no pod of {namespace} may ask DNS, so none finds what its egress allows by name; allow "
                "port 53 of UDP and TCP to kube-system, whose label is kubernetes.io/metadata.name"
            )
            yield _finding(owner, name, built, ("spec", "egress"), message, is_note=True)


def _may_reach_dns(rule: Mapping[str, Any]) -> bool:
    """Return whether a rule may be for kube-system, which has no label ``name`` unless somebody adds it."""
    peers = [peer for _, peer in objects_in(rule.get("to"))]
    chosen = [mapping(mapping(peer.get("namespaceSelector")).get("matchLabels")) for peer in peers]
    return not peers or any(labels.keys() != {"name"} for labels in chosen)


def _is_dns(port: Any) -> bool:
    number, last = mapping(port).get("port"), mapping(port).get("endPort")
    if not isinstance(number, int):
        return True
    return number == 53 or (isinstance(last, int) and number <= 53 <= last)


def refused_by_quota(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield the workloads whose pods a quota refuses, because containers lack what it counts.

    A LimitRange may give it to them. Source: ``pkg/quota/v1/evaluator/core/pods.go`` Constraints.
    """
    ranges = {name.namespace for name in platform.known if is_kind(name, "", "LimitRange")}
    counted: dict[str, set[tuple[str, str]]] = {}
    for _, name, built in platform.objects:
        spec = mapping(built.manifest.get("spec"))
        scoped = spec.get("scopes") or spec.get("scopeSelector")
        if is_kind(name, "", "ResourceQuota") and name.namespace not in ranges and not scoped:
            for key in mapping(spec.get("hard")):
                field, _, resource = str(key).rpartition(".")
                if resource in ("cpu", "memory") and field in ("", "requests", "limits"):
                    counted.setdefault(name.namespace, set()).add((field or "requests", resource))
    for owner, name, built in platform.objects:
        path = PODS.get((name.group, name.kind))
        pod = mapping(at(built.manifest, path)) if path else {}
        if not path or pod.get("resources"):
            continue
        lacking = [
            f"{field}.{resource} ({container.get('name')})"
            for field, resource in sorted(counted.get(name.namespace, ()))
            for part in ("initContainers", "containers")
            for _, container in objects_in(pod.get(part))
            if not _amount_of(container, field, resource)
        ]
        if lacking:
            message = (
                f"a ResourceQuota of {name.namespace} counts what containers here do not have: "
                f"{named(lacking)}; no pod of it is created; set it, or add a LimitRange with defaults"
            )
            note = not platform.is_whole or platform.has_charts
            yield _finding(owner, name, built, path, message, is_note=note)


def _amount_of(container: Mapping[str, Any], field: str, resource: str) -> Any:
    """Return what a container asks for; without a request it is its limit."""
    given = mapping(container.get("resources"))
    limit = mapping(given.get("limits")).get(resource)
    return limit if field == "limits" else mapping(given.get("requests")).get(resource) or limit


# Webhooks

_CHOOSING = ("namespaceSelector", "objectSelector", "matchConditions")
_WIDE = frozenset(("*", "*/*", "pods"))
_WEBHOOKS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")


def webhooks_of_everything(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield a note for each webhook that fails closed for every object of every namespace."""
    for owner, name, built in platform.objects:
        if not is_kind(name, "admissionregistration.k8s.io", *_WEBHOOKS):
            continue
        for number, webhook in objects_in(built.manifest.get("webhooks")):
            chosen = any(webhook.get(field) for field in _CHOOSING)
            rules = (rule for _, rule in objects_in(webhook.get("rules")))
            wide = any(_WIDE.intersection(map(str, items(rule.get("resources")))) for rule in rules)
            if wide and not chosen and webhook.get("failurePolicy", "Fail") == "Fail":
                message = (
                    f"webhook {webhook.get('name')} is asked about the pods of every namespace, its own "
                    "and Flux's too: when it does not answer, nothing starts any more, itself included; "
                    "write a namespaceSelector that leaves these out, or failurePolicy: Ignore"
                )
                yield _finding(owner, name, built, ("webhooks", number), message, is_note=True)


def _finding(
    owner: Owner, name: ObjectId, built: BuiltObject, path: Path, message: str, *, is_note: bool = False
) -> Finding:
    return Finding(built.file or owner.file, name, path, message, is_note=is_note)
