"""Errors of the services that AKS calls for a cluster, by Microsoft's list for each kind of resource."""

from __future__ import annotations

from shared.cluster.failures.entry import Actor, Entry, sourced
from shared.cluster.failures.errors import Conflict, QuotaExceeded, Refused

_SOURCE = "Azure/aks-deployer pkg/armerror/const.go: resourceTypeClientErrorCodes"
_LINK = "https://github.com/Azure/aks-deployer/blob/main/pkg/armerror/const.go"

_LISTED = sourced(
    _SOURCE,
    Entry(
        "providers/Limits",
        QuotaExceeded,
        (
            *("VnetCountLimitReached", "ResourceGroupQuotaExceeded"),
            "MaxStorageAccountsCountPerSubscriptionExceeded",
        ),
        "The subscription has as many networks, groups or storage accounts as it may have.",
        "Delete some that nobody uses, or ask for a larger limit.",
        Actor.SUBSCRIPTION,
    ),
    Entry(
        "providers/Subnet",
        Refused,
        (
            *("ApplicationGatewaySubnetCannotBeUsedByOtherResources", "GatewaySubnet"),
            *("PrivateEndpointAndServiceEndpointsCannotCoexistInASubnet", "VnetAddressSpacesOverlap"),
            "VnetAddressSpaceOverlapsWithAlreadyPeeredVnet",
        ),
        "The subnet, or the network, is taken by a gateway, by endpoints or by a peering.",
        "Change the network as the message says, or commit another subnet.",
        Actor.NETWORK,
    ),
    Entry(
        "providers/Marketplace",
        Refused,
        (
            *("MarketplacePurchaseEligibilityFailed", "ResourcePurchaseValidationFailed"),
            "CustomerDeniedServicePlanAccess",
        ),
        "The subscription may not buy, or use, an offer of the Azure Marketplace.",
        "Accept the terms of the offer in the message, or give the subscription a means of payment.",
        Actor.SUBSCRIPTION,
    ),
    Entry(
        "providers/Moved",
        Conflict,
        ("ResourcesBeingMoved", "ApplianceBeingDeleted"),
        "A resource is being moved or deleted by somebody else.",
        "No action needed; if it persists, Azure's activity log shows who does that.",
        Actor.NOBODY,
    ),
    link=_LINK,
)

ENTRIES: tuple[Entry, ...] = (
    *_LISTED,
    *sourced(
        "Azure/missionlz issue 673, Azure/bicep issue 2127: answers of the network service",
        Entry(
            "providers/EndpointPolicies",
            Refused,
            (
                "PrivateEndpointCannotBeCreatedInSubnetThatHasNetworkPoliciesEnabled",
                "PrivateEndpointNetworkPoliciesCannotBeEnabledOnPrivateEndpointSubnet",
                "PrivateLinkServiceCannotBeCreatedInSubnetThatHasNetworkPoliciesEnabled",
            ),
            "The subnet has network policies for private endpoints or private link services, and AKS cannot"
            " have one of these in it.",
            "Disable these network policies of the subnet in the message.",
            Actor.NETWORK,
        ),
        link="https://learn.microsoft.com/azure/private-link/disable-private-endpoint-network-policy",
    ),
)
