"""The codes with which AKS refuses a manifest that breaks a rule of its own: the author corrects it."""

from __future__ import annotations

from shared.cluster.failures.azure.aks import CODES
from shared.cluster.failures.entry import Actor, Entry, sourced
from shared.cluster.failures.errors import InvalidManifest


def _rule(key: str, meaning: str, codes: str) -> Entry:
    remedy = "Correct the value in the message."
    return Entry(f"rules/{key}", InvalidManifest, tuple(codes.split()), meaning, remedy, Actor.AUTHOR)


_EXPLAINED = (
    _rule(
        "Ranges",
        "A range, or an address, of the manifest does not fit the network.",
        "ServiceCidrOverlapping SubnetCidrOverlapping SubnetCidrOverlapExistingSubnetsCidr"
        " SubnetCidrOverlapServiceCidr PodCidrOverlapServiceCidr InsufficientPodCidr IPv6NotSupported"
        " CidrStringParseError VnetCIDRInvalid DnsServiceIpParseError DnsServiceIpConflicting"
        " DnsBroadcastAddressConflicting InvalidIPRangeCIDR UnexpectedIPVersionCIDR SingleIPAddressCIDR"
        " MultipleAddressPrefixesSubnetNotSupported IPParseError"
        " IPPrefixParseError",
    ),
    _rule(
        "Outbound",
        "The way out of the cluster is not one that AKS allows: outbound type, load balancer, NAT gateway.",
        "UnsupportedOutboundType UpdatingOutboundTypeNotAllowed InvalidLoadBalancerSku"
        " InvalidUserDefinedRoutingWithLoadBalancerProfile InvalidLoadBalancerProfile"
        " UnexpectedLoadBalancerSkuForCurrentOutboundConfiguration InvalidLoadBalancerProfileIPProvider"
        " InvalidLoadBalancerProfileIPPrefixProvider InvalidLoadBalancerProfileIdleTimeoutInMinutes"
        " LoadBalancerProfileAllocatedOutboundPortsCannotBeNegative"
        " LoadBalancerProfileAllocatedOutboundPortsMustBeMultipleOfEight"
        " InvalidLoadBalancerProfileManagedOutboundIPCount InvalidLoadBalancerProfileOutboundIPPrefixes"
        " InvalidLoadBalancerProfileOutboundIPs LoadBalancerProfileOutboundIPPrefixNotExist"
        " LoadBalancerProfileOutboundIPNotExist LoadBalancerProfileOutboundIPPrefixNotInTheSameSubscription"
        " LoadBalancerProfileOutboundIPPrefixNotInTheSameRegion"
        " LoadBalancerProfileOutboundIPNotInTheSameRegion LoadBalancerProfileOutboundIPNotStandardSKU"
        " LoadBalancerProfileOutboundIPHasManagedOutboundIPTag"
        " LoadBalancerProfileOutboundIPAttachedToAnotherIPConfiguration"
        " InvalidNATGatewayProfileManagedOutboundIPCount InvalidNATGatewayProfileIdleTimeoutInMinutes"
        " ManagedNATGatewayWithCustomVNetNotAllowed UserAssignedNATGatewayWithManagedVNetNotAllowed"
        " InvalidNATGatewayResourceID NATGatewayNotFound UDRWithNodePublicIPNotAllowed",
    ),
    _rule(
        "Subnets",
        "A subnet, or a network, of the manifest does not exist or does not fit the cluster.",
        "SubnetNotFound InvalidSubnetSourceID InvalidVNetSourceID EmptySubnetError"
        " AgentPoolsWithEmptySubnetError TooManyCustomRouteTables CustomRouteTableParseError"
        " CustomRouteTableUnsupportedK8SVersion CustomRouteTableWithMSINotSupported"
        " CustomRouteTableCannotCrossSubscription"
        " CustomRouteTableInvalidUpdateAttempt",
    ),
)
"""The source has a sentence for each code."""
_NAMED = (
    _rule(
        "Request",
        "AKS cannot take the request as it is.",
        "ValidationError UnmarshalError TemplateValidationError InvalidParameterConflictingProperties"
        " ConflictingUserInput UpdateNotAllowed SDKValidationError EmptyPayload",
    ),
    _rule(
        "NetworkPlugin",
        "The network plugin, its mode and the network policy do not go together.",
        "NetworkPolicyNotSupported NetworkPolicyAzureNotSupportedForKubenet NetworkPolicyNotSupportedForNone"
        " NetworkModeNotSupported NetworkModeInvalid AzureCNISubnetNotDefined UnknownNetworkPlugin"
        " AzureCNIOnlyForWindows UnsupportedDualStackNetworkPlugin UnsupportedDualStackNetworkPolicy"
        " DualStackNotAllowedInLocation InvalidNetworkingConfig VnetSubnetMissingIPv6"
        " UnsupportedDualStackKubernetesVersion SingleStackVnetSubnetWithDualStackCluster"
        " InvalidServiceCidrIPv6MaskSize",
    ),
    _rule(
        "PrivateCluster",
        "The private cluster, its DNS zone or its names are not ones that AKS allows.",
        "PrivateClusterNotSupportedWithBasicLoadBalancer InvalidPrivateDNSZoneMode"
        " InvalidPrivateDNSZoneResourceID PrivateDNSZoneResourceNotFoundError"
        " SystemAssignedIdentityNotSupportedForCustomPrivateDNSZone NonePrivateDNSZonePublicFQDNDisabledError"
        " FQDNSubdomainRecordAlreadyExistsError FQDNNotAvailable FQDNInvalid"
        " PrivateClusterNotSupportedWithPaidSKU PrivateClusterV2NotAllowedInLocation"
        " APIServerWhitelistNotAllowedWithoutSingleIPPerCCP",
    ),
    _rule(
        "Identity",
        "An identity of the manifest does not exist, or the cluster cannot have it.",
        "InvalidManagedIdentityResourceID CustomKubeletIdentityOnlySupportedOnUserAssignedMSICluster"
        " CustomKubeletIdentityPropertyError GetUserAssignedIdentityResourceError InvalidAdminGroupObjectID"
        " OIDCIssuerCannotBeDisabled RBACNotEnabledForAAD CustomRouteTableWithUnsupportedMSIType",
    ),
    _rule(
        "Pools",
        "A node pool is not one that AKS allows.",
        "SystemPoolHasRestrictedTaint MustDefineAtLeastOneSystemPool MustNotBeTheSystemPool"
        " SystemPoolMustBeRegular SystemPoolMustBeLinux AgentPoolMaxCountExceeded MaxAgentPoolCountReached"
        " WindowsAgentPoolNameTooLong WindowsProfileMissing WindowsProfileLicenseTypeInvalid"
        " WindowsProfileUsernameInvalid WindowsProfilePasswordInvalid AutoScalingNotEnabled"
        " MixedTypeNotSupported InsufficientMaxPods MaxPodsLimitExceeded"
        " InsufficientAgentPoolMaxPodsPerAgentPool NodeLabelKeyNotAllowed InvalidOSSKU"
        " InvalidAgentPoolOrchestratorVersion InvalidClusterVersion InvalidOSDiskTypeSettingError"
        " CannotChangeOSDiskType CannotChangeKubeletDisk EphemeralOSAndBYOKNotSupported"
        " InvalidCustomKubeletConfig InvalidCustomLinuxOSConfig"
        " CustomKubeletConfigOrCustomLinuxOSConfigCanNotBeChanged InvalidWorkloadRuntimeSettingError"
        " UnsupportedGPUInstanceProfile VMSizeDoesNotSupportMIG NodePublicIPCanNotBeFalseWithIPPrefixSet"
        " SpotPoolUpgradeNotAllowedDuringClusterUpgradeAll",
    ),
    _rule(
        "Placement",
        "The placement of a node pool is not one that AKS allows: zones, placement group, reservation.",
        "InvalidAvailabilityZoneFormat InvalidPPGID InvalidPPGSubscription InvalidPPGRegion"
        " PPGNotSupportMultipleZones PPGNotFound CRGConflictWithUltraSSD CRGConflictWithPPG"
        " CRGConflictWithSpotVM CRGConflictWithDedicatedHost CRGConflictWithSPG",
    ),
    _rule(
        "AddOns",
        "An add-on, or the proxy, of the manifest is not one that AKS allows.",
        "AddonInvalid LogAnalyticsWorkspaceNotSet HTTPProxyConfigCADecodeError HTTPProxyConfigInputError"
        " HTTPProxyWrongUrlError IngressAppGwAddonConfigInvalid AddonAlreadyEnabledAsExtensionAddon"
        " ExtensionAlreadyEnabledInAKSAddons",
    ),
    _rule(
        "Maintenance",
        "A maintenance window is not one that AKS allows.",
        "InvalidHourSlot NeedAtLeastOneHourPerWeekForUpdate TooManyTimeInWeek TooManyNotAllowedTime"
        " TooManyHourSlots InvalidStartEndTime",
    ),
)

ENTRIES: tuple[Entry, ...] = (*sourced(CODES, *_EXPLAINED), *sourced(CODES, *_NAMED, read=False))
