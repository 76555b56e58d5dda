"""Kubernetes through the official client: connections to each cluster."""

from __future__ import annotations

from shared.adapters.kubernetes.connections import AKS_SCOPE, KubernetesConnections

__all__ = ["AKS_SCOPE", "KubernetesConnections"]
