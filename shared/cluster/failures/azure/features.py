"""The codes with which AKS refuses a feature of a manifest: a page, or the API, has the rule of each.

The pages show no answer; each code is named for a rule that they state.
"""

from __future__ import annotations

from shared.cluster.failures.entry import Actor, Entry, sourced
from shared.cluster.failures.errors import Immutable, InvalidManifest, ReconcileError

_DOCS = "MicrosoftDocs/azure-aks-docs articles/aks/"
_LEARN = "https://learn.microsoft.com/azure/aks/"
_VALUE = "Correct the value in the message."


def _page(
    page: str,
    meaning: str,
    codes: str,
    remedy: str = _VALUE,
    kind: type[ReconcileError] = InvalidManifest,
) -> tuple[Entry, ...]:
    """Return the entry of a page of the documentation of AKS, whose key is the name of its first code."""
    names = tuple(codes.split())
    entry = Entry(f"feature/{names[0]}", kind, names, meaning, remedy, Actor.AUTHOR)
    return sourced(f"{_DOCS}{page}.md", entry, link=f"{_LEARN}{page}")


ENTRIES: tuple[Entry, ...] = (
    *_page(
        "use-system-pools",
        "A System pool is Linux, is no Spot pool, has no taint but `CriticalAddonsOnly` and a size that is"
        " large enough; a cluster keeps one of them.",
        "SystemPoolHasRestrictedTaint MustNotBeTheSystemPool SystemPoolMustBeRegular SystemPoolMustBeLinux"
        " SystemPoolSkuTooLow",
        "Give the pool in the message the mode User, or what a System pool needs.",
    ),
    *_page(
        "create-node-pools",
        "A Windows pool needs a short name, a Windows profile of the cluster and a network that has Windows.",
        "WindowsAgentPoolNameTooLong WindowsProfileMissing WindowsProfileLicenseTypeInvalid"
        " WindowsProfileUsernameInvalid WindowsProfilePasswordInvalid AzureCNIOnlyForWindows"
        " VMSizeNotSupportedForWindowsAgentPool",
        "Correct the pool or `windowsProfile` as the message says; a cluster that was created without the"
        " profile gets no Windows pool.",
    ),
    *_page(
        "configure-dual-stack",
        "IPv4 and IPv6 together need a network plugin, a subnet and ranges that have both.",
        "UnsupportedDualStackNetworkPlugin UnsupportedDualStackNetworkPolicy DualStackNotAllowedInLocation"
        " InvalidNetworkingConfig VnetSubnetMissingIPv6 UnsupportedDualStackKubernetesVersion"
        " SingleStackVnetSubnetWithDualStackCluster InvalidServiceCidrIPv6MaskSize",
        "Commit ranges and a subnet of both families, or `ipFamilies: [IPv4]`.",
    ),
    *_page(
        "private-clusters",
        "The zone, the name or the region of a private cluster is not one that AKS takes: a zone of its own"
        " needs an identity of its own, and without a zone the cluster needs its public name.",
        "InvalidPrivateDNSZoneMode InvalidPrivateDNSZoneResourceID"
        " SystemAssignedIdentityNotSupportedForCustomPrivateDNSZone FQDNInvalid FQDNNotAvailable"
        " NonePrivateDNSZonePublicFQDNDisabledError FQDNSubdomainRecordAlreadyExistsError"
        " PrivateClusterNotAllowedInLocation PrivateClusterV2NotAllowedInLocation",
        "Correct `apiServerAccessProfile` as the message says.",
    ),
    *_page(
        "pre-created-kubelet-managed-identity",
        "An identity in the manifest does not exist or has no valid id; one of the kubelet needs a cluster"
        " with an identity of its own.",
        "CustomKubeletIdentityOnlySupportedOnUserAssignedMSICluster CustomKubeletIdentityPropertyError"
        " InvalidManagedIdentityResourceID GetUserAssignedIdentityResourceError",
        "Correct `identity` and `identityProfile` as the message says.",
    ),
    *_page(
        "configure-kubenet",
        "A route table of your own needs an identity of the cluster that is assigned by the user.",
        "CustomRouteTableWithUnsupportedMSIType",
        "Commit an `identity` of type UserAssigned that may write the route table.",
    ),
    *_page(
        "entra-id-control-plane-authentication",
        "Sign-in with Entra needs Kubernetes RBAC and object ids of groups.",
        "InvalidAdminGroupObjectID RBACNotEnabledForAAD",
        "Correct `aadProfile` and `enableRBAC` as the message says.",
    ),
    *_page(
        "use-oidc-issuer",
        "The OIDC issuer of a cluster cannot be switched off again.",
        "OIDCIssuerCannotBeDisabled",
        "Restore `enabled: true` of `oidcIssuerProfile`.",
        Immutable,
    ),
    *_page(
        "quotas-skus-regions",
        "The pool, or the cluster, would have more nodes or pools than AKS allows, or a size that it"
        " refuses.",
        "AgentPoolMaxCountExceeded MaxAgentPoolCountReached VMSizeNotSupported",
        "Commit fewer nodes or pools, or another size.",
    ),
    *_page(
        "cluster-autoscaler",
        "The bounds of the autoscaler are set on a pool whose autoscaler is off.",
        "AutoScalingNotEnabled",
        "Commit `enableAutoScaling: true`, or no `minCount` and `maxCount`.",
    ),
    *_page(
        "concepts-network-ip-address-planning",
        "Pods of a node are 10 to 250, and enough of them for the pods of the system.",
        "InsufficientMaxPods MaxPodsLimitExceeded InsufficientAgentPoolMaxPodsPerAgentPool",
        "Commit another `maxPods`.",
    ),
    *_page(
        "use-labels",
        "A label of a node has a prefix that AKS, or Kubernetes, keeps for itself.",
        "NodeLabelKeyNotAllowed",
        "Commit another key for the label in the message.",
    ),
    *_page(
        "supported-kubernetes-versions",
        "The version of the cluster, or of a pool, is none that AKS has, or the two are too far apart.",
        "InvalidAgentPoolOrchestratorVersion InvalidClusterVersion",
        "Commit a version that `az aks get-versions` shows for the region.",
    ),
    *_page(
        "concepts-storage",
        "The disk of a node is not one that the VM size has room for, or that goes with the other settings.",
        "InvalidOSDiskTypeSettingError EphemeralOSAndBYOKNotSupported VMTemporaryDiskTooSmall"
        " VMCacheSizeTooSmall VMSizeDoesNotSupportEphemeralOS",
        "Commit a larger size, a smaller `osDiskSizeGB`, or `osDiskType: Managed`.",
    ),
    *_page(
        "custom-node-configuration",
        "A setting of the kubelet, or of Linux, is not one that AKS takes.",
        "InvalidCustomKubeletConfig InvalidCustomLinuxOSConfig",
    ),
    *sourced(
        "MicrosoftDocs/azure-compute-docs articles/virtual-machines/capacity-reservation-overview.md",
        Entry(
            "feature/CapacityReservation",
            InvalidManifest,
            (
                *("CRGConflictWithUltraSSD", "CRGConflictWithPPG", "CRGConflictWithSpotVM"),
                *("CRGConflictWithDedicatedHost", "CRGConflictWithSPG"),
            ),
            "A reservation of capacity does not go with Spot, ultra disks, a dedicated host or a placement"
            " group.",
            "Commit the pool without the one or the other.",
            Actor.AUTHOR,
        ),
        link="https://learn.microsoft.com/azure/virtual-machines/capacity-reservation-overview",
    ),
    *sourced(
        "the package azure-mgmt-containerservice: ManagedClusterAgentPoolProfile and its enumerations",
        Entry(
            "feature/Fixed",
            Immutable,
            (
                *("CannotChangeOSDiskType", "CannotChangeKubeletDisk"),
                "CustomKubeletConfigOrCustomLinuxOSConfigCanNotBeChanged",
            ),
            "The manifest changes a field of a pool that cannot be changed.",
            "Restore the old value, or commit another pool and remove this one.",
            Actor.AUTHOR,
        ),
        Entry(
            "feature/Pool",
            InvalidManifest,
            ("InvalidOSSKU", "InvalidWorkloadRuntimeSettingError", "UnknownNetworkPlugin"),
            "The value is none of those that the API of AKS has.",
            _VALUE,
            Actor.AUTHOR,
        ),
    ),
    *_page(
        "gpu-multi-instance",
        "The VM size has no GPU that can be divided so.",
        "UnsupportedGPUInstanceProfile VMSizeDoesNotSupportMIG",
        "Commit another `gpuInstanceProfile`, or another size.",
    ),
    *_page(
        "use-node-public-ips",
        "A prefix of public addresses is given to nodes that get none.",
        "NodePublicIPCanNotBeFalseWithIPPrefixSet",
        "Commit `enableNodePublicIP: true`, or no prefix.",
    ),
    *_page(
        "spot-node-pool",
        "A Spot pool is not upgraded in one request with the control plane.",
        "SpotPoolUpgradeNotAllowedDuringClusterUpgradeAll",
        "Upgrade the control plane and the Spot pool with two commits.",
    ),
    *_page(
        "reduce-latency-ppg",
        "The proximity placement group is elsewhere, or does not go with more than one zone.",
        "InvalidPPGID InvalidPPGSubscription InvalidPPGRegion PPGNotSupportMultipleZones",
        "Commit the id of a group in the region and subscription of the cluster, and one zone.",
    ),
    *_page(
        "http-proxy",
        "The proxy has an address or a certificate that AKS does not take: `http://`, and PEM in base64.",
        "HTTPProxyConfigCADecodeError HTTPProxyConfigInputError HTTPProxyWrongUrlError",
        "Correct `httpProxyConfig` as the message says.",
    ),
    *_page(
        "planned-maintenance",
        "The times of a maintenance window leave too little time, overlap or are not hours of a day.",
        "InvalidHourSlot TooManyTimeInWeek NeedAtLeastOneHourPerWeekForUpdate TooManyNotAllowedTime"
        " TooManyHourSlots InvalidStartEndTime",
        "Correct the window in the message.",
    ),
    *_page(
        "generation-2-vms",
        "The image of the pool does not run on machines of generation 2, or the size has no such machines.",
        "UnsupportedGen2VMSize",
        "Commit another size or another `osSKU`.",
    ),
    *_page(
        "enable-host-encryption",
        "The VM size has no encryption at the host.",
        "VMSizeDoesNotSupportEncryptionAtHost",
        "Commit another size, or `enableEncryptionAtHost: false`.",
    ),
    *sourced(
        "Azure/karpenter-provider-azure issue 80, an answer of AKS; others like it in public repositories",
        Entry(
            "feature/Properties",
            InvalidManifest,
            ("OperationNotAllowed",),
            "A setting of the manifest does not go with another one.",
            "Change one of the settings in the message.",
            Actor.AUTHOR,
            says=(".properties.",),
        ),
        link="https://learn.microsoft.com/azure/aks/node-auto-provisioning",
    ),
)
