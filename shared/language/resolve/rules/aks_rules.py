"""What AKS refuses for reasons that lie in several parts of a cluster: a table of rules, with their sources.

A source without a site is a page below learn.microsoft.com/azure/aks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from shared.frozen import dataclass
from shared.kubernetes_versions import numbers
from shared.language.model.cluster.spec import ClusterSpec
from shared.language.model.node_pool import NodePool
from shared.language.resolve.problems import Path

# The settings that AKS Automatic presets; a source is a page below learn.microsoft.com/azure/aks.

PRESET_BY_AUTOMATIC: Mapping[str, str | bool] = {
    "sku.tier": "Standard",
    "autoUpgradeProfile.upgradeChannel": "stable",
    "autoUpgradeProfile.nodeOSUpgradeChannel": "NodeImage",
    "nodeProvisioningProfile.mode": "Auto",
    "nodeResourceGroupProfile.restrictionLevel": "ReadOnly",
    "apiServerAccessProfile.enableVnetIntegration": True,
    "aadProfile.enableAzureRBAC": True,
    "oidcIssuerProfile.enabled": True,
    "securityProfile.workloadIdentity.enabled": True,
    "securityProfile.imageCleaner.enabled": True,
    "addonProfiles.azurepolicy.enabled": True,
    "workloadAutoScalerProfile.keda.enabled": True,
    "workloadAutoScalerProfile.verticalPodAutoscaler.enabled": True,
}
"""What AKS Automatic presets and nobody can change: "Preconfigured" in intro-aks-automatic. Azure Policy
carries the Deployment Safeguards, which cannot be switched off: deployment-safeguards."""


def other_than_preset(spec: ClusterSpec) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the settings with another value than AKS Automatic presets."""
    if not spec.sku.automatic:
        return
    written = spec.model_dump(by_alias=True, exclude_none=True)
    for name, value in PRESET_BY_AUTOMATIC.items():
        path = tuple(name.split("."))
        found = _at(written, path)
        if found is not None and found != value:
            shown = "true" if value is True else value
            yield path, f"AKS Automatic presets {shown}; write it, or remove this line"


def _at(written: dict[str, Any], path: tuple[str, ...]) -> Any:
    below: Any = written
    for key in path:
        below = below.get(key) if isinstance(below, dict) else None
    return below


@dataclass(frozen=True)
class PoolRule:
    """A rule of each node pool: the field to correct, when it is broken, and what to do.

    ``path`` is the field where that is one of the cluster. ``{pool}`` in the message is the pool's name.
    """

    field: str
    broken: Callable[[ClusterSpec, NodePool], bool]
    message: str
    source: str
    path: Path = ()


@dataclass(frozen=True)
class ClusterRule:
    """The same for the cluster as a whole."""

    path: Path
    broken: Callable[[ClusterSpec], bool]
    message: str
    source: str


def _image(os_sku: str, *, below: tuple[int, int] = (9, 0), since: tuple[int, int] = (0, 0)) -> PoolRule:
    """Return the rule that an image exists only for some versions of Kubernetes."""
    last = f"ends with Kubernetes {below[0]}.{below[1] - 1}; choose a newer osSKU"
    return PoolRule(
        "osSKU",
        lambda spec, pool: pool.os_sku == os_sku and not since <= _version(spec, pool) < below,
        f"{os_sku} {last if since == (0, 0) else f'needs Kubernetes {since[0]}.{since[1]}'}",
        "upgrade-windows-os",
    )


def _version(spec: ClusterSpec, pool: NodePool) -> tuple[int, ...]:
    return numbers(pool.orchestrator_version or spec.kubernetes_version)[:2]


def _provisions_nodes(spec: ClusterSpec) -> bool:
    profile = spec.node_provisioning_profile
    return spec.sku.automatic or (profile is not None and profile.mode == "Auto")


def _lacks_size(spec: ClusterSpec, pool: NodePool) -> bool:
    chosen_by_aks = pool.of_machines or (spec.sku.automatic and pool.mode == "System")
    return pool.vm_size is None and not chosen_by_aks


def _zone(spec: ClusterSpec) -> str:
    profile = spec.api_server_access_profile
    return (profile.private_dns_zone or "") if profile else ""


def _hosted_subnets(spec: ClusterSpec) -> int:
    """Return how many of the three subnets that go together a cluster has."""
    hosted, access = spec.hosted_system_profile, spec.api_server_access_profile
    own = (hosted.system_node_subnet_id, hosted.node_subnet_id) if hosted else ()
    return sum(1 for subnet in (*own, access and access.subnet_id) if subnet) if any(own) else 0


def _in_own_network(spec: ClusterSpec) -> bool:
    return bool(_hosted_subnets(spec)) or any(pool.vnet_subnet_id for pool in spec.node_pools)


def _not_with_machines(field: str, attribute: str) -> PoolRule:
    return PoolRule(
        field,
        lambda _spec, pool: pool.of_machines and getattr(pool, attribute) not in (None, ()),
        "does not go with type: VirtualMachines, where virtualMachinesProfile.scale has sizes and numbers; "
        "remove this line, or write null where a default sets it",
        "virtual-machines-node-pools",
    )


_MODE: Path = ("nodeProvisioningProfile", "mode")
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
        lambda spec, pool: pool.stopped and _provisions_nodes(spec),
        "node auto-provisioning does not go with stopped node pools; write count: 0 instead of powerState in "
        "node pool {pool}",
        "start-stop-nodepools",
        _MODE,
    ),
    PoolRule(
        "enableFIPS",
        lambda spec, pool: bool(spec.enable_fips and not pool.enable_fips),
        "must be true in every node pool while enableFIPS of the cluster is true",
        "learn.microsoft.com/rest/api/aks/managed-clusters, enableFIPS",
    ),
    _image("Windows2019", below=(1, 33)),
    _image("Windows2022", below=(1, 36)),
    _image("Windows2025", since=(1, 32)),
    PoolRule(
        "maxCount",
        lambda spec, pool: _provisions_nodes(spec) and pool.autoscaling,
        "node auto-provisioning does not go with the cluster autoscaler; write count instead of minCount and "
        "maxCount in node pool {pool}",
        "node-auto-provisioning",
        _MODE,
    ),
    PoolRule(
        "osType",
        lambda spec, pool: _provisions_nodes(spec) and pool.os_type == "Windows",
        "node auto-provisioning does not go with Windows nodes; remove node pool {pool}",
        "node-auto-provisioning",
        _MODE,
    ),
)
CLUSTER_RULES: tuple[ClusterRule, ...] = (
    ClusterRule(
        _MODE,
        lambda spec: _provisions_nodes(spec) and "IPv6" in (spec.network_profile.ip_families or ()),
        "node auto-provisioning does not go with IPv6; write networkProfile.ipFamilies: [IPv4]",
        "node-auto-provisioning",
    ),
    ClusterRule(
        ("fqdnSubdomain",),
        lambda spec: spec.fqdn_subdomain is not None and spec.dns_prefix is not None,
        "takes the place of dnsPrefix; keep one",
        "private-clusters",
    ),
    ClusterRule(
        ("fqdnSubdomain",),
        lambda spec: spec.fqdn_subdomain is not None and not _zone(spec).startswith("/"),
        "needs apiServerAccessProfile.privateDNSZone with the resource id of your own zone",
        "private-clusters",
    ),
    ClusterRule(
        ("enableRBAC",),
        lambda spec: spec.enable_rbac is False and spec.aad_profile is not None,
        "false does not go with aadProfile, which needs Kubernetes RBAC; remove one of the two",
        "learn.microsoft.com/cli/azure/aks, --disable-rbac",
    ),
    ClusterRule(
        ("hostedSystemProfile",),
        lambda spec: spec.hosted_system_profile is not None and not spec.sku.automatic,
        "is for sku.name: Automatic; remove it, or write Automatic",
        "automatic/aks-automatic-managed-system-node-pools-about",
    ),
    ClusterRule(
        ("hostedSystemProfile",),
        lambda spec: _hosted_subnets(spec) in (1, 2),
        "needs systemNodeSubnetID, nodeSubnetID and apiServerAccessProfile.subnetId together, or none of "
        "them",
        "learn.microsoft.com/rest/api/aks/managed-clusters, ManagedClusterHostedSystemProfile",
    ),
    ClusterRule(
        ("networkProfile", "outboundType"),
        lambda spec: (
            spec.sku.automatic
            and spec.network_profile.outbound_type not in (None, "managedNATGateway")
            and not _in_own_network(spec)
        ),
        "AKS Automatic has managedNATGateway here, unless node pools have a vnetSubnetID; remove this line",
        "intro-aks-automatic",
    ),
)


def broken_rules(spec: ClusterSpec) -> Iterator[tuple[Path, str]]:
    """Yield the field and the message of each rule that a cluster breaks."""
    yield from other_than_preset(spec)
    for rule in CLUSTER_RULES:
        if rule.broken(spec):
            yield _place(rule.path, spec), rule.message
    for pool in spec.node_pools:
        for pool_rule in POOL_RULES:
            if pool_rule.broken(spec, pool):
                path = pool_rule.path or ("nodePools", pool.name, pool_rule.field)
                yield _place(path, spec), pool_rule.message.format(pool=pool.name)


def _place(path: Path, spec: ClusterSpec) -> Path:
    """Return the field to correct: AKS Automatic always has node auto-provisioning."""
    return ("sku", "name") if path == _MODE and spec.sku.automatic else path
