"""What a team's system is on a cluster, as objects. All are in its namespaces, besides these themselves.

Labels and names are those of ``flux create tenant``, and Flux applies a tenant's manifests as in
fluxcd.io/flux/installation/configuration/multitenancy. A RoleBinding to a ClusterRole grants it in one
namespace (kubernetes.io/docs/reference/access-authn-authz/rbac); AKS knows Entra groups by their object
ids (learn.microsoft.com/azure/aks/azure-ad-rbac).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shared.json_tree import Json
from shared.kubernetes.flux_lockdown import identity_annotations
from shared.kubernetes.flux_objects import KUSTOMIZATION, stamped
from shared.kubernetes.sync_objects import SOURCE_API, SOURCE_KINDS, flux_path, source_spec
from shared.language.cluster_systems import ClusterSystem
from shared.language.model.base import OWN_PREFIX

SYSTEM = f"{OWN_PREFIX}system"
"""The label of each object of a system, with the name of the system."""
TENANT = "toolkit.fluxcd.io/tenant"
"""The label with which Flux marks a tenant."""
NOTIFICATIONS = "notification.toolkit.fluxcd.io/v1beta3"
_RBAC = "rbac.authorization.k8s.io"
KINDS: tuple[tuple[str, str], ...] = (
    (NOTIFICATIONS, "Alert"),
    (NOTIFICATIONS, "Provider"),
    (KUSTOMIZATION.api_version, KUSTOMIZATION.kind),
    *((SOURCE_API, kind) for kind in SOURCE_KINDS),
    (f"{_RBAC}/v1", "RoleBinding"),
    ("v1", "ServiceAccount"),
    ("networking.k8s.io/v1", "NetworkPolicy"),
    ("v1", "LimitRange"),
    ("v1", "ResourceQuota"),
    ("v1", "Namespace"),
)
"""The kinds of a system's objects, in the order in which they are removed."""
_ALERTED = ("Kustomization", "HelmRelease")
_HARD = {
    "cpu": "requests.cpu",
    "memory": "requests.memory",
    "limitsCpu": "limits.cpu",
    "limitsMemory": "limits.memory",
    "storage": "requests.storage",
    "pods": "pods",
    "loadBalancers": "services.loadbalancers",
}
"""What a quota of Kubernetes calls the fields (kubernetes.io/docs/concepts/policy/resource-quotas)."""
_BY_AZURE = ("cpu", "memory", "limitsCpu", "limitsMemory")
"""What the quota of a managed namespace has in Azure; quotas add up, so the cluster's has the rest."""


def system_objects(system: ClusterSystem) -> tuple[Json, ...]:
    """Return the objects of a system in the order in which they are applied."""
    return tuple(stamped(document) for document in _objects(system))


def _objects(system: ClusterSystem) -> Iterator[dict[str, Any]]:
    for name in system.namespaces:
        if system.managed_namespaces is None:
            yield _namespace(system, name)
        yield from _confinement(system, name)
    yield _account(system)
    for name in system.namespaces:
        yield from _bindings(system, name)
    yield from _alert(system)  # before what fails: Flux repeats no event for an Alert that comes later
    yield from _sync(system)


def _namespace(system: ClusterSystem, name: str) -> dict[str, Any]:
    namespace = _object(system, "v1", "Namespace", name, "")
    namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = system.pod_security
    return namespace


def _confinement(system: ClusterSystem, namespace: str) -> Iterator[dict[str, Any]]:
    quota = system.quota.model_dump(by_alias=True, exclude_none=True)
    if system.managed_namespaces is not None:
        quota = {field: value for field, value in quota.items() if field not in _BY_AZURE}
    if quota:
        hard = {_HARD[name]: str(value) for name, value in quota.items()}
        yield _object(system, "v1", "ResourceQuota", "roadstead", namespace, {"hard": hard})
    limits: dict[str, Any] = {
        name: given
        for name, given in system.limits.model_dump(by_alias=True, exclude_none=True).items()
        if given
    }
    if limits:
        spec: dict[str, Any] = {"limits": [{"type": "Container", **limits}]}
        yield _object(system, "v1", "LimitRange", "roadstead", namespace, spec)
    if _isolates_in_the_cluster(system):
        own = {"namespaceSelector": {"matchLabels": {SYSTEM: system.name}}}
        spec = {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{"from": [own]}]}
        yield _object(system, "networking.k8s.io/v1", "NetworkPolicy", "roadstead-isolated", namespace, spec)


def _isolates_in_the_cluster(system: ClusterSystem) -> bool:
    """Return whether a policy in the cluster lets the system's own namespaces in, and nobody else.

    That of Azure knows one namespace only, and policies add up; whoever wrote ``ingress`` means that alone.
    """
    managed = system.managed_namespaces
    if system.network_policy != "isolated" or managed is None:
        return system.network_policy == "isolated"
    return managed.ingress is None and len(system.namespaces) > 1


def _account(system: ClusterSystem) -> dict[str, Any]:
    """Return the account with which Flux applies, and as whose identity of Azure it pulls.

    Flux asks for both annotations where a source names the account (``auth/azure/identity.go`` of
    fluxcd/pkg).
    """
    account = _object(system, "v1", "ServiceAccount", system.name, system.home)
    identity = system.source.workload_identity
    if identity is not None:
        account["metadata"]["annotations"] = identity_annotations(identity.client_id, identity.tenant_id)
    return account


def _source(system: ClusterSystem) -> dict[str, Any]:
    """Return what Flux pulls: as the account of the system, wherever an identity of Azure signs it in."""
    source = system.main_source
    if system.source.workload_identity is not None:
        source = source.model_copy(update={"service_account_name": system.name})
    return source_spec(source)


def _bindings(system: ClusterSystem, namespace: str) -> Iterator[dict[str, Any]]:
    """Yield the bindings; the role, which cannot change, and the system are parts of their names."""
    account = {"kind": "ServiceAccount", "name": system.name, "namespace": system.home}
    role = system.service_account_role
    yield _binding(system, f"{system.name}-reconciler-{role}", namespace, role, [account])
    groups: dict[str, list[dict[str, str]]] = {}
    for group in system.groups:
        subject = {"kind": "Group", "name": group.id.lower(), "apiGroup": _RBAC}
        groups.setdefault(group.role, []).append(subject)
    for given, subjects in sorted(groups.items()):
        yield _binding(system, f"{system.name}-groups-{given}", namespace, given, subjects)


def _binding(
    system: ClusterSystem, name: str, namespace: str, role: str, subjects: list[dict[str, str]]
) -> dict[str, Any]:
    binding = _object(system, f"{_RBAC}/v1", "RoleBinding", name, namespace)
    ref = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role}
    return {**binding, "roleRef": ref, "subjects": subjects}


def _sync(system: ClusterSystem) -> Iterator[dict[str, Any]]:
    source = system.source
    yield _object(system, SOURCE_API, source.kind, system.name, system.home, _source(system))
    applied: dict[str, Any] = {
        "interval": source.interval,
        "path": flux_path(source.path),
        "prune": True,
        "serviceAccountName": system.name,
        "sourceRef": {"kind": source.kind, "name": system.name},
    }
    if len(system.namespaces) == 1:  # it would put the objects of all namespaces into one
        applied["targetNamespace"] = system.home
    yield _object(system, KUSTOMIZATION.api_version, KUSTOMIZATION.kind, system.name, system.home, applied)


def _alert(system: ClusterSystem) -> Iterator[dict[str, Any]]:
    alerts = system.alerts
    if alerts is None:
        return
    provider: dict[str, Any] = {"type": alerts.type, "secretRef": {"name": alerts.secret_ref.name}}
    if alerts.channel is not None:
        provider["channel"] = alerts.channel
    yield _object(system, NOTIFICATIONS, "Provider", system.name, system.home, provider)
    alert = {
        "providerRef": {"name": system.name},
        "eventSeverity": alerts.severity,
        "eventSources": [{"kind": kind, "name": "*"} for kind in (system.source.kind, *_ALERTED)],
    }
    yield _object(system, NOTIFICATIONS, "Alert", system.name, system.home, alert)


def _object(
    system: ClusterSystem,
    api_version: str,
    kind: str,
    name: str,
    namespace: str,
    spec: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "labels": {SYSTEM: system.name, TENANT: system.name}}
    if namespace:
        metadata["namespace"] = namespace
    manifest: dict[str, Any] = {"apiVersion": api_version, "kind": kind, "metadata": metadata}
    return manifest if spec is None else {**manifest, "spec": spec}


def system_of(live: Json) -> str:
    """Return the system that an object is labelled with, "" for none."""
    return str((live["metadata"].get("labels") or {}).get(SYSTEM, ""))
