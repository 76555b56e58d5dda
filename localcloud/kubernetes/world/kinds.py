"""The kinds of a Kubernetes API: one table of built-in kinds, and those that CRDs add.

Objects of one resource are stored once, whatever version they are read in: ``ResourceKind.storage``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from localcloud.kubernetes.schema.definitions import Type, built_in
from localcloud.kubernetes.schema.definitions import custom as custom_type


@dataclass(frozen=True)
class ResourceKind:
    """One kind in one version; ``columns`` are a CRD's additionalPrinterColumns, ``schema`` its schema.

    ``status``: has a status subresource. ``generation``: metadata.generation counts changes of the spec.
    """

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    short: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    status: bool = False
    generation: bool = False
    custom: bool = False
    deprecated: bool = False
    columns: tuple[Mapping[str, Any], ...] = ()
    schema: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)

    @cached_property
    def type(self) -> Type:
        """The type of its objects."""
        return custom_type(self.schema) if self.custom else built_in(self.api_version, self.kind)

    @cached_property
    def api_version(self) -> str:
        """As written in an object: "v1", "apps/v1"."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @cached_property
    def storage(self) -> tuple[str, str]:
        """What all versions of the resource share."""
        return (self.group, self.plural)

    @property
    def resource(self) -> str:
        """As written in error messages: "secrets", "deployments.apps"."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


def _core(kind: str, plural: str, *short: str) -> ResourceKind:
    return ResourceKind("", "v1", kind, plural, short=short)


def _webhooks(kind: str, plural: str) -> ResourceKind:
    group = "admissionregistration.k8s.io"
    return ResourceKind(group, "v1", kind, plural, namespaced=False, generation=True)


def _workload(kind: str, plural: str, short: str) -> ResourceKind:
    base = ResourceKind("apps", "v1", kind, plural, short=(short,), categories=("all",))
    return replace(base, status=True, generation=True)


def _rbac(kind: str, plural: str, *, namespaced: bool) -> ResourceKind:
    return ResourceKind("rbac.authorization.k8s.io", "v1", kind, plural, namespaced=namespaced)


BUILT_IN: tuple[ResourceKind, ...] = (
    replace(_core("Namespace", "namespaces", "ns"), namespaced=False, status=True),
    replace(_core("Node", "nodes", "no"), namespaced=False, status=True),
    replace(_core("PersistentVolume", "persistentvolumes", "pv"), namespaced=False, status=True),
    replace(_core("Pod", "pods", "po"), status=True, categories=("all",), generation=True),
    replace(_core("Service", "services", "svc"), status=True, categories=("all",)),
    replace(_core("PersistentVolumeClaim", "persistentvolumeclaims", "pvc"), status=True),
    replace(_core("ResourceQuota", "resourcequotas", "quota"), status=True),
    _core("ConfigMap", "configmaps", "cm"),
    _core("Endpoints", "endpoints", "ep"),
    _core("Event", "events", "ev"),
    _core("LimitRange", "limitranges", "limits"),
    _core("Secret", "secrets"),
    _core("ServiceAccount", "serviceaccounts", "sa"),
    _workload("Deployment", "deployments", "deploy"),
    _workload("StatefulSet", "statefulsets", "sts"),
    _workload("DaemonSet", "daemonsets", "ds"),
    _workload("ReplicaSet", "replicasets", "rs"),
    _rbac("Role", "roles", namespaced=True),
    _rbac("RoleBinding", "rolebindings", namespaced=True),
    _rbac("ClusterRole", "clusterroles", namespaced=False),
    _rbac("ClusterRoleBinding", "clusterrolebindings", namespaced=False),
    ResourceKind(
        "networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", short=("netpol",), generation=True
    ),
    ResourceKind(
        "networking.k8s.io", "v1", "Ingress", "ingresses", short=("ing",), status=True, generation=True
    ),
    ResourceKind(
        "policy",
        "v1",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        short=("pdb",),
        status=True,
        generation=True,
    ),
    ResourceKind(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        namespaced=False,
        short=("crd", "crds"),
        status=True,
        generation=True,
    ),
    ResourceKind("coordination.k8s.io", "v1", "Lease", "leases"),
    ResourceKind("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices"),
    _webhooks("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
    _webhooks("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
    ResourceKind("batch", "v1", "Job", "jobs", categories=("all",), status=True, generation=True),
    ResourceKind(
        "batch", "v1", "CronJob", "cronjobs", short=("cj",), categories=("all",), status=True, generation=True
    ),
    ResourceKind(
        "autoscaling",
        "v2",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        short=("hpa",),
        categories=("all",),
        status=True,
    ),
    ResourceKind("storage.k8s.io", "v1", "StorageClass", "storageclasses", namespaced=False, short=("sc",)),
    ResourceKind(
        "scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", namespaced=False, short=("pc",)
    ),
)

NAMESPACE, NODE, POD, BUDGET, SERVICE_ACCOUNT, DEPLOYMENT, REPLICA_SET, STATEFUL_SET, CRD = (
    next(kind for kind in BUILT_IN if kind.kind == name)
    for name in (
        *("Namespace", "Node", "Pod", "PodDisruptionBudget", "ServiceAccount", "Deployment"),
        *("ReplicaSet", "StatefulSet", "CustomResourceDefinition"),
    )
)


def kinds_of(crd: Mapping[str, Any]) -> tuple[ResourceKind, ...]:
    """Return the kinds that a CustomResourceDefinition serves, one for each served version."""
    spec = crd["spec"]
    names = spec["names"]
    return tuple(
        ResourceKind(
            spec["group"],
            version["name"],
            names["kind"],
            names["plural"],
            namespaced=spec.get("scope") == "Namespaced",
            short=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            status="status" in (version.get("subresources") or {}),
            generation=True,
            custom=True,
            deprecated=bool(version.get("deprecated")),
            columns=tuple(version.get("additionalPrinterColumns") or ()),
            schema=(version.get("schema") or {}).get("openAPIV3Schema"),
        )
        for version in spec.get("versions") or ()
        if version.get("served")
    )


class Kinds:
    """The kinds that one cluster serves now."""

    def __init__(self) -> None:
        self._custom: dict[str, tuple[ResourceKind, ...]] = {}
        self._serve({})

    def serve(self, crd: Mapping[str, Any]) -> None:
        """Serve the kinds of an established CRD."""
        self._serve({**self._custom, crd["metadata"]["name"]: kinds_of(crd)})

    def withdraw(self, crd_name: str) -> None:
        """Stop serving the kinds of a CRD."""
        self._serve({name: kinds for name, kinds in self._custom.items() if name != crd_name})

    def _serve(self, custom: dict[str, tuple[ResourceKind, ...]]) -> None:
        self._custom = custom
        self._all = (*BUILT_IN, *(kind for kinds in custom.values() for kind in kinds))
        self._named = {(kind.api_version, kind.kind): kind for kind in reversed(self._all)}

    def all(self) -> Sequence[ResourceKind]:
        """Return every kind, the built-in ones first."""
        return self._all

    def resource(self, group: str, version: str, plural: str) -> ResourceKind | None:
        """Return the kind behind a URL's group, version and plural."""
        for kind in self.all():
            if (kind.group, kind.version, kind.plural) == (group, version, plural):
                return kind
        return None

    def named(self, api_version: str, kind_name: str) -> ResourceKind | None:
        """Return the kind that an object's apiVersion and kind mean."""
        return self._named.get((api_version, kind_name))
