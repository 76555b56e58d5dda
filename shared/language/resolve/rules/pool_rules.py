"""What AKS refuses of a node pool for reasons that lie elsewhere in its cluster: a table, with sources.

A source without a site is a page below learn.microsoft.com/azure/aks.
"""

from __future__ import annotations

from collections.abc import Iterator

from shared.kubernetes_versions import numbers
from shared.language.model.cluster.spec import ClusterSpec
from shared.language.model.node_pool import AUTO, NodePool
from shared.language.model.node_pool_system import DnsOverride
from shared.language.resolve.problems import Path
from shared.language.resolve.rules import access_rules, machine_rules, network_rules, size_rules
from shared.language.resolve.rules.refusal import Broken, PoolRule, most_nodes
from shared.language.resolve.rules.size_rules import first_of


def _image(os_sku: str, *, last: tuple[int, int] = (9, 0), since: tuple[int, int] = (0, 0)) -> PoolRule:
    """Return the rule that an image exists only for some versions of Kubernetes."""
    begin, end = (f"{major}.{minor}" for major, minor in (since, last))
    if since == (0, 0):
        text = f"ends with Kubernetes {end}; choose a newer osSKU"
    else:
        text = f"needs Kubernetes {begin}{'' if last == (9, 0) else f' to {end}'}"
    return PoolRule(
        "osSKU",
        lambda spec, pool: pool.os_sku == os_sku and not since <= _version(spec, pool) <= last,
        f"{os_sku} {text}",
        "upgrade-windows-os, upgrade-os-version",
    )


def _version(spec: ClusterSpec, pool: NodePool) -> tuple[int, ...]:
    return numbers(pool.orchestrator_version or spec.kubernetes_version)[:2]


def provisions_nodes(spec: ClusterSpec) -> bool:
    """Return whether AKS makes nodes of its own choice for pods that wait."""
    profile = spec.node_provisioning_profile
    return spec.sku.automatic or (profile is not None and profile.mode == "Auto")


def _lacks_size(spec: ClusterSpec, pool: NodePool) -> bool:
    chosen_by_aks = pool.of_machines or (spec.sku.automatic and pool.mode == "System")
    return pool.vm_size is None and not chosen_by_aks


_OWN_TAINT = "CriticalAddonsOnly"


def _keeps_system_pods_out(_spec: ClusterSpec, pool: NodePool) -> Broken:
    """Return the first taint of a System pool that pods of AKS do not tolerate."""
    for taint in pool.node_taints if pool.mode == "System" else ():
        key, _, effect = taint.partition("=")[0], *taint.rpartition(":")[1:]
        if key != _OWN_TAINT and effect != "PreferNoSchedule":
            return {"taint": taint}
    return False


def _unlimited(_spec: ClusterSpec, pool: NodePool) -> bool:
    settings = pool.upgrade_settings
    return pool.mode == "System" and int(((settings and settings.max_unavailable) or "0").rstrip("%")) > 0


def _beyond_the_prefix(_spec: ClusterSpec, pool: NodePool) -> Broken:
    size = pool.gateway_profile and pool.gateway_profile.public_ip_prefix_size
    room = 2 ** (32 - (size or 31))
    return (
        {"nodes": most_nodes(pool), "room": room}
        if pool.mode == "Gateway" and most_nodes(pool) > room
        else False
    )


def _overrides(pool: NodePool) -> Iterator[tuple[str, str, DnsOverride]]:
    profile = pool.local_dns_profile
    if profile is not None:
        for kind, overrides in (("vnet", profile.vnet_dns_overrides), ("kube", profile.kube_dns_overrides)):
            yield from ((kind, domain, override) for domain, override in (overrides or {}).items())


def _loops(_spec: ClusterSpec, pool: NodePool) -> bool:
    return any(
        (kind == "vnet" and not _of_cluster(domain) and override.forward_destination == "ClusterCoreDNS")
        or (domain == "cluster.local" and override.forward_destination == "VnetDNS")
        for kind, domain, override in _overrides(pool)
    )


def _of_cluster(domain: str) -> bool:
    return f".{domain}".endswith(".cluster.local")


def _twice(_spec: ClusterSpec, pool: NodePool) -> Broken:
    """Return the first taint that differs from an earlier one in its value alone."""
    seen = dict[tuple[str, str], str]()
    for taint in pool.node_taints:
        if seen.setdefault((taint.partition("=")[0], taint.rpartition(":")[2]), taint) != taint:
            return {"taint": taint}
    return False


def _beside_a_reservation(_spec: ClusterSpec, pool: NodePool) -> Broken:
    others = {
        "scaleSetPriority: Spot": pool.scale_set_priority == "Spot",
        "proximityPlacementGroupID": pool.proximity_placement_group_id is not None,
        "hostGroupID": pool.host_group_id is not None,
        "enableUltraSSD": bool(pool.enable_ultra_ssd),
    }
    return pool.capacity_reservation_group_id is not None and first_of(others)


def _swaps(_spec: ClusterSpec, pool: NodePool) -> bool:
    kubelet, system = pool.kubelet_config, pool.linux_os_config
    return bool(system and system.swap_file_size_mb) and (
        kubelet is None or kubelet.fail_swap_on is not False
    )


def _not_with_machines(field: str, attribute: str) -> PoolRule:
    return PoolRule(
        field,
        lambda _spec, pool: pool.of_machines and getattr(pool, attribute) not in (None, ()),
        "does not go with type: VirtualMachines, where virtualMachinesProfile.scale has sizes and numbers; "
        "remove this line, or write null where a default sets it",
        "virtual-machines-node-pools",
    )


MODE: Path = ("nodeProvisioningProfile", "mode")
"""What has a cluster provision nodes by itself."""

POOL_RULES: tuple[PoolRule, ...] = (
    PoolRule("vmSize", _lacks_size, "is required; add it", "create-node-pools"),
    *(
        _not_with_machines(*names)
        for names in (
            ("vmSize", "vm_size"),
            ("count", "count"),
            ("minCount", "min_count"),
            ("maxCount", "max_count"),
        )
    ),
    PoolRule(
        "type",
        lambda _spec, pool: pool.of_machines and pool.virtual_machines_profile is None,
        "VirtualMachines needs virtualMachinesProfile.scale with the sizes of the nodes",
        "virtual-machines-node-pools",
    ),
    PoolRule(
        "virtualMachinesProfile",
        lambda _spec, pool: not pool.of_machines and pool.virtual_machines_profile is not None,
        "goes with type: VirtualMachines; write that, or remove it",
        "virtual-machines-node-pools",
    ),
    PoolRule(
        "scaleSetPriority",
        lambda _spec, pool: pool.of_machines and pool.scale_set_priority == "Spot",
        "Spot does not go with type: VirtualMachines; remove one of the two",
        "virtual-machines-node-pools",
    ),
    PoolRule(
        "creationData",
        lambda _spec, pool: pool.of_machines and pool.creation_data is not None,
        "does not go with type: VirtualMachines, which has no snapshots; remove one of the two",
        "virtual-machines-node-pools",
    ),
    PoolRule(
        "powerState",
        lambda _spec, pool: pool.of_machines and pool.stopped,
        "Stopped does not go with type: VirtualMachines, because Azure does not document what such a pool "
        "shows then; remove it, and write smaller numbers in virtualMachinesProfile.scale",
        "start-stop-nodepools",
    ),
    PoolRule(
        "powerState",
        lambda spec, pool: pool.stopped and provisions_nodes(spec),
        "node auto-provisioning does not go with stopped node pools; write count: 0 instead of powerState in "
        "node pool {pool}",
        "start-stop-nodepools",
        MODE,
    ),
    PoolRule(
        "enableFIPS",
        lambda spec, pool: bool(spec.enable_fips and not pool.enable_fips),
        "must be true in every node pool while enableFIPS of the cluster is true",
        "learn.microsoft.com/rest/api/aks/managed-clusters, enableFIPS",
    ),
    _image("Windows2019", last=(1, 32)),
    _image("Windows2022", last=(1, 36)),
    _image("Windows2025", since=(1, 32)),
    _image("Ubuntu2204", last=(1, 36)),
    _image("Ubuntu2404", since=(1, 32), last=(1, 38)),
    _image("AzureLinux3", last=(1, 36)),
    _image("AzureContainerLinux", since=(1, 34)),
    PoolRule(
        "upgradeSettings.maxSurge",
        lambda _spec, pool: (
            pool.scale_set_priority == "Spot"
            and pool.upgrade_settings is not None
            and pool.upgrade_settings.max_surge is not None
        ),
        "a Spot pool has no surge; remove this line, or write null where a default sets it",
        "spot-node-pool; hashicorp/terraform-provider-azurerm#19355, Azure/bicep-types-az#2217",
    ),
    PoolRule(
        "upgradeSettings.maxUnavailable",
        _unlimited,
        "a System pool has no maxUnavailable; write maxSurge",
        "upgrade-aks-node-pools-rolling: You can't set max unavailable on system node pools",
    ),
    PoolRule(
        "nodeTaints",
        _keeps_system_pods_out,
        "{taint} keeps AKS's own pods from a System pool; it may have CriticalAddonsOnly, or the effect "
        "PreferNoSchedule: write one of these, or give the taint to a User pool",
        "Azure/AKS#2578, Azure/AKS#1833: SystemPoolHasRestrictedTaint",
    ),
    PoolRule(
        "osType",
        lambda _spec, pool: pool.of_machines and pool.os_type == "Windows",
        "Windows does not go with type: VirtualMachines; remove one of the two",
        "virtual-machines-node-pools",
    ),
    PoolRule(
        "availabilityZones",
        lambda _spec, pool: pool.of_machines and pool.availability_zones not in ((), (AUTO,)),
        "does not go with type: VirtualMachines; remove it, or write [] where a default sets it",
        "virtual-machines-node-pools",
    ),
    PoolRule(
        "scaleDownMode",
        lambda _spec, pool: pool.scale_down_mode == "Deallocate" and pool.os_disk_type == "Ephemeral",
        "Deallocate needs osDiskType: Managed, since an ephemeral disk does not outlive its host",
        "scale-down-mode",
    ),
    PoolRule(
        "proximityPlacementGroupID",
        lambda _spec, pool: (
            pool.proximity_placement_group_id is not None
            and (len(pool.availability_zones) > 1 or AUTO in pool.availability_zones)
        ),
        "needs nodes in at most one of availabilityZones; keep one zone",
        "reduce-latency-ppg",
    ),
    PoolRule(
        "capacityReservationGroupID",
        _beside_a_reservation,
        "does not go with {other}; remove one of the two",
        "learn.microsoft.com/azure/virtual-machines/capacity-reservation-overview; CRGConflictWithSpotVM",
    ),
    PoolRule(
        "nodeTaints",
        _twice,
        "{taint} has the key and the effect of another taint; keep one",
        "kubernetes pkg/apis/core/validation ValidateNodeTaints: unique by key and effect pair",
    ),
    PoolRule(
        "linuxOSConfig.swapFileSizeMB",
        _swaps,
        "needs kubeletConfig.failSwapOn: false, since the kubelet starts on no node with swap otherwise",
        "node-auto-provisioning-aksnodeclass, custom-node-configuration",
    ),
    PoolRule(
        "messageOfTheDay",
        lambda _spec, pool: pool.os_type == "Windows" and pool.message_of_the_day is not None,
        "is for Linux nodes; remove it, or write null where a default sets it",
        "learn.microsoft.com/rest/api/aks/agent-pools, messageOfTheDay",
    ),
    PoolRule(
        "name",
        lambda _spec, pool: pool.name == "aksmanagedap",
        "is a name that AKS keeps for itself; choose another one",
        "github.com/Azure/AKS/releases/tag/2025-04-27; MicrosoftDocs/SupportArticles-docs#1873",
    ),
    PoolRule(
        "count",
        _beyond_the_prefix,
        "{nodes} nodes do not fit in the addresses of gatewayProfile.publicIPPrefixSize, which are {room}; "
        "write fewer nodes, or a shorter prefix",
        "configure-static-egress-gateway: the number of nodes must fit within the prefix",
    ),
    PoolRule(
        "localDNSProfile",
        _loops,
        "in vnetDNSOverrides, . and domains outside of the cluster cannot go to ClusterCoreDNS, and "
        "cluster.local never goes to VnetDNS; change forwardDestination",
        "localdns-custom; github.com/Azure/AKS/releases/tag/2026-01-04",
    ),
    PoolRule(
        "localDNSProfile",
        lambda _spec, pool: any(
            override.protocol == "ForceTCP" and override.serve_stale == "Verify"
            for _, _, override in _overrides(pool)
        ),
        "protocol: ForceTCP does not go with serveStale: Verify; write Immediate",
        "localdns-custom",
    ),
    PoolRule(
        "maxCount",
        lambda spec, pool: provisions_nodes(spec) and pool.autoscaling,
        "node auto-provisioning does not go with the cluster autoscaler; write count instead of minCount and "
        "maxCount in node pool {pool}",
        "node-auto-provisioning",
        MODE,
    ),
    PoolRule(
        "podSubnetID",
        lambda spec, pool: provisions_nodes(spec) and pool.pod_subnet_id is not None,
        "node auto-provisioning does not go with podSubnetID; remove it from node pool {pool}",
        "node-auto-provisioning-networking: dynamic IP allocation",
        MODE,
    ),
    PoolRule(
        "osType",
        lambda spec, pool: provisions_nodes(spec) and pool.os_type == "Windows",
        "node auto-provisioning does not go with Windows nodes; remove node pool {pool}",
        "node-auto-provisioning",
        MODE,
    ),
    *network_rules.POOL_RULES,
    *access_rules.POOL_RULES,
    *machine_rules.RULES,
    *size_rules.RULES,
)
