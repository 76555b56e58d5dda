"""Pods that people run on the clusters, and the disruption budgets that do not let them go."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any

from localcloud.kubernetes.world.kubernetes_clusters import KubernetesClusters
from shared.cluster.failures.errors import ReconcileError
from shared.json_tree import Json
from shared.resource_ids import ClusterId, ObjectRef

NAMESPACE = "default"
POOL_LABEL = "kubernetes.azure.com/agentpool"


class Workloads:
    """The pods and budgets of all clusters; ``choose`` returns one of some nodes."""

    def __init__(self, clusters: KubernetesClusters, choose: Callable[[list[Json]], Json]) -> None:
        self._clusters, self._choose = clusters, choose
        self._numbers = itertools.count(1)
        self._budgets: list[tuple[ClusterId, ObjectRef]] = []

    def protect(self, cluster: ClusterId, pools: Collection[str]) -> str:
        """Run a pod on a node of some pools, with a budget that keeps it; return the node, "" for none."""
        with suppress(ReconcileError):
            api = self._clusters.connect(cluster)
            nodes = [node for node in api.list("v1", "Node") if not node["spec"].get("unschedulable")]
            nodes = [node for node in nodes if node["metadata"]["labels"].get(POOL_LABEL) in pools]
            if not nodes:
                return ""
            name, node = f"app{next(self._numbers)}", str(self._choose(nodes)["metadata"]["name"])
            metadata = {"name": name, "namespace": NAMESPACE, "labels": {"app": name}}
            container = {"name": "web", "image": "web:1"}
            api.apply(_object("v1", "Pod", metadata, {"nodeName": node, "containers": [container]}))
            selector = {"matchLabels": {"app": name}}
            budget = _object(
                "policy/v1", "PodDisruptionBudget", metadata, {"selector": selector, "minAvailable": 1}
            )
            api.apply(budget)
            self._budgets.append((cluster, ObjectRef("policy/v1", "PodDisruptionBudget", name, NAMESPACE)))
            return node
        return ""

    def protected(self, cluster: ClusterId, pool: str) -> list[str]:
        """Return the pods on the nodes of a pool that a budget keeps."""
        with suppress(ReconcileError):
            api = self._clusters.connect(cluster)
            nodes = {
                node["metadata"]["name"] for node in api.list("v1", "Node", labels=f"{POOL_LABEL}={pool}")
            }
            budgets = {budget.name for where, budget in self._budgets if where == cluster and api.get(budget)}
            pods = [p for p in api.list("v1", "Pod") if p["spec"].get("nodeName") in nodes]
            return [name for pod in pods if (name := pod["metadata"]["name"]) in budgets]
        return []

    def release(self) -> None:
        """Remove every budget."""
        for cluster, ref in self._budgets:
            with suppress(ReconcileError):
                api = self._clusters.connect(cluster)
                budget = api.get(ref)
                if budget is not None:
                    api.delete(budget)
        self._budgets.clear()


def _object(api_version: str, kind: str, metadata: dict[str, Any], spec: dict[str, Any]) -> Json:
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}
