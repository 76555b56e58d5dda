"""Labels and taints of nodes, and who may set which."""

from __future__ import annotations

from typing import Annotated

from shared.fleet.manifests.base import Taint, rule

NodeTaint = Annotated[
    Taint, rule(r"[^:]+=[^:]*:.+", "key=value:NoSchedule, with the = that AKS requires even without a value")
]

NODE_DOMAINS = ("kubelet.kubernetes.io", "node.kubernetes.io", "node-role.kubernetes.io")
"""The domains of Kubernetes whose labels AKS takes (AKS, "Use labels"; node-role: Azure/AKS#4628)."""


def not_reserved(labels: dict[str, str]) -> dict[str, str]:
    """Return the labels; a ValueError where one is in a domain that AKS or Kubernetes reserves."""
    for key in labels:
        domain = key.rpartition("/")[0]
        if domain == "kubernetes.azure.com":
            raise ValueError(f"{key} is reserved by AKS; use another domain")
        if _is_below(domain, ("kubernetes.io", "k8s.io")) and not _is_below(domain, NODE_DOMAINS):
            raise ValueError(f"{key} is reserved by Kubernetes; use another domain, or {NODE_DOMAINS[1]}")
    return labels


def _is_below(domain: str, parents: tuple[str, ...]) -> bool:
    return any(f".{domain}".endswith(f".{parent}") for parent in parents)
