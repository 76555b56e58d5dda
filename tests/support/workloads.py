"""Pods and disruption budgets for tests."""

from __future__ import annotations

from typing import Any

from shared.json_tree import Json
from shared.ports import KubernetesApi


def pod(name: str, node: str, *, namespace: str = "default", **metadata: Any) -> Json:
    """Return a pod on a node; ``metadata`` is what it has besides its name."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": {"nodeName": node, "containers": [{"name": "web", "image": "web:1"}]},
    }


def budget(app: str = "web", *, name: str = "", namespace: str = "default", **spec: Any) -> Json:
    """Return the budget of an app's pods, named like the app; ``spec`` states how many must stay."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name or app, "namespace": namespace},
        "spec": {"selector": {"matchLabels": {"app": app}}, **spec},
    }


def run_blocked_pod(api: KubernetesApi, pool: str, *, namespace: str = "default") -> None:
    """Run the pod web on the first node of a pool; its budget does not let it go."""
    node = api.list("v1", "Node", labels=f"kubernetes.azure.com/agentpool={pool}")[0]
    api.apply(pod("web", node["metadata"]["name"], namespace=namespace, labels={"app": "web"}))
    api.apply(budget(namespace=namespace, minAvailable=1))
