"""Objects of a cluster that stand in the way of an upgrade, and one of each kind that does not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.json_tree import Json

CART = {"app": "cart"}


def budget(
    name: str = "cart",
    *,
    namespace: str = "shop",
    allowed: int = 0,
    expected: int = 1,
    healthy: int = 1,
    desired: int = 1,
    selector: Json | None = None,
    status: Json | None = None,
    **spec: Any,
) -> Json:
    """Return a PodDisruptionBudget that needs the one pod that it has, unless it says otherwise."""
    counted = {"disruptionsAllowed": allowed, "expectedPods": expected, "currentHealthy": healthy}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": namespace, "generation": 1},
        "spec": {"selector": {"matchLabels": CART} if selector is None else selector, **(spec or _ONE)},
        "status": {"observedGeneration": 1, "desiredHealthy": desired, **counted, **(status or {})},
    }


_ONE = {"minAvailable": 1}


def pod(
    name: str = "cart-1",
    *,
    namespace: str = "shop",
    labels: Mapping[str, str] = CART,
    owner: str = "ReplicaSet",
    **metadata: Any,
) -> Json:
    """Return the metadata of a pod; one without an ``owner`` has no controller."""
    owners = [{"kind": owner, "name": "cart", "controller": True}] if owner else []
    own = {"name": name, "namespace": namespace, "labels": {**labels}, "ownerReferences": owners}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {**own, **metadata}}


def deployment(name: str = "cart", *, namespace: str = "shop", kind: str = "Deployment", **spec: Any) -> Json:
    """Return a workload with one replica, unless its spec says otherwise."""
    template = {"metadata": {"labels": {**CART}}, "spec": {"containers": [{"name": "a", "image": "a:1"}]}}
    wanted = {"replicas": 1, "selector": {"matchLabels": {**CART}}, "template": template, **spec}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": wanted,
    }


def webhook(
    name: str = "pods.guard.io", *, service: str = "guard", rule: Json | None = None, **fields: Any
) -> Json:
    """Return a configuration with one webhook that sees the creation of pods."""
    seen = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    client = {"service": {"namespace": "guard", "name": service}}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "guard"},
        "webhooks": [
            {
                "name": name,
                "failurePolicy": "Fail",
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "clientConfig": client,
                "rules": [{**seen, **(rule or {})}],
                **fields,
            }
        ],
    }


def sample(resource: str, release: str, *, version: str = "v1beta1", group: str = "resource.k8s.io") -> str:
    """Return a line of /metrics about a deprecated API that somebody asked for."""
    labels = f'group="{group}",removed_release="{release}",resource="{resource}",subresource=""'
    return f'apiserver_requested_deprecated_apis{{{labels},version="{version}"}} 1'


def kustomization(*entries: tuple[str, str]) -> Json:
    """Return a Kustomization with an inventory of (id, version)."""
    inventory = {"entries": [{"id": identity, "v": version} for identity, version in entries]}
    return {
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        "kind": "Kustomization",
        "metadata": {"name": "platform", "namespace": "flux-system"},
        "status": {"inventory": inventory},
    }


def node(name: str, pool: str, version: str) -> Json:
    """Return a node of a pool that runs a version of the kubelet."""
    labels = {"kubernetes.azure.com/agentpool": pool}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"nodeInfo": {"kubeletVersion": f"v{version}"}},
    }
