"""The admission webhooks that stand between a node and its pods, and refuse when they do not answer. Pure.

Source: ``k8s.io/api/admissionregistration/v1`` (rules, failurePolicy, clientConfig), and for the endpoints of
a Service ``k8s.io/api/discovery/v1``: an endpoint without the condition ``ready`` counts as ready.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from shared.frozen import dataclass
from shared.json_tree import Json

API_VERSION = "admissionregistration.k8s.io/v1"
KINDS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
SERVICE_LABEL = "kubernetes.io/service-name"
"""The label of an EndpointSlice with the name of its Service."""
NEEDED: Mapping[str, frozenset[str]] = {
    "nodes": frozenset({"CREATE", "UPDATE", "DELETE"}),
    "nodes/status": frozenset({"UPDATE"}),
    "pods": frozenset({"CREATE", "DELETE"}),
    "pods/binding": frozenset({"CREATE"}),
    "pods/eviction": frozenset({"CREATE"}),
    "pods/status": frozenset({"UPDATE"}),
}
"""What an upgrade writes: nodes join, are cordoned and removed, pods are evicted, created, bound and run."""


@dataclass(frozen=True)
class Service:
    """A Service that a webhook calls."""

    namespace: str
    name: str


@dataclass(frozen=True)
class NodeWebhook:
    """A webhook that refuses what an upgrade writes while its service does not answer; ``on`` are those."""

    configuration: str
    name: str
    service: Service
    on: tuple[str, ...]


def node_webhooks(configurations: Iterable[Json]) -> Iterator[NodeWebhook]:
    """Yield the webhooks of configurations that refuse what an upgrade writes when they do not answer.

    One that calls an address, and no Service, shows nothing of who answers there, and is left out.
    """
    for document in configurations:
        for webhook in document.get("webhooks") or ():
            service = (webhook.get("clientConfig") or {}).get("service")
            if webhook.get("failurePolicy", "Fail") != "Fail" or not service:
                continue
            on = tuple(name for name in NEEDED if any(_matches(r, name) for r in webhook.get("rules") or ()))
            if on:
                called = Service(str(service.get("namespace")), str(service.get("name")))
                name = f"{document['kind']} {document['metadata']['name']}"
                yield NodeWebhook(name, str(webhook.get("name")), called, on)


def _matches(rule: Json, resource: str) -> bool:
    """Return whether a rule is for what an upgrade writes of a resource of the core group.

    Source: kubernetes/apiserver ``pkg/admission/plugin/webhook/predicates/rules/rules.go``.
    """
    plain, _, sub = resource.partition("/")
    in_namespace = plain == "pods"
    if rule.get("scope", "*") not in ("*", "Namespaced" if in_namespace else "Cluster"):
        return False
    parts = (str(pattern).partition("/") for pattern in rule.get("resources") or ())
    if not any(of in ("*", plain) and under in ("*", sub) for of, _, under in parts):
        return False
    groups, operations = rule.get("apiGroups") or (), {*(rule.get("operations") or ())}
    versions = rule.get("apiVersions") or ()
    in_core = ("" in groups or "*" in groups) and ("v1" in versions or "*" in versions)
    return in_core and bool(operations & {"*", *NEEDED[resource]})


def ready_endpoints(slices: Iterable[Json]) -> int:
    """Return how many endpoints the EndpointSlices of a Service have that are ready."""
    found = (endpoint for document in slices for endpoint in document.get("endpoints") or ())
    return sum((endpoint.get("conditions") or {}).get("ready") is not False for endpoint in found)


def unanswered(webhooks: Iterable[NodeWebhook], ready: Mapping[Service, int]) -> Iterator[NodeWebhook]:
    """Yield the webhooks whose service has no ready endpoint; one that is not in ``ready`` is unknown."""
    return (webhook for webhook in webhooks if ready.get(webhook.service) == 0)
