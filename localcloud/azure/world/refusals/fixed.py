"""What is fixed at creation, each with its source, and the changes of it that AKS knows a migration for."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from localcloud.azure.world.arm_errors import immutable
from localcloud.azure.world.refusals.rule import RequestedWrite

_NET = "networkProfile"
_AZURERM_CLUSTER = "azurerm cluster"
CLUSTER: Mapping[str, str] = {
    "dnsPrefix": "models ManagedClusterProperties.dns_prefix",
    "fqdnSubdomain": "models ManagedClusterProperties.fqdn_subdomain",
    "nodeResourceGroup": "docs faq: can't be changed after the creation",
    "enableRBAC": f"{_AZURERM_CLUSTER}: role_based_access_control_enabled",
    "diskEncryptionSetID": "docs azure-disk-customer-managed-keys: only when creating a cluster",
    f"{_NET}.networkPlugin": "docs update-azure-cni; Azure/AKS#409",
    f"{_NET}.networkPluginMode": "docs update-azure-cni: to overlay only, irreversible",
    f"{_NET}.networkPolicy": "docs use-network-policies",
    f"{_NET}.networkDataplane": "docs update-azure-cni; Azure/AKS#3369",
    f"{_NET}.networkMode": f"{_AZURERM_CLUSTER}: network_mode",
    f"{_NET}.serviceCidr": f"MicrosoftDocs/azure-docs#97132; {_AZURERM_CLUSTER}",
    f"{_NET}.serviceCidrs": f"{_AZURERM_CLUSTER}: service_cidrs",
    f"{_NET}.dnsServiceIP": f"{_AZURERM_CLUSTER}: dns_service_ip",
    f"{_NET}.loadBalancerSku": f"{_AZURERM_CLUSTER}: load_balancer_sku",
    "apiServerAccessProfile.subnetId": "docs api-server-vnet-integration: given when it is enabled",
    "linuxProfile.adminUsername": f"Azure/azure-quickstart-templates#3977; {_AZURERM_CLUSTER}",
    "windowsProfile.adminUsername": "docs windows-faq: given at creation; only the password changes",
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
_CAPZ = "CAPZ webhook ValidateUpdate"
_AZURERM = "azurerm node pool"
POOL: Mapping[str, str] = {
    "vmSize": "docs create-node-pools: can't be changed; Azure/azure-cli-extensions#9732: in preview only",
    "osType": f"MicrosoftDocs/azure-aks-docs#331; {_CAPZ}",
    "type": "not found; retained because docs availability-sets-on-aks has a migration of its own for it",
    **dict.fromkeys(("osDiskSizeGB", "kubeletDiskType"), f"{_CAPZ}; {_AZURERM}: needs another pool"),
    "osDiskType": "models AgentPool.os_disk_type: may not be changed after creation",
    **dict.fromkeys(("vnetSubnetID", "podSubnetID"), f"{_AZURERM}: needs another pool"),
    "podIPAllocationMode": "docs configure-azure-cni-static-block-allocation: no updates of node pools",
    "maxPods": "docs create-node-pools: the max pods setting can't be changed",
    "availabilityZones": f"docs availability-zones: can't be updated; {_CAPZ}",
    **dict.fromkeys(
        ("scaleSetPriority", "spotMaxPrice"), "docs spot-node-pool: can't be changed after creation"
    ),
    "scaleSetEvictionPolicy": "docs spot-node-pool: can only be set during creation",
    **dict.fromkeys(("kubeletConfig", "linuxOSConfig"), f"{_CAPZ}; {_AZURERM}: needs another pool"),
    "enableEncryptionAtHost": "docs enable-host-encryption: only at creation",
    "enableUltraSSD": f"docs use-ultra-disks: only at creation; {_CAPZ}",
    "enableNodePublicIP": f"hashicorp/terraform-provider-azurerm#10951; {_CAPZ}",
    "nodePublicIPPrefixID": f"{_CAPZ}; {_AZURERM}: needs another pool",
    "gpuInstanceProfile": "docs gpu-multi-instance: can't be changed after creation",
    "gpuProfile": "Azure/azure-cli#32531: on update only for pools with the tag SkipGPUDriverInstall",
    "proximityPlacementGroupID": "docs reduce-latency-ppg: at creation only",
    "hostGroupID": "models AgentPool.host_group_id: not allowed to be changed once set",
    "capacityReservationGroupID": "docs use-capacity-reservation-groups: of an existing pool in preview only",
    "workloadRuntime": "docs use-pod-sandboxing: with a new node pool; no change is documented",
    "messageOfTheDay": "docs enable-fips-nodes: at cluster creation or node pool creation",
    "windowsProfile": f"docs nat-gateway: when creating new Windows agent pools; {_AZURERM}",
    "gatewayProfile": "docs configure-static-egress-gateway: the limit of the prefix size is fixed",
}
"""``creationData`` is none of them: a pool can be upgraded to a snapshot (docs node-pool-snapshot)."""


def check_fixed(paths: Collection[str], asked: RequestedWrite, prefix: str = "") -> None:
    """Raise the refusal of a change of what is fixed."""
    for path in paths:
        if not asked.changes(path):
            continue
        old, new = asked.was(path) or None, asked.says(path)
        if isinstance(new, str) and (path, old, new) in WAYS:
            continue
        if path == "availabilityZones" and new == ["auto"]:
            continue  # docs configure-automatic-zone-placement: a pool takes it up by surge nodes
        if path == "apiServerAccessProfile.subnetId" and old is None:
            continue  # integration with a network can be switched on later
        if path.endswith("serviceCidrs") and _second_family(asked, old, new):
            continue
        raise immutable(f"{prefix}{path}")


def _second_family(asked: RequestedWrite, old: object, new: object) -> bool:
    added = asked.now(f"{_NET}.ipFamilies") == ["IPv4", "IPv6"] and asked.was(f"{_NET}.ipFamilies") == [
        "IPv4"
    ]
    return added and isinstance(new, list) and isinstance(old, list) and new[: len(old)] == old
