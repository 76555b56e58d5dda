"""What changing each field of an existing cluster does: a table of data, with the source of each entry.

A pattern is the path in a cluster's ``spec``; ``[]`` stands for any node pool, ``*`` for any one key. A
pattern also covers the fields below its own. The first entry that matches counts; a field without one is
changed in place. A source without a site is a page below learn.microsoft.com/azure/aks.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from shared.azure.changes import conditions as only
from shared.azure.changes.conditions import Circumstance
from shared.frozen import dataclass
from shared.language.model.arm_types import OWNED_BY_AZURE


class Effect(StrEnum):
    """What a change does."""

    IN_PLACE = "in place"
    REIMAGED = "in place, nodes are reimaged"
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

    From the Kubernetes version ``reimages_from`` on, a change in place reimages nodes; () for no version.
    """

    pattern: str
    effect: Effect
    source: str
    ways: tuple[Way, ...] = ()
    reimages_from: tuple[int, ...] = ()


def _each(effect: Effect, source: str, patterns: str) -> Iterator[FieldEffect]:
    return (FieldEffect(pattern, effect, source) for pattern in patterns.split())


_LINUX_IMAGES = "ubuntu ubuntu2204 ubuntu2404 azurelinux azurelinux3 azurecontainerlinux"
_RELEASE_OF_AUGUST = "github.com/Azure/AKS/releases, 2026-08-07"
_VERSION_OF_AUGUST = (1, 37)
_OWN = (only.IN_OWN_SUBNET, only.WITHOUT_AUTO_PROVISIONING)
_MANAGED = (only.IN_MANAGED_NETWORK, only.WITHOUT_AUTO_PROVISIONING)

_NETWORK = (
    FieldEffect(
        "networkProfile.networkPlugin",
        Effect.RECREATION,
        "update-azure-cni",
        (Way("kubenet", "azure", Effect.REIMAGED, (only.WITH_OVERLAY,)),),
    ),
    FieldEffect(
        "networkProfile.networkPluginMode",
        Effect.RECREATION,
        "update-azure-cni",
        (Way("-", "overlay", Effect.REIMAGED, (only.WITH_POD_RANGE,)),),
    ),
    FieldEffect(
        "networkProfile.networkDataplane",
        Effect.RECREATION,
        "update-azure-cni",
        (Way("- azure", "cilium", Effect.REIMAGED, (only.NOT_WITH_KUBENET,)),),
    ),
    FieldEffect(
        "networkProfile.networkPolicy",
        Effect.RECREATION,
        "use-network-policies",
        (
            Way("- none", "azure calico cilium", Effect.REIMAGED),
            Way("azure calico", "none cilium", Effect.REIMAGED),
        ),
    ),
    FieldEffect(
        "networkProfile.podCidr",
        Effect.RECREATION,
        "azure-cni-overlay-pod-expand, update-azure-cni",
        (
            Way("-", "*", Effect.REIMAGED, (only.AS_OVERLAY_BEGINS,)),
            Way("*", "*", conditions=(only.LARGER_RANGE,)),
        ),
    ),
    *(
        FieldEffect(
            f"networkProfile.{field}",
            Effect.RECREATION,
            "azure-cni-overlay, github.com/Azure/azure-cli/pull/30360",
            (Way("*", "*", conditions=(only.AS_DUAL_STACK_BEGINS,)),),
        )
        for field in ("podCidrs", "serviceCidrs")
    ),
    FieldEffect(
        "networkProfile.ipFamilies",
        Effect.RECREATION,
        "azure-cni-overlay, github.com/Azure/azure-cli/pull/30360",
        (Way("- ipv4", "ipv4,ipv6"),),
    ),
    FieldEffect(
        "networkProfile.outboundType",
        Effect.RECREATION,
        f"egress-outboundtype, node-auto-provisioning, {_RELEASE_OF_AUGUST}",
        (
            Way("- loadbalancer none", "managednatgateway", conditions=_MANAGED),
            Way("managednatgateway none", "loadbalancer", conditions=_MANAGED),
            Way("- loadbalancer managednatgateway", "none", conditions=_MANAGED),
            Way("- loadbalancer userdefinedrouting none", "userassignednatgateway", conditions=_OWN),
            Way("- loadbalancer userassignednatgateway none", "userdefinedrouting", conditions=_OWN),
            Way("userassignednatgateway userdefinedrouting none", "loadbalancer", conditions=_OWN),
            Way("- loadbalancer userassignednatgateway userdefinedrouting", "none", conditions=_OWN),
        ),
        _VERSION_OF_AUGUST,
    ),
    FieldEffect(
        "networkProfile.loadBalancerSku",
        Effect.RECREATION,
        "upgrade-basic-load-balancer-on-aks",
        (Way("basic", "standard"),),
    ),
    FieldEffect(
        "networkProfile.loadBalancerProfile.backendPoolType",
        Effect.RECREATION,
        "load-balancer-standard",
        (Way("- nodeipconfiguration", "nodeip"), Way("-", "nodeipconfiguration")),
    ),
    FieldEffect(
        "networkProfile.natGatewayProfile.sku",
        Effect.RECREATION,
        "nat-gateway",
        (Way("- standard", "standardv2"),),
    ),
    FieldEffect(
        "networkProfile.podLinkLocalAccess",
        Effect.IN_PLACE,
        _RELEASE_OF_AUGUST,
        reimages_from=_VERSION_OF_AUGUST,
    ),
    *_each(
        Effect.RECREATION,
        "learn.microsoft.com/rest/api/aks/managed-clusters/create-or-update, faq",
        "networkProfile.serviceCidr networkProfile.dnsServiceIP networkProfile.networkMode",
    ),
)

_API_SERVER = (
    FieldEffect(
        "apiServerAccessProfile.enableVnetIntegration",
        Effect.RECREATION,
        "api-server-vnet-integration",
        (Way("- false", "true", Effect.REIMAGED),),
    ),
    FieldEffect(
        "apiServerAccessProfile.subnetId",
        Effect.RECREATION,
        "api-server-vnet-integration",
        (Way("-", "*"),),
    ),
    FieldEffect(
        "apiServerAccessProfile.enablePrivateCluster",
        Effect.RECREATION,
        "api-server-vnet-integration",
        (
            Way("- false", "true", conditions=(only.WITH_VNET_INTEGRATION,)),
            Way("true", "false", conditions=(only.WITH_VNET_INTEGRATION,)),
        ),
    ),
    FieldEffect(
        "apiServerAccessProfile.privateDNSZone",
        Effect.RECREATION,
        "private-clusters",
        (Way("*", "none", Effect.REIMAGED),),
    ),
)

_CLUSTER = (
    FieldEffect(
        "sku.name",
        Effect.RECREATION,
        "automatic/aks-automatic-sku-migration",
        (Way("automatic", "base", conditions=(only.WITH_SYSTEM_POOL,)),),
    ),
    FieldEffect("extendedLocation", Effect.RECREATION, "edge-zones"),
    FieldEffect(
        "hostedSystemProfile", Effect.RECREATION, "automatic/aks-automatic-managed-system-node-pools"
    ),
    FieldEffect("kubernetesVersion", Effect.REIMAGED, "upgrade-aks-cluster"),
    FieldEffect("minNodeImageVersion", Effect.REIMAGED, "node-image-upgrade", (Way("*", "-"),)),
    FieldEffect("httpProxyConfig", Effect.REIMAGED, "http-proxy"),
    FieldEffect("identityProfile.kubeletidentity", Effect.REIMAGED, "use-managed-identity"),
    FieldEffect("linuxProfile.ssh", Effect.IN_PLACE, _RELEASE_OF_AUGUST, reimages_from=_VERSION_OF_AUGUST),
    FieldEffect("bootstrapProfile", Effect.IN_PLACE, _RELEASE_OF_AUGUST, reimages_from=_VERSION_OF_AUGUST),
    FieldEffect(
        "nodeProvisioningProfile.defaultNodePools",
        Effect.IN_PLACE,
        "learn.microsoft.com/rest/api/aks/managed-clusters/create-or-update",
        (Way("- auto", "none", Effect.NODES_DELETED),),
    ),
    FieldEffect("oidcIssuerProfile.enabled", Effect.RECREATION, "use-oidc-issuer", (Way("- false", "true"),)),
    FieldEffect(
        "aadProfile.managed",
        Effect.RECREATION,
        "enable-authentication-microsoft-entra-id",
        (Way("- false", "true"),),
    ),
    *_each(
        Effect.RECREATION,
        "learn.microsoft.com/rest/api/aks/managed-clusters/create-or-update, faq",
        """
        provider subscriptionId resourceGroup location dnsPrefix fqdnSubdomain enableRBAC
        nodeResourceGroup diskEncryptionSetID linuxProfile.adminUsername windowsProfile.adminUsername
        """,
    ),
)

_SLEEP = (
    FieldEffect(
        "sleep",
        Effect.SLEEPS,
        "start-stop-cluster, start-stop-nodepools",
        (Way("*", "-"), Way("*", "*", Effect.POOLS_SLEEP, (only.ASLEEP_IN_POOLS,))),
    ),
)

_FLUX = (
    FieldEffect(
        "flux.install",
        Effect.RECREATION,
        "learn.microsoft.com/azure/azure-arc/kubernetes/conceptual-gitops-flux2: a cluster has one Flux, and"
        " who removes it removes what it applied",
    ),
)

_POOLS = (
    FieldEffect("nodePools[].rollback", Effect.ROLLED_BACK, "roll-back-node-pool-version"),
    FieldEffect("nodePools[].orchestratorVersion", Effect.REIMAGED, "manage-node-pools"),
    FieldEffect(
        "nodePools[].powerState",
        Effect.IN_PLACE,
        "start-stop-nodepools",
        (Way("*", "stopped", Effect.NODES_STOPPED),),
    ),
    FieldEffect(
        "nodePools[].availabilityZones",
        Effect.REPLACEMENT,
        "manage-node-pools, configure-automatic-zone-placement",
        (Way("*", "auto", Effect.REIMAGED),),
    ),
    FieldEffect("nodePools[].localDNSProfile", Effect.REIMAGED, "localdns-custom"),
    FieldEffect(
        "nodePools[].osSKU",
        Effect.REPLACEMENT,
        "upgrade-os-version, upgrade-windows-os",
        (Way(f"- {_LINUX_IMAGES}", _LINUX_IMAGES, Effect.REIMAGED),),
    ),
    FieldEffect(
        "nodePools[].enableFIPS",
        Effect.REPLACEMENT,
        "enable-fips-nodes",
        (Way("*", "*", Effect.REIMAGED, (only.ON_LINUX,)),),
    ),
    FieldEffect(
        "nodePools[].gpuProfile.driver",
        Effect.REPLACEMENT,
        "use-nvidia-gpu, github.com/Azure/azure-cli/pull/32531",
        (Way("- install", "none", conditions=(only.WITH_SKIP_TAG,)),),
    ),
    FieldEffect(
        "nodePools[].securityProfile.sshAccess",
        Effect.IN_PLACE,
        f"manage-ssh-node-access, {_RELEASE_OF_AUGUST}",
        reimages_from=_VERSION_OF_AUGUST,
    ),
    *_each(
        Effect.REPLACEMENT,
        "manage-node-pools, resize-node-pool, learn.microsoft.com/rest/api/aks/agent-pools/create-or-update",
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
    ),
)

_OWNED = "learn.microsoft.com/rest/api/aks: read-only properties"
FIELD_EFFECTS: tuple[FieldEffect, ...] = (
    *(*_NETWORK, *_API_SERVER, *_CLUSTER, *_SLEEP, *_FLUX, *_POOLS),
    *(FieldEffect(name, Effect.AZURE, _OWNED) for name in OWNED_BY_AZURE["cluster"]),
    *(FieldEffect(f"nodePools[].{name}", Effect.AZURE, _OWNED) for name in OWNED_BY_AZURE["pool"]),
)
