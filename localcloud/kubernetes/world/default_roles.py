"""The roles that every Kubernetes API server has, as far as what is built here needs them.

Source: kubernetes/kubernetes ``plugin/pkg/auth/authorizer/rbac/bootstrappolicy/testdata/cluster-roles.yaml``;
kinds that the local API server does not serve are left out. ``admin`` and ``edit`` have no rule of their own:
the cluster roles that carry their label are aggregated into them (kubernetes.io, "Aggregated ClusterRoles").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Rule = Mapping[str, Any]
_READS = ("get", "list", "watch")
_WRITES = ("create", "delete", "deletecollection", "patch", "update")
_TO = "rbac.authorization.k8s.io/aggregate-to-"


@dataclass(frozen=True)
class ClusterRole:
    """A cluster role: its rules and labels, and the label whose roles are aggregated into it, "" for none."""

    rules: Sequence[Rule] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    aggregates: str = ""


def _rule(group: str, resources: str, verbs: Sequence[str]) -> Rule:
    return {"apiGroups": [group], "resources": resources.split(), "verbs": list(verbs)}


def _label(role: str) -> Mapping[str, str]:
    return {f"{_TO}{role}": "true"}


DEFAULT_ROLES: Mapping[str, ClusterRole] = {
    "cluster-admin": ClusterRole(({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},)),
    "admin": ClusterRole(aggregates=f"{_TO}admin"),
    "edit": ClusterRole(labels=_label("admin"), aggregates=f"{_TO}edit"),
    "view": ClusterRole(labels=_label("edit"), aggregates=f"{_TO}view"),
    "system:aggregate-to-admin": ClusterRole(
        (_rule("rbac.authorization.k8s.io", "rolebindings roles", (*_READS, *_WRITES)),), _label("admin")
    ),
    "system:aggregate-to-edit": ClusterRole(
        (
            _rule("", "secrets", _READS),
            _rule("", "serviceaccounts", ("impersonate",)),
            _rule("", "pods", _WRITES),
            _rule(
                "",
                "configmaps events persistentvolumeclaims secrets serviceaccounts services",
                _WRITES,
            ),
            _rule("apps", "daemonsets deployments replicasets statefulsets", _WRITES),
            _rule("autoscaling", "horizontalpodautoscalers", _WRITES),
            _rule("batch", "cronjobs jobs", _WRITES),
            _rule("policy", "poddisruptionbudgets", _WRITES),
            _rule("networking.k8s.io", "ingresses networkpolicies", _WRITES),
            _rule("coordination.k8s.io", "leases", (*_READS, *_WRITES)),
        ),
        _label("edit"),
    ),
    "system:aggregate-to-view": ClusterRole(
        (
            _rule("", "configmaps endpoints persistentvolumeclaims pods serviceaccounts services", _READS),
            _rule("", "events limitranges resourcequotas namespaces", _READS),
            _rule("apps", "daemonsets deployments replicasets statefulsets", _READS),
            _rule("autoscaling", "horizontalpodautoscalers", _READS),
            _rule("batch", "cronjobs jobs", _READS),
            _rule("policy", "poddisruptionbudgets", _READS),
            _rule("networking.k8s.io", "ingresses networkpolicies", _READS),
        ),
        _label("view"),
    ),
}
