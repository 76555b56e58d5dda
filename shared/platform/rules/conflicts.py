"""Objects that work against each other, or against the cluster, though the API server takes each of them.

Sources: kubernetes.io, "Horizontal Pod Autoscaling" (leave ``spec.replicas`` to it), "Specifying a Disruption
Budget" (a budget that allows none holds a drain), "Network Policies" (a policy that selects all pods
and allows nothing cuts them off), "Dynamic Admission Control" (a webhook that fails closed refuses what it is
asked about while it does not answer), "Service"; Azure/AKS#3558, #5767.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from shared.json_tree import Json
from shared.kubernetes.flux_objects import NAMESPACE
from shared.language.resolve.problems import Path
from shared.platform.changes.objects import (
    PodTemplate,
    is_open,
    items,
    mapping,
    mapping_at,
    objects_in,
    value_at,
)
from shared.platform.inventory import ObjectId
from shared.platform.rules.finding import ClusterPlatform, Finding, OwnedObject, is_custom, named, names_in
from shared.platform.rules.limits import amount_of, defaults

_SCALERS = (("autoscaling", "HorizontalPodAutoscaler"), ("keda.sh", "ScaledObject"))


def scaled_twice(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield what two scale: two autoscalers are refused, an autoscaler and Flux are a note."""
    scalers: dict[ObjectId, list[OwnedObject]] = {}
    for owned in platform.objects:
        if owned.id[:2] in _SCALERS:
            scalers.setdefault(_target(owned), []).append(owned)
    for target, all_of in scalers.items():
        if len({owned.id for owned in all_of}) > 1:
            names = named([str(owned.id) for owned in all_of])
            message = f"{names} scale {target} in turns; keep one of them"
            yield all_of[-1].finding(("spec", "scaleTargetRef"), message)
    for owned in platform.objects:
        if owned.id in scalers and owned.spec.get("replicas") is not None:
            message = (
                f"{scalers[owned.id][-1].id} scales {owned.id}, and Flux sets it back to these replicas with "
                "each reconciliation; remove spec.replicas"
            )
            yield owned.finding(("spec", "replicas"), message, is_note=True)


def _target(scaler: OwnedObject) -> ObjectId:
    ref = mapping(scaler.spec.get("scaleTargetRef"))
    group = str(ref.get("apiVersion") or "apps/v1").rpartition("/")[0]
    return ObjectId(
        group, str(ref.get("kind") or "Deployment"), scaler.id.namespace, str(ref.get("name") or "")
    )


def unscaled(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield a note for each autoscaler that goes by a share of requests which containers do not have.

    It scales nothing then; a LimitRange may give the requests. Source: kubernetes#79365.
    """
    given = defaults(platform)
    for owned in platform.of_kind(*_SCALERS[0]):
        target = _target(owned)
        found = platform.known.get(target)
        pod = PodTemplate.of(target, found.manifest) if found else None
        if pod is None or pod.spec.get("resources"):
            continue
        for number, metric in objects_in(owned.spec.get("metrics")):
            resource = mapping(metric.get("resource"))
            what = str(resource.get("name") or "")
            lacking = [
                str(container.get("name"))
                for _, container in pod.containers("containers")
                if not amount_of(container, "requests", what)
            ]
            is_given = ("requests", what) in given.get(owned.id.namespace, ())
            if value_at(resource, "target.type") == "Utilization" and lacking and not is_given:
                message = (
                    f"a share of the requests of {what}, which {named(lacking)} of {target} does not have, "
                    f"so nothing is scaled; set resources.requests.{what}"
                )
                yield owned.finding(("spec", "metrics", number), message, is_note=True)


def undrainable(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield a note for each budget by which no pod of a workload may be evicted: no node is upgraded.

    So it is where a pod has two: ``pkg/registry/core/pod/storage/eviction.go``, kubernetes#75957.
    """
    having: dict[ObjectId, ObjectId] = {}
    labelled = _labelled(platform, "Deployment", "StatefulSet")
    for owned in platform.of_kind("policy", "PodDisruptionBudget"):
        chosen = mapping_at(owned.manifest, "spec.selector.matchLabels")
        for workload, _ in _selected(labelled, owned.id.namespace, chosen):
            other = having.get(workload.id)
            field = _allows_none(owned.spec, workload.spec.get("replicas"))
            having.setdefault(workload.id, owned.id)
            if other not in (None, owned.id):
                message = (
                    f"{other} is for the pods of {workload.id} too, and a pod with two budgets is not "
                    "evicted: no drain of its nodes ends, and an upgrade of the cluster fails; remove one"
                )
                yield owned.finding(("spec", "selector"), message, is_note=True)
                break
            if field:
                message = (
                    f"no pod of {workload.id} may be evicted, so no drain of its nodes ends, and an upgrade "
                    "of the cluster fails; allow one, or run more replicas"
                )
                yield owned.finding(("spec", field), message, is_note=True)
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


_Labelled = Mapping[tuple[str, str, str], list[tuple[OwnedObject, PodTemplate]]]
"""The workloads by namespace and each label of their pods: many budgets do not each look at all of them."""


def _labelled(platform: ClusterPlatform, *kinds: str) -> _Labelled:
    """Return the workloads of some kinds, by default of all, by the labels of their pods."""
    found: dict[tuple[str, str, str], list[tuple[OwnedObject, PodTemplate]]] = {}
    for owned, pod in platform.pods:
        for key, value in pod.labels.items() if not kinds or owned.id.kind in kinds else ():
            found.setdefault((owned.id.namespace, key, str(value)), []).append((owned, pod))
    return found


def _selected(labelled: _Labelled, namespace: str, wanted: Json) -> Sequence[tuple[OwnedObject, PodTemplate]]:
    """Return the workloads whose pods have some labels; none for no labels."""
    having = (labelled.get((namespace, key, str(value)), []) for key, value in wanted.items())
    rarest = min(having, key=len, default=[])
    return [(owned, pod) for owned, pod in rarest if wanted.items() <= pod.labels.items()]


def selects_nothing(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield a note for each Service, or budget, that selects no pod, and each port that none of them has."""
    if not platform.is_sure:
        return
    labelled = _labelled(platform)
    ports: dict[tuple[str, str], Collection[str] | None] = {}  # many select the same pods
    for (group, kind), fields in _SELECTING.items():
        for owned in platform.of_kind(group, kind):
            wanted = mapping_at(owned.manifest, fields)
            if not wanted or any(map(is_open, wanted.values())):
                continue
            place = owned.id.namespace, json.dumps(wanted, sort_keys=True, default=str)
            if place not in ports:
                chosen = _selected(labelled, owned.id.namespace, wanted)
                ports[place] = _ports_of([pod for _, pod in chosen]) if chosen else None
            names = ports[place]
            if names is None:
                given = ", ".join(f"{key}={value}" for key, value in wanted.items())
                message = (
                    f"no pod of {owned.id.namespace} here has {given}, so {owned.id} is for nothing; correct "
                    "it, unless something else creates its pods"
                )
                yield owned.finding(fields, message, is_note=True)
            elif kind == "Service":
                yield from _unanswered(owned, names)


_SELECTING = {
    ("", "Service"): ("spec", "selector"),
    ("policy", "PodDisruptionBudget"): ("spec", "selector", "matchLabels"),
}


def _ports_of(pods: Sequence[PodTemplate]) -> Collection[str]:
    return {name for pod in pods for _, found in pod.containers() for name in names_in(found.get("ports"))}


def _unanswered(service: OwnedObject, names: Collection[str]) -> Iterator[Finding]:
    for number, port in objects_in(service.spec.get("ports")):
        target = port.get("targetPort")
        if isinstance(target, str) and target not in names and not any(map(is_open, (target, *names))):
            message = f"no port of the pods that this selects is called {target}, so nothing answers there"
            yield service.finding(("spec", "ports", number, "targetPort"), message, is_note=True)


def cut_off(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield the network policies that cut the pods of Kubernetes off, DNS among them, or those of Flux.

    The components of Flux may have policies of their own, which allow what it needs: fluxcd/flux2#2152, #703;
    flux-operator creates them for a FluxInstance (``spec.cluster.networkPolicy``, true by default).
    """
    every = _policies(platform)
    allowed_elsewhere = any(
        (owned.id.kind.endswith("NetworkPolicy") and owned.id.group != "networking.k8s.io")
        or owned.id.kind == "FluxInstance"
        for owned in platform.objects
    )
    for namespace, effects in _CUT_OFF.items():
        policies = every.get(namespace, [])
        is_open_there = any(is_open(policy.manifest.get("spec")) for policy in policies)
        own = any(
            known.kind == "NetworkPolicy" and known.namespace == namespace for known in platform.provided
        )
        for policy in () if is_open_there or own else policies:
            for direction, what in effects.items():
                allowed = any(other.spec.get(direction) for other in policies)
                if _denies_all(policy.spec, direction) and not allowed:
                    is_note = namespace == NAMESPACE and (allowed_elsewhere or not platform.kinds.knows_flux)
                    yield policy.finding(("spec",), what, is_note=is_note)
                    break


def _policies(platform: ClusterPlatform) -> Mapping[str, list[OwnedObject]]:
    """Return the network policies of each namespace."""
    found: dict[str, list[OwnedObject]] = {}
    for owned in platform.of_kind("networking.k8s.io", "NetworkPolicy"):
        found.setdefault(owned.id.namespace, []).append(owned)
    return found


_OF_KUBERNETES = {
    "ingress": "no pod of kube-system gets a connection any more, so no pod of the cluster resolves a name; "
    "allow port 53 to CoreDNS, and what else is needed there",
    "egress": "no pod of kube-system reaches anything any more, so CoreDNS resolves no name outside of the "
    "cluster; allow what is needed",
}
_NO_MORE = "so Flux applies nothing any more, no revert of this either"
_CUT_OFF = {
    "kube-system": _OF_KUBERNETES,
    NAMESPACE: {
        "ingress": f"no pod of {NAMESPACE} gets a connection any more, source-controller none from "
        f"kustomize-controller, {_NO_MORE}; allow what comes from its own pods",
        "egress": f"no pod of {NAMESPACE} reaches anything any more, neither git nor the API server, "
        f"{_NO_MORE}; allow all of its egress",
    },
}


def _denies_all(spec: Json, direction: str) -> bool:
    """Return whether a policy selects every pod and allows nothing in a direction."""
    given = spec.get("policyTypes")
    types = [str(kind).lower() for kind in (items(given) if given else ("Ingress",))]
    return not spec.get("podSelector") and direction in types and not spec.get(direction)


def without_dns(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield a note for each namespace whose pods may send something, and no question to DNS."""
    for namespace, policies in _policies(platform).items():
        rules = [rule for policy in policies for _, rule in objects_in(policy.spec.get("egress"))]
        ports = [items(rule.get("ports")) for rule in rules if _may_reach_dns(rule)]
        asks = any(not given or any(_is_dns(port) for port in given) for given in ports)
        wide = [
            policy
            for policy in policies
            if not policy.spec.get("podSelector") and "Egress" in items(policy.spec.get("policyTypes"))
        ]
        if wide and rules and not asks:
            message = (
                f"no pod of {namespace} may ask DNS, so none finds what its egress allows by name; allow "
                "port 53 of UDP and TCP to kube-system, whose label is kubernetes.io/metadata.name"
            )
            yield wide[0].finding(("spec", "egress"), message, is_note=True)


def _may_reach_dns(rule: Mapping[str, Any]) -> bool:
    """Return whether a rule may be for kube-system, which has no label ``name`` unless somebody adds it."""
    peers = [peer for _, peer in objects_in(rule.get("to"))]
    chosen = [mapping_at(peer, "namespaceSelector.matchLabels") for peer in peers]
    return not peers or any(labels.keys() != {"name"} for labels in chosen)


def _is_dns(port: Any) -> bool:
    number, last = mapping(port).get("port"), mapping(port).get("endPort")
    if not isinstance(number, int):
        return True
    return number == 53 or (isinstance(last, int) and number <= 53 <= last)


_AGGREGATED = (
    "the control plane writes the rules of this role from others, and Flux takes them away with each "
    "reconciliation, so rights are missing for a moment; remove rules"
)
_INJECTED = (
    "cert-manager writes caBundle, and Flux writes this one over it, so the API server trusts no answer; "
    "remove it"
)


def written_in_turns(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield a note for each field that a controller fills, and Flux overwrites with what git has.

    Sources: fluxcd/flux2#2472, fluxcd/kustomize-controller#1041 (rules of an aggregated role);
    chaos-mesh/chaos-mesh#4822 (a bundle that cert-manager injects; Flux itself removes an invalid one of a
    definition alone, fluxcd/pkg#952).
    """
    for owned in platform.of_kind("rbac.authorization.k8s.io", "ClusterRole"):
        if owned.manifest.get("aggregationRule") and owned.manifest.get("rules") is not None:
            yield owned.finding(("rules",), _AGGREGATED, is_note=True)
    for owned in platform.of_kind("admissionregistration.k8s.io", *_WEBHOOKS):
        marks = mapping_at(owned.manifest, "metadata.annotations")
        if any(str(mark).startswith("cert-manager.io/inject-") for mark in marks):
            for number, webhook in objects_in(owned.manifest.get("webhooks")):
                if value_at(webhook, "clientConfig.caBundle"):
                    path: Path = ("webhooks", number, "clientConfig", "caBundle")
                    yield owned.finding(path, _INJECTED, is_note=True)


# Webhooks

_CHOOSING = ("namespaceSelector", "objectSelector", "matchConditions")
_WIDE = frozenset(("*", "*/*", "pods"))
_WEBHOOKS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")


def webhooks_of_everything(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield a note for each webhook that fails closed for every object of every namespace."""
    for owned in platform.of_kind("admissionregistration.k8s.io", *_WEBHOOKS):
        for number, webhook in objects_in(owned.manifest.get("webhooks")):
            chosen = any(webhook.get(field) for field in _CHOOSING)
            rules = (rule for _, rule in objects_in(webhook.get("rules")))
            wide = any(_WIDE.intersection(map(str, items(rule.get("resources")))) for rule in rules)
            if wide and not chosen and webhook.get("failurePolicy", "Fail") == "Fail":
                message = (
                    f"webhook {webhook.get('name')} is asked about the pods of every namespace, its own "
                    "and Flux's too: when it does not answer, nothing starts any more, itself included; "
                    "write a namespaceSelector that leaves these out, or failurePolicy: Ignore"
                )
                yield owned.finding(("webhooks", number), message, is_note=True)


def unanswered_webhooks(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield the webhooks that fail closed and have no pod: what they are asked about is refused everywhere.

    Kubernetes.io, "Dynamic Admission Control", Availability.
    """
    labelled = _labelled(platform)
    scaled = {_target(owned) for owned in platform.objects if owned.id[:2] in _SCALERS}
    brings_pods = any(is_custom(owned.id.group) for owned in platform.objects)
    for owned in platform.of_kind("admissionregistration.k8s.io", *_WEBHOOKS):
        for number, webhook in objects_in(owned.manifest.get("webhooks")):
            ref = mapping_at(webhook, "clientConfig.service")
            service = ObjectId("", "Service", str(ref.get("namespace") or ""), str(ref.get("name") or ""))
            found = platform.known.get(service)
            wanted = mapping_at(found.manifest, "spec.selector") if found else {}
            fails_closed = webhook.get("failurePolicy", "Fail") == "Fail"
            if not fails_closed or not wanted or any(map(is_open, wanted.values())):
                continue
            chosen = [workload for workload, _ in _selected(labelled, service.namespace, wanted)]
            asleep = [workload for workload in chosen if workload.spec.get("replicas") == 0]
            if len(asleep) < len(chosen) or scaled.intersection(workload.id for workload in chosen):
                continue
            who = (
                f"{named([str(workload.id) for workload in asleep])} has no replica"
                if asleep
                else (f"no pod here has the labels of {service}")
            )
            message = (
                f"{who}, so nothing answers webhook {webhook.get('name')}, and what it is asked about is "
                "refused on the whole cluster; remove this webhook first, or write failurePolicy: Ignore"
            )
            if asleep or platform.is_sure:
                is_fault = platform.is_sure and (asleep or not brings_pods)
                yield owned.finding(("webhooks", number), message, is_note=not is_fault)
