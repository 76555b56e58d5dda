"""What AKS refuses for reasons that lie in several parts of a cluster: tables of rules, with their sources.

A source without a site is a page below learn.microsoft.com/azure/aks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shared.language.model.arm_types import Switch
from shared.language.model.cluster.spec import ClusterSpec
from shared.language.model.node_pool import NodePool
from shared.language.resolve.problems import Path
from shared.language.resolve.rules import access_rules, network_rules
from shared.language.resolve.rules.access_rules import own_zone
from shared.language.resolve.rules.network_rules import hosted_subnets, in_own_network
from shared.language.resolve.rules.pool_rules import MODE, POOL_RULES, provisions_nodes
from shared.language.resolve.rules.refusal import Broken, ClusterRule, Finding, completed

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


def _egress_beside(spec: ClusterSpec) -> Broken:
    gateway, families = spec.network_profile.static_egress_gateway_profile, spec.network_profile.ip_families
    if gateway is None or not gateway.enabled:
        return False
    if "IPv6" in (families or ()):
        return {"other": "ipFamilies: [IPv4, IPv6]"}
    return {"other": "podSubnetID"} if any(pool.pod_subnet_id for pool in spec.node_pools) else False


def _costs_without_disks(spec: ClusterSpec) -> bool:
    costs = spec.metrics_profile is not None and spec.metrics_profile.cost_analysis.enabled
    return costs and spec.storage_profile is not None and spec.storage_profile.disk_csi_driver == _OFF


def _sleeps_in_pools(spec: ClusterSpec) -> bool:
    return spec.sleep is not None and spec.sleep.of_pools


def _pools_that_sleep(spec: ClusterSpec) -> list[NodePool]:
    return [pool for pool in spec.node_pools if pool.mode == "User" and not pool.stopped]


_OFF = Switch(enabled=False)
CLUSTER_RULES: tuple[ClusterRule, ...] = (
    *network_rules.CLUSTER_RULES,
    *access_rules.CLUSTER_RULES,
    ClusterRule(
        ("autoUpgradeProfile", "nodeOSUpgradeChannel"),
        lambda spec: (
            spec.auto_upgrade_profile is not None
            and spec.auto_upgrade_profile.upgrade_channel == "node-image"
            and spec.auto_upgrade_profile.node_os_upgrade_channel not in (None, "NodeImage")
        ),
        "is NodeImage with upgradeChannel: node-image; write that, or another upgradeChannel",
        "auto-upgrade-node-os-image; azurerm kubernetes_cluster: node_os_upgrade_channel",
    ),
    ClusterRule(
        ("networkProfile", "staticEgressGatewayProfile"),
        lambda spec: (
            any(pool.mode == "Gateway" for pool in spec.node_pools)
            and spec.network_profile.static_egress_gateway_profile == _OFF
        ),
        "needs enabled: true for a node pool with mode: Gateway",
        "configure-static-egress-gateway: enable it before you create gateway node pools",
    ),
    ClusterRule(
        ("networkProfile", "staticEgressGatewayProfile"),
        _egress_beside,
        "a static egress gateway does not go with {other}; remove one of the two",
        "configure-static-egress-gateway: neither with Azure CNI Pod Subnet nor in dual-stack clusters",
    ),
    ClusterRule(
        MODE,
        lambda spec: provisions_nodes(spec) and "IPv6" in (spec.network_profile.ip_families or ()),
        "node auto-provisioning does not go with IPv6; write networkProfile.ipFamilies: [IPv4]",
        "node-auto-provisioning",
    ),
    ClusterRule(
        MODE,
        lambda spec: provisions_nodes(spec) and spec.network_profile.network_policy == "calico",
        "node auto-provisioning does not go with networkPolicy: calico; write cilium, or azure",
        "node-auto-provisioning-networking: unsupported networking configurations",
    ),
    ClusterRule(
        ("metricsProfile", "costAnalysis"),
        _costs_without_disks,
        "needs storageProfile.diskCSIDriver; turn that on, or remove this",
        "learn.microsoft.com/troubleshoot/azure/azure-kubernetes/extensions/aks-cost-analysis-add-on-issues",
    ),
    ClusterRule(
        ("publicNetworkAccess",),
        lambda spec: provisions_nodes(spec) and spec.public_network_access == "Disabled",
        "node auto-provisioning needs Enabled, also in a private cluster, which has no public address all "
        "the same; write that, or remove this line",
        "Azure/AKS#5586, Azure/AKS#5881: cannot be Auto unless publicNetworkAccess is Enabled",
    ),
    ClusterRule(
        ("sleep",),
        lambda spec: provisions_nodes(spec) and spec.sleep is not None,
        "AKS stops no cluster with node auto-provisioning, and none of its pools (Azure/AKS#5356); "
        "remove sleep, or write null where a default sets it",
        "start-stop-cluster, github.com/Azure/AKS/issues/5356",
    ),
    ClusterRule(
        ("sleep", "scope"),
        lambda spec: _sleeps_in_pools(spec) and not _pools_that_sleep(spec),
        "pools needs a node pool with mode: User that runs by day, because AKS stops no System pool; "
        "add one, or write scope: cluster",
        "start-stop-nodepools",
    ),
    ClusterRule(
        ("sleep", "scope"),
        lambda spec: _sleeps_in_pools(spec) and any(pool.of_machines for pool in _pools_that_sleep(spec)),
        "pools does not go with a User pool of type: VirtualMachines, because Azure does not document what "
        "such a pool shows while it is stopped; write scope: cluster, or another type",
        "start-stop-nodepools",
    ),
    ClusterRule(
        ("fqdnSubdomain",),
        lambda spec: spec.fqdn_subdomain is not None and spec.dns_prefix is not None,
        "takes the place of dnsPrefix; keep one",
        "private-clusters",
    ),
    ClusterRule(
        ("fqdnSubdomain",),
        lambda spec: spec.fqdn_subdomain is not None and not own_zone(spec),
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
        lambda spec: hosted_subnets(spec) in (1, 2),
        "needs systemNodeSubnetID, nodeSubnetID and apiServerAccessProfile.subnetId together, or none of "
        "them",
        "learn.microsoft.com/rest/api/aks/managed-clusters, ManagedClusterHostedSystemProfile",
    ),
    ClusterRule(
        ("networkProfile", "outboundType"),
        lambda spec: (
            spec.sku.automatic
            and spec.network_profile.outbound_type not in (None, "managedNATGateway")
            and not in_own_network(spec)
        ),
        "AKS Automatic has managedNATGateway here, unless node pools have a vnetSubnetID; remove this line",
        "intro-aks-automatic",
    ),
)


def broken_rules(spec: ClusterSpec, *, adopted: bool = False) -> Iterator[Finding]:
    """Yield the field and the message of each rule that a cluster breaks."""
    yield from other_than_preset(spec)
    whole = spec if adopted else completed(spec)
    for rule in CLUSTER_RULES:
        found = rule.broken(whole)
        if found:
            yield _place(rule.path, spec), _text(rule.message, found)
    for pool in whole.node_pools:
        for pool_rule in POOL_RULES:
            found = pool_rule.broken(whole, pool)
            if found:
                path = pool_rule.path or ("nodePools", pool.name, *pool_rule.field.split("."))
                yield _place(path, spec), _text(pool_rule.message, found, pool=pool.name)


def _text(message: str, found: Broken, **values: object) -> str:
    return message.format(**values, **(found if isinstance(found, Mapping) else {}))


def _place(path: Path, spec: ClusterSpec) -> Path:
    """Return the field to correct as git writes it: AKS Automatic always has node auto-provisioning."""
    if path == ("networkProfile", "podCidr") and spec.network_profile.pod_cidrs:
        return ("networkProfile", "podCidrs")
    return ("sku", "name") if path == MODE and spec.sku.automatic else path
