"""Namespaces of a system that AKS manages: Azure Resource Manager creates, changes and deletes them.

Names and values are those of NamespaceProperties in azure-mgmt-containerservice; what they do is that of
learn.microsoft.com/azure/aks/concepts-managed-namespaces. A quota there has processors in thousandths, and
memory in powers of two (ResourceQuota of the same library).
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StrictStr

from shared.fleet.manifests.base import OWN_PREFIX, LabelKey, LabelValue, Manifest

PolicyRule = Literal["AllowAll", "AllowSameNamespace", "DenyAll"]
DeletePolicy = Literal["Keep", "Delete"]
TENANT_LABEL = "toolkit.fluxcd.io/tenant"
SECURITY_LABEL = "pod-security.kubernetes.io/enforce"
SYSTEM_NAMESPACES = ("app-routing-system", "gatekeeper-system", "istio-system")
"""Namespaces of AKS besides kube-*, which it does not take as managed ones: "Limitations" of
learn.microsoft.com/azure/aks/managed-namespaces."""
_OF_OTHERS = ("kubernetes.io/metadata.name", "kubernetes.azure.com/managedByArm")
_MEMORY = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def _of_the_team(key: str) -> str:
    if key.startswith(OWN_PREFIX) or key in (TENANT_LABEL, SECURITY_LABEL, *_OF_OTHERS):
        raise ValueError(f"{key} is set by Roadstead or by AKS; remove it")
    return key


Key = Annotated[LabelKey, AfterValidator(_of_the_team)]


class ManagedNamespaces(Manifest):
    """AKS creates and confines the namespaces of the system, through Azure Resource Manager."""

    adoption_policy: Literal["Never", "IfIdentical", "Always"] = "Never"
    """What happens to a namespace that exists and that Roadstead did not create. Never: the job waits.
    IfIdentical: it is taken over if nothing differs. Always: it is taken over, and what differs is
    overwritten."""
    delete_policy: DeletePolicy = "Keep"
    """What happens to a namespace that the system loses. Keep: it stays in the cluster, and Azure no longer
    manages it. Delete: Azure deletes it with everything in it."""
    ingress: PolicyRule | None = None
    """From where pods accept connections. Left out: what networkPolicy of the system says."""
    egress: PolicyRule = "AllowAll"
    """Where pods may connect to; DenyAll includes the DNS of the cluster."""
    labels: dict[Key, LabelValue] = Field(default_factory=dict)
    """More labels of the namespaces."""
    annotations: dict[Key, Annotated[StrictStr, Field(max_length=1024)]] = Field(default_factory=dict)
    """Annotations of the namespaces."""


def thousandths(cpu: str) -> str | None:
    """Return processors in thousandths, such as "500m" for "0.5"; None for another unit."""
    number, milli = (cpu[:-1], 1) if cpu.endswith("m") else (cpu, 1000)
    try:
        whole = Decimal(number) * milli
    except InvalidOperation:
        return None
    return f"{int(whole)}m" if whole == int(whole) else None


def is_power_of_two(memory: str) -> bool:
    """Return whether memory is in one of the units of Azure's quota."""
    return memory.endswith(_MEMORY)
