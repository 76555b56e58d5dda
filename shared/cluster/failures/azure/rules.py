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
        " InvalidLoadBalancerProfileOutboundIPs"
        " LoadBalancerProfileOutboundIPPrefixNotInTheSameSubscription"
        " LoadBalancerProfileOutboundIPPrefixNotInTheSameRegion"
        " LoadBalancerProfileOutboundIPNotInTheSameRegion LoadBalancerProfileOutboundIPNotStandardSKU"
        " LoadBalancerProfileOutboundIPHasManagedOutboundIPTag"
        " LoadBalancerProfileOutboundIPAttachedToAnotherIPConfiguration"
        " InvalidNATGatewayProfileManagedOutboundIPCount InvalidNATGatewayProfileIdleTimeoutInMinutes"
        " ManagedNATGatewayWithCustomVNetNotAllowed UserAssignedNATGatewayWithManagedVNetNotAllowed"
        " InvalidNATGatewayResourceID UDRWithNodePublicIPNotAllowed",
    ),
    _rule(
        "Subnets",
        "A subnet, or a network, of the manifest does not fit the cluster.",
        "InvalidSubnetSourceID InvalidVNetSourceID EmptySubnetError"
        " AgentPoolsWithEmptySubnetError TooManyCustomRouteTables CustomRouteTableParseError"
        " CustomRouteTableUnsupportedK8SVersion CustomRouteTableWithMSINotSupported"
        " CustomRouteTableCannotCrossSubscription"
        " CustomRouteTableInvalidUpdateAttempt",
    ),
    _rule(
        "NetworkPlugin",
        "The network plugin, its mode and the network policy do not go together.",
        "NetworkPolicyNotSupported NetworkPolicyAzureNotSupportedForKubenet NetworkPolicyNotSupportedForNone"
        " NetworkModeNotSupported NetworkModeInvalid AzureCNISubnetNotDefined",
    ),
    _rule(
        "PrivateCluster",
        "The cluster's load balancer does not allow a private API server, or a list of addresses for it.",
        "PrivateClusterNotSupportedWithBasicLoadBalancer APIServerWhitelistNotAllowedWithoutSingleIPPerCCP",
    ),
    _rule(
        "Zones",
        "A zone of a node pool is not a number.",
        "InvalidAvailabilityZoneFormat",
    ),
    _rule(
        "AddOns",
        "An add-on of the manifest is not one that AKS allows.",
        "AddonInvalid AddonAlreadyEnabledAsExtensionAddon LogAnalyticsWorkspaceNotSet"
        " IngressAppGwAddonConfigInvalid",
    ),
)
"""The source has a sentence for each code."""

ENTRIES: tuple[Entry, ...] = (
    *sourced(CODES, *_EXPLAINED),
    *sourced(
        "Azure/AKS-Construction issue 403, an answer of AKS",
        _rule(
            "RangeOfNetwork",
            "A range of the cluster overlaps the virtual network.",
            "NetworkProfileCIDROverlapVNET",
        ),
        link="https://learn.microsoft.com/azure/aks/concepts-network-ip-address-planning",
    ),
    *sourced(
        "Azure/AKS issue 1568",
        _rule("SystemPool", "No node pool has the mode System.", "MustDefineAtLeastOneSystemPool"),
        link="https://github.com/Azure/AKS/issues/1568",
    ),
    *sourced(
        "Azure/AKS issue 4060 and Azure/azure-cli issue 13050, answers of AKS",
        _rule("Unmarshal", "A field has a name, or a type, that AKS does not know.", "UnmarshalError"),
        link="https://github.com/Azure/AKS/issues/4060",
    ),
    *sourced(
        "Azure/acs-engine pkg/armhelpers/deploymentError.go: errors of the client",
        _rule(
            "Conflicting",
            "Two values of the manifest do not go together.",
            "InvalidParameterConflictingProperties ConflictingUserInput",
        ),
        link="https://github.com/Azure/acs-engine/blob/master/pkg/armhelpers/deploymentError.go",
    ),
    *sourced(
        "MicrosoftDocs/azure-aks-docs articles/aks/stop-cluster-upgrade-api-breaking-changes.md",
        _rule("Request", "AKS cannot take the request as it is.", "ValidationError"),
        link="https://learn.microsoft.com/azure/aks/stop-cluster-upgrade-api-breaking-changes",
    ),
)
