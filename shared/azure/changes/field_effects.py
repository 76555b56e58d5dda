"""What changing each field of an existing cluster does: a table of data, with the source of each entry.

A pattern is the path in a cluster's ``spec``; ``[]`` stands for any node pool, ``*`` for any one key. A
pattern also covers the fields below its own. The first entry that matches counts; a field without one is
changed in place. A source without a site is a page below learn.microsoft.com/azure/aks.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from functools import partial

from shared.azure.changes import conditions as only
from shared.azure.changes.conditions import Circumstance
from shared.frozen import dataclass
from shared.language.model.arm_types import OWNED_BY_AZURE


class Effect(StrEnum):
    """What a change does."""

    IN_PLACE = "in place"
    REIMAGED = "in place, nodes are reimaged"
    LATER_NODES = "in place, on nodes that are created or reimaged afterwards"
    INTERRUPTED = "in place, with a short interruption"
    EGRESS = "in place, outbound addresses change and open connections end"
    NODES_DELETED = "in place, nodes are deleted"
    NODES_STOPPED = "in place, nodes are stopped"
    SLEEPS = "Azure stops and starts the cluster: pods that nothing manages end, its address may change"
    POOLS_SLEEP = "Azure stops and starts the User node pools: their pods end or are pending, Flux stays"
    REPLACEMENT = "node pool replacement"
    RECREATION = "needs recreation"
    AZURE = "owned by Azure"
    UNMANAGED = "no longer managed"
    CHECKED = "fixed: must equal the value in Azure"
    MAY_REPLACE = "node pool replacement, unless Azure has this value"
    POOL_CREATED = "a new node pool"
    POOL_DELETED = "the node pool is deleted"
    NAMESPACES_DELETED = "namespaces are deleted"
    ROLLED_BACK = "the node pool is rolled back, nodes are reimaged"
    NEVER_LOWERED = "never lowered: a newer version that runs stays"
    RUNS_ALREADY = "nothing: it runs already"


@dataclass(frozen=True)
class Way:
    """A change with another effect than its field has: from any of ``old`` to any of ``new``.

    Both are values in lower case with a space between them; "-" is no value, "*" any. All conditions must
    hold.
    """

    old: str
    new: str
    effect: Effect = Effect.IN_PLACE
    conditions: tuple[Circumstance, ...] = ()

    def covers(self, old: str, new: str) -> bool:
        """Return whether the values are among those of the way; "" is no value."""
        return _among(old, self.old) and _among(new, self.new)


def _among(value: str, values: str) -> bool:
    return values == "*" or (value or "-") in values.split()


@dataclass(frozen=True)
class FieldEffect:
    """A field, what changing it does, and the changes with another effect; the first that applies counts.

    From the Kubernetes version ``reimages_from`` on, a change that Azure makes reimages nodes; () for no
    version.
    """

    pattern: str
    effect: Effect
    source: str
    ways: tuple[Way, ...] = ()
    reimages_from: tuple[int, ...] = ()


def _on(
    effect: Effect, patterns: str, source: str, *ways: Way, reimages_from: tuple[int, ...] = ()
) -> Iterator[FieldEffect]:
    return (FieldEffect(pattern, effect, source, ways, reimages_from) for pattern in patterns.split())


_recreated = partial(_on, Effect.RECREATION)
_reimaged = partial(_on, Effect.REIMAGED)
_replaced = partial(_on, Effect.REPLACEMENT)
_in_place = partial(_on, Effect.IN_PLACE)
_for_later_nodes = partial(_on, Effect.LATER_NODES)
_REIMAGED, _INTERRUPTED, _EGRESS = Effect.REIMAGED, Effect.INTERRUPTED, Effect.EGRESS
_LINUX_IMAGES = "ubuntu ubuntu2204 ubuntu2404 azurelinux azurelinux3 azurecontainerlinux"
_RELEASE_OF_AUGUST = "github.com/Azure/AKS/releases, 2026-08-07"
_VERSION_OF_AUGUST = (1, 37)
_OWN = (only.IN_OWN_SUBNET, only.WITHOUT_AUTO_PROVISIONING)
_MANAGED = (only.IN_MANAGED_NETWORK, only.WITHOUT_AUTO_PROVISIONING)
_REST = "learn.microsoft.com/rest/api/aks/managed-clusters/create-or-update"

_NETWORK = (
    *_recreated(
        "networkProfile.networkPlugin",
        "update-azure-cni",
        Way("kubenet", "azure", _REIMAGED, (only.WITH_OVERLAY,)),
    ),
    *_recreated(
        "networkProfile.networkPluginMode",
        "update-azure-cni",
        Way("-", "overlay", _REIMAGED, (only.WITH_POD_RANGE, only.WITHOUT_POLICY_ENGINE)),
    ),
    *_recreated(
        "networkProfile.networkDataplane",
        "update-azure-cni",
        Way("- azure", "cilium", _REIMAGED, (only.NOT_WITH_KUBENET, only.AS_PROVISIONING_IS_OFF)),
    ),
    *_recreated(
        "networkProfile.networkPolicy",
        "use-network-policies",
        Way("- none", "azure calico cilium", _REIMAGED),
        Way("azure calico", "none cilium", _REIMAGED),
        Way("azure calico", "azure calico", _REIMAGED, (only.AFTER_NO_POLICY,)),
    ),
    *_recreated(
        "networkProfile.podCidr",
        "azure-cni-overlay-pod-expand, update-azure-cni",
        Way("-", "*", _REIMAGED, (only.AS_OVERLAY_BEGINS,)),
        Way("*", "*", conditions=(only.LARGER_RANGE,)),
    ),
    *_recreated(
        "networkProfile.podCidrs networkProfile.serviceCidrs",
        "azure-cni-overlay, github.com/Azure/azure-cli/pull/30360",
        Way("*", "*", conditions=(only.AS_DUAL_STACK_BEGINS,)),
    ),
    *_recreated(
        "networkProfile.ipFamilies",
        "azure-cni-overlay, github.com/Azure/azure-cli/pull/30360",
        Way("- ipv4", "ipv4,ipv6"),
    ),
    *_recreated(
        "networkProfile.outboundType",
        f"egress-outboundtype, node-auto-provisioning, {_RELEASE_OF_AUGUST}",
        Way("- loadbalancer none", "managednatgateway", _EGRESS, _MANAGED),
        Way("managednatgateway none", "loadbalancer", _EGRESS, _MANAGED),
        Way("- loadbalancer managednatgateway", "none", _EGRESS, _MANAGED),
        Way("- loadbalancer userdefinedrouting none", "userassignednatgateway", _EGRESS, _OWN),
        Way("- loadbalancer userassignednatgateway none", "userdefinedrouting", _EGRESS, _OWN),
        Way("userassignednatgateway userdefinedrouting none", "loadbalancer", _EGRESS, _OWN),
        Way("- loadbalancer userassignednatgateway userdefinedrouting", "none", _EGRESS, _OWN),
        reimages_from=_VERSION_OF_AUGUST,
    ),
    *_recreated(
        "networkProfile.loadBalancerSku", "upgrade-basic-load-balancer-on-aks", Way("basic", "standard")
    ),
    *_recreated(
        "networkProfile.loadBalancerProfile.backendPoolType",
        "load-balancer-standard, configure-load-balancer-standard",
        Way("- nodeipconfiguration", "nodeip", _INTERRUPTED),
        Way("-", "nodeipconfiguration"),
    ),
    *_on(
        _EGRESS,
        """
        networkProfile.loadBalancerProfile.managedOutboundIPs
        networkProfile.loadBalancerProfile.outboundIPs
        networkProfile.loadBalancerProfile.outboundIPPrefixes
        """,
        "configure-load-balancer-standard, egress-outboundtype",
        Way("*", "*", conditions=(only.ADDRESSES_STAY,)),
    ),
    *_recreated("networkProfile.natGatewayProfile.sku", "nat-gateway", Way("- standard", "standardv2")),
    *_recreated(
        "networkProfile.natGatewayProfile.managedOutboundIPProfile",
        "nat-gateway",
        Way("*", "*", conditions=(only.MANAGED_ADDRESSES_FROM_THE_START, only.ADDRESSES_STAY)),
        Way("*", "*", _EGRESS, (only.MANAGED_ADDRESSES_FROM_THE_START,)),
    ),
    *_recreated(
        "networkProfile.natGatewayProfile.outboundIPs networkProfile.natGatewayProfile.outboundIPPrefixes",
        "nat-gateway",
        Way("*", "*", conditions=(only.OWN_ADDRESSES_FROM_THE_START, only.ADDRESSES_STAY)),
        Way("*", "*", _EGRESS, (only.OWN_ADDRESSES_FROM_THE_START,)),
    ),
    *_for_later_nodes(
        "networkProfile.podLinkLocalAccess",
        f"imds-restriction, {_RELEASE_OF_AUGUST}",
        reimages_from=_VERSION_OF_AUGUST,
    ),
    *_in_place(
        "networkProfile.advancedNetworking.performance.accelerationMode",
        "container-network-performance-ebpf-host-routing",
        Way("- none", "bpfveth", _REIMAGED),
    ),
    *_in_place(
        "networkProfile.advancedNetworking.security.transitEncryption.type",
        "how-to-apply-wireguard",
        Way("- none", "wireguard", _INTERRUPTED),
    ),
    *_recreated(
        "networkProfile.serviceCidr networkProfile.dnsServiceIP networkProfile.networkMode", f"{_REST}, faq"
    ),
)

_API_SERVER = (
    *_recreated(
        "apiServerAccessProfile.enableVnetIntegration",
        "api-server-vnet-integration",
        Way("- false", "true", _REIMAGED),
    ),
    *_recreated("apiServerAccessProfile.subnetId", "api-server-vnet-integration", Way("-", "*")),
    *_recreated(
        "apiServerAccessProfile.enablePrivateCluster",
        "api-server-vnet-integration",
        Way("- false", "true", conditions=(only.WITH_VNET_INTEGRATION,)),
        Way("true", "false", conditions=(only.WITH_VNET_INTEGRATION,)),
    ),
    *_recreated("apiServerAccessProfile.privateDNSZone", "private-clusters", Way("*", "none", _REIMAGED)),
)

_CLUSTER = (
    *_recreated(
        "sku.name",
        "automatic/aks-automatic-sku-migration",
        Way("automatic", "base", conditions=(only.WITH_SYSTEM_POOL,)),
    ),
    *_recreated("extendedLocation", "edge-zones"),
    *_recreated("hostedSystemProfile", "automatic/aks-automatic-managed-system-node-pools"),
    *_reimaged("kubernetesVersion", "upgrade-aks-cluster"),
    *_reimaged("minNodeImageVersion", "node-image-upgrade", Way("*", "-")),
    *_reimaged("httpProxyConfig", "http-proxy"),
    *_reimaged("identityProfile.kubeletidentity", "use-managed-identity"),
    *_for_later_nodes(
        "linuxProfile.ssh bootstrapProfile",
        f"network-isolated, github.com/Azure/AKS/releases, 2023-09-03, {_RELEASE_OF_AUGUST}",
        reimages_from=_VERSION_OF_AUGUST,
    ),
    *_in_place(
        "autoUpgradeProfile.nodeOSUpgradeChannel",
        "auto-upgrade-node-os-image, github.com/Azure/AKS/issues/4530",
        Way("*", "unmanaged", _REIMAGED),
        Way("unmanaged", "none", _REIMAGED),
    ),
    *_recreated(
        "nodeProvisioningProfile.mode",
        "migrate-from-autoscaler-to-node-auto-provisioning",
        Way("*", "- manual"),
        Way("*", "auto", conditions=(only.AFTER_AUTOSCALERS,)),
    ),
    *_in_place(
        "nodeProvisioningProfile.defaultNodePools", _REST, Way("- auto", "none", Effect.NODES_DELETED)
    ),
    *_recreated(
        "serviceMeshProfile.mode",
        "app-routing-gateway-api",
        Way("*", "- disabled"),
        Way("*", "istio", conditions=(only.AFTER_THE_GATEWAY,)),
    ),
    *_recreated(
        "serviceMeshProfile.istio.revisions",
        "istio-upgrade, learn.microsoft.com/troubleshoot/azure/azure-kubernetes/extensions"
        "/istio-add-on-minor-revision-upgrade",
        Way("*", "*", conditions=(only.TO_NEWER_REVISIONS,)),
    ),
    *_recreated(
        "ingressProfile.webAppRouting.gatewayAPIImplementations.appRoutingIstio.mode",
        "app-routing-gateway-api",
        Way("*", "- disabled"),
        Way("*", "enabled", conditions=(only.AFTER_THE_MESH,)),
    ),
    *_recreated("oidcIssuerProfile.enabled", "use-oidc-issuer", Way("- false", "true", _INTERRUPTED)),
    *_recreated("aadProfile.managed", "enable-authentication-microsoft-entra-id", Way("- false", "true")),
    *_recreated(
        """
        provider subscriptionId resourceGroup location dnsPrefix fqdnSubdomain enableRBAC
        nodeResourceGroup diskEncryptionSetID linuxProfile.adminUsername windowsProfile.adminUsername
        """,
        f"{_REST}, faq",
    ),
    *_on(
        Effect.SLEEPS,
        "sleep",
        "start-stop-cluster, start-stop-nodepools",
        Way("*", "-"),
        Way("*", "*", Effect.POOLS_SLEEP, (only.ASLEEP_IN_POOLS,)),
    ),
    *_recreated(
        "flux.install",
        "learn.microsoft.com/azure/azure-arc/kubernetes/conceptual-gitops-flux2: a cluster has one Flux, and"
        " who removes it removes what it applied",
    ),
)

_SECURITY = (
    *_reimaged("securityProfile.customCATrustCertificates", "custom-certificate-authority"),
    *_recreated(
        "securityProfile.azureKeyVaultKms.keyVaultNetworkAccess",
        "use-kms-etcd-encryption",
        Way("-", "public"),
        Way("*", "*", conditions=(only.FROM_ANOTHER_VAULT,)),
    ),
)

_POOLS = (
    *_on(Effect.ROLLED_BACK, "nodePools[].rollback", "roll-back-node-pool-version"),
    *_reimaged("nodePools[].orchestratorVersion", "manage-node-pools"),
    *_in_place("nodePools[].powerState", "start-stop-nodepools", Way("*", "stopped", Effect.NODES_STOPPED)),
    *_replaced(
        "nodePools[].availabilityZones",
        "manage-node-pools, configure-automatic-zone-placement",
        Way("*", "auto", _REIMAGED),
    ),
    *_reimaged("nodePools[].localDNSProfile", "localdns-custom"),
    *_replaced(
        "nodePools[].osSKU",
        "upgrade-os-version, upgrade-windows-os",
        Way(f"- {_LINUX_IMAGES}", _LINUX_IMAGES, _REIMAGED),
    ),
    *_replaced("nodePools[].enableFIPS", "enable-fips-nodes", Way("*", "*", _REIMAGED, (only.ON_LINUX,))),
    *_replaced(
        "nodePools[].gpuProfile.driver",
        "use-nvidia-gpu, github.com/Azure/azure-cli/pull/32531",
        Way("- install", "none", conditions=(only.WITH_SKIP_TAG,)),
    ),
    *_for_later_nodes(
        "nodePools[].securityProfile.sshAccess",
        f"manage-ssh-node-access, {_RELEASE_OF_AUGUST}",
        reimages_from=_VERSION_OF_AUGUST,
    ),
    *_in_place(
        "nodePools[].securityProfile.enableVTPM nodePools[].securityProfile.enableSecureBoot",
        "use-trusted-launch",
        Way("- false", "true", _REIMAGED, (only.ON_LINUX,)),
        Way("true", "false", _REIMAGED, (only.ON_LINUX,)),
    ),
    *_for_later_nodes("nodePools[].nodeInitializationTaints", "use-node-taints"),
    *_replaced(
        """
        nodePools[].vmSize nodePools[].osType nodePools[].type nodePools[].osDiskSizeGB nodePools[].osDiskType
        nodePools[].kubeletDiskType nodePools[].maxPods nodePools[].vnetSubnetID nodePools[].podSubnetID
        nodePools[].podIPAllocationMode
        nodePools[].scaleSetPriority nodePools[].scaleSetEvictionPolicy nodePools[].spotMaxPrice
        nodePools[].kubeletConfig nodePools[].linuxOSConfig nodePools[].enableEncryptionAtHost
        nodePools[].enableUltraSSD
        nodePools[].enableNodePublicIP nodePools[].nodePublicIPPrefixID
        nodePools[].proximityPlacementGroupID nodePools[].hostGroupID nodePools[].capacityReservationGroupID
        nodePools[].gpuInstanceProfile nodePools[].workloadRuntime nodePools[].messageOfTheDay
        nodePools[].creationData nodePools[].networkProfile.nodePublicIPTags
        nodePools[].windowsProfile nodePools[].gpuProfile nodePools[].gatewayProfile
        """,
        "manage-node-pools, resize-node-pool, learn.microsoft.com/rest/api/aks/agent-pools/create-or-update",
    ),
)

_OWNED = "learn.microsoft.com/rest/api/aks: read-only properties"
FIELD_EFFECTS: tuple[FieldEffect, ...] = (
    *(*_NETWORK, *_API_SERVER, *_CLUSTER, *_SECURITY, *_POOLS),
    *_on(Effect.AZURE, " ".join(OWNED_BY_AZURE["cluster"]), _OWNED),
    *_on(Effect.AZURE, " ".join(f"nodePools[].{name}" for name in OWNED_BY_AZURE["pool"]), _OWNED),
)
