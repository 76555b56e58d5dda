"""What is fixed at creation, each with its source, and the changes of it that AKS knows a migration for."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from localcloud.azure.world.arm_errors import immutable
from localcloud.azure.world.refusals.rule import Asked

_NET = "networkProfile"
CLUSTER: Mapping[str, str] = {
    "dnsPrefix": "models ManagedClusterProperties.dns_prefix",
    "fqdnSubdomain": "models ManagedClusterProperties.fqdn_subdomain",
    "nodeResourceGroup": "docs faq: the name can't be changed",
    "enableRBAC": "docs: Kubernetes RBAC is a choice of the creation",
    "diskEncryptionSetID": "docs azure-disk-customer-managed-keys: only at creation",
    f"{_NET}.networkPlugin": "docs update-azure-cni",
    f"{_NET}.networkPluginMode": "docs update-azure-cni",
    f"{_NET}.networkPolicy": "docs use-network-policies",
    f"{_NET}.networkDataplane": "docs update-azure-cni",
    f"{_NET}.networkMode": "models ContainerServiceNetworkProfile.network_mode",
    f"{_NET}.serviceCidr": "docs concepts-network-ip-address-planning",
    f"{_NET}.serviceCidrs": "docs concepts-network-ip-address-planning",
    f"{_NET}.dnsServiceIP": "docs concepts-network-ip-address-planning",
    f"{_NET}.loadBalancerSku": "docs load-balancer-standard",
    "apiServerAccessProfile.subnetId": "docs api-server-vnet-integration",
    "linuxProfile.adminUsername": "docs node-access",
    "windowsProfile.adminUsername": "docs windows-faq",
}
WAYS: Collection[tuple[str, object, object]] = {
    (f"{_NET}.networkPlugin", "kubenet", "azure"),
    (f"{_NET}.networkPluginMode", None, "overlay"),
    (f"{_NET}.networkDataplane", "azure", "cilium"),
    (f"{_NET}.loadBalancerSku", "basic", "standard"),
    *((f"{_NET}.networkPolicy", "none", policy) for policy in ("azure", "calico", "cilium")),
    *((f"{_NET}.networkPolicy", policy, "none") for policy in ("azure", "calico")),
    *((f"{_NET}.networkPolicy", policy, "cilium") for policy in ("azure", "calico")),
}
"""Source: docs update-azure-cni, use-network-policies, upgrade-basic-load-balancer-on-aks."""
POOL: Mapping[str, str] = {
    **dict.fromkeys(("vmSize", "osType", "type"), "docs create-node-pools: a new node pool is needed"),
    **dict.fromkeys(
        ("osDiskSizeGB", "osDiskType", "kubeletDiskType"), "docs concepts-storage: set at creation"
    ),
    **dict.fromkeys(
        ("vnetSubnetID", "podSubnetID", "podIPAllocationMode"), "docs create-node-pools: set at creation"
    ),
    "maxPods": "docs quotas-skus-regions: can't be changed on an existing node pool",
    "availabilityZones": "docs availability-zones: can only be set at creation",
    **dict.fromkeys(("scaleSetPriority", "scaleSetEvictionPolicy", "spotMaxPrice"), "docs spot-node-pool"),
    **dict.fromkeys(("kubeletConfig", "linuxOSConfig"), "docs custom-node-configuration: only at creation"),
    "enableEncryptionAtHost": "docs enable-host-encryption: only at creation",
    "enableUltraSSD": "docs use-ultra-disks: only at creation",
    **dict.fromkeys(
        ("enableNodePublicIP", "nodePublicIPPrefixID"), "docs use-node-public-ips: only at creation"
    ),
    **dict.fromkeys(
        ("gpuInstanceProfile", "gpuProfile"), "docs use-nvidia-gpu, gpu-multi-instance: only at creation"
    ),
    "proximityPlacementGroupID": "docs reduce-latency-ppg: only at creation",
    "hostGroupID": "models AgentPool.host_group_id: not allowed to be changed once set",
    "capacityReservationGroupID": "docs use-capacity-reservation-groups: only at creation",
    "workloadRuntime": "docs use-pod-sandboxing: only at creation",
    "messageOfTheDay": "docs node-access: only at creation",
    "creationData": "docs node-pool-snapshot: only at creation",
    "windowsProfile": "docs windows-faq: only at creation",
    "gatewayProfile": "docs configure-static-egress-gateway: only at creation",
}


def check_fixed(paths: Collection[str], asked: Asked, prefix: str = "") -> None:
    """Raise the refusal of a change of what is fixed."""
    for path in paths:
        if not asked.changes(path):
            continue
        old, new = asked.was(path) or None, asked.says(path)
        if isinstance(new, str) and (path, old, new) in WAYS:
            continue
        if path == "apiServerAccessProfile.subnetId" and old is None:
            continue  # integration with a network can be switched on later
        if path.endswith("serviceCidrs") and _second_family(asked, old, new):
            continue
        raise immutable(f"{prefix}{path}")


def _second_family(asked: Asked, old: object, new: object) -> bool:
    added = asked.now(f"{_NET}.ipFamilies") == ["IPv4", "IPv6"] and asked.was(f"{_NET}.ipFamilies") == [
        "IPv4"
    ]
    return added and isinstance(new, list) and isinstance(old, list) and new[: len(old)] == old
