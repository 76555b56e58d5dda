"""Errors of networks: busy, full, delegated, linked twice, and what cannot be deleted while it is in use."""

from __future__ import annotations

from shared.cluster.failures.azure.aks import CODES, WRAPPERS
from shared.cluster.failures.entry import Actor, Entry, also, sourced, support
from shared.cluster.failures.errors import (
    Interrupted,
    InvalidManifest,
    Obstructed,
    OutOfAddresses,
    Refused,
)

_WAIT = "No action needed; repair the network with its owner if it is in the state Failed."

ENTRIES: tuple[Entry, ...] = (
    *sourced(
        CODES,
        Entry(
            "network/RouteTable",
            Refused,
            (
                *("SubnetMissingRouteTableAssociation", "ExistingRouteTableNotAssociatedWithSubnet"),
                *("RouteTableMissingDefaultRouteError", "RouteTableInvalidNextHop"),
                *("ExistingRouteTableInSubnetNotSupported", "CustomRouteTableNotFound"),
                *("SubnetNotAssociatedWithNATGateway", "NATGatewayNotAssociatedWithPublicIPOrIPPrefix"),
            ),
            "The route table, or the NAT gateway, of a subnet is not as the outbound type needs.",
            "Change the routes of the subnet as the message says, or commit another outbound type.",
            Actor.NETWORK,
        ),
    ),
    *support(
        "error-codes/virtualnetworknotinsucceededstate-error",
        Entry(
            "network/VirtualNetworkNotInSucceededState",
            Interrupted,
            (
                *("VirtualNetworkNotInSucceededState", "ReferencedResourceNotProvisioned"),
                *("CustomRouteTableConflict", "CustomRouteTablePreConditionFailed"),
                "LoadBalancerProfileOutboundIPPrefixProvisioningNotSucceeded",
                "LoadBalancerProfileOutboundIPProvisioningNotSucceeded",
            ),
            "A part of the network, such as a subnet, is being changed by somebody else at this moment.",
            _WAIT,
            Actor.NOBODY,
        ),
        Entry(
            "network/SetVNetOwnershipFailed",
            Interrupted,
            ("SetVNetOwnershipFailed", "SetResourceOwnershipError"),
            "AKS could not mark the virtual network as in use by the cluster.",
            _WAIT,
            Actor.NOBODY,
            wraps=True,
        ),
    ),
    *sourced(
        "hashicorp/terraform issue 7986",
        Entry(
            "network/RetryableError",
            Interrupted,
            ("RetryableError",),
            "The network service asks for another attempt.",
            _WAIT,
            Actor.NOBODY,
            wraps=True,
        ),
        link="https://github.com/hashicorp/terraform/issues/7986",
    ),
    *support(
        "error-codes/subnetisfull-error",
        Entry(
            "network/SubnetIsFull",
            OutOfAddresses,
            ("SubnetIsFull",),
            "The subnet of the nodes has too few free addresses, with those of an upgrade.",
            "Commit fewer nodes, a smaller `maxPods` or `upgradeSettings.maxSurge`, or a larger subnet for a"
            " pool; or free addresses in the subnet.",
            Actor.AUTHOR,
        ),
    ),
    *support(
        "connectivity/insufficientsubnetsize-error-advanced-networking",
        Entry(
            "network/InsufficientSubnetSize",
            OutOfAddresses,
            ("InsufficientSubnetSize",),
            "The subnet is too small for the nodes, or for the pods, that the manifest asks for.",
            "Commit fewer nodes, a smaller `maxPods` or `upgradeSettings.maxSurge`, or a larger subnet.",
            Actor.AUTHOR,
        ),
    ),
    *support(
        "error-codes/subnetisdelegated-error",
        Entry(
            "network/SubnetIsDelegated",
            Refused,
            ("SubnetIsDelegated", "ResourceNotPermittedOnDelegatedSubnet"),
            "The subnet is delegated to another service of Azure.",
            "Remove the delegation of the subnet, or commit another subnet.",
            Actor.NETWORK,
        ),
    ),
    *support(
        "error-codes/subnetwithexternalresourcescannotbeusedbyotherresources-error",
        Entry(
            "network/SubnetWithExternalResources",
            Refused,
            ("SubnetWithExternalResourcesCannotBeUsedByOtherResources",),
            "The subnet has resources of another service in it, so no nodes can be in it.",
            "Remove what the message names from the subnet, or commit another subnet.",
            Actor.NETWORK,
        ),
    ),
    *support(
        "error-codes/servicecidroverlapexistingsubnetscidr-error",
        Entry(
            "network/ServiceCidrOverlapExistingSubnetsCidr",
            Refused,
            ("ServiceCidrOverlapExistingSubnetsCidr", "PodCidrOverlapExistingSubnetsCidr"),
            "A subnet of the virtual network overlaps a range of the cluster.",
            "Delete the subnet in the message, or give it another range; the range of a cluster that exists"
            " cannot be changed.",
            Actor.NETWORK,
        ),
    ),
    *support(
        "error-codes/dnsserviceipoutofservicecidr-error",
        Entry(
            "network/DnsServiceIpOutOfServiceCidr",
            InvalidManifest,
            ("DnsServiceIpOutOfServiceCidr",),
            "`dnsServiceIP` is not within `serviceCidr`.",
            "Commit an address that is within `serviceCidr`.",
            Actor.AUTHOR,
        ),
    ),
    *support(
        "error-codes/invalidloadbalancerprofileallocatedoutboundports-error",
        Entry(
            "network/AllocatedOutboundPorts",
            InvalidManifest,
            (
                *("InvalidLoadBalancerProfileAllocatedOutboundPorts", "InsufficientOutboundPorts"),
                "SpecifiedAllocatedOutboundPortsForOutboundRuleExceedsTotalNumberOfAvailablePorts",
            ),
            "The nodes, with those of an upgrade, need more outbound ports than the public addresses have:"
            " 64,000 each.",
            "Commit fewer ports for each node, fewer nodes, or more public addresses.",
            Actor.AUTHOR,
        ),
    ),
    *support(
        "error-codes/invalidresourcereference-error",
        Entry(
            "network/InvalidResourceReference",
            Refused,
            ("InvalidResourceReference",),
            "A resource that the cluster refers to does not exist, or is in another region.",
            "Restore the resource in the message, or commit one that exists in the region of the cluster.",
            Actor.NETWORK,
        ),
    ),
    *sourced(
        f"Azure/AKS issue 3247; {CODES}",
        *also(
            Entry(
                "network/NotThere",
                Refused,
                (
                    *("SubnetNotFound", "NATGatewayNotFound", "PrivateDNSZoneResourceNotFoundError"),
                    *("LoadBalancerProfileOutboundIPNotExist", "PPGNotFound"),
                    "LoadBalancerProfileOutboundIPPrefixNotExist",
                ),
                "A resource that the cluster refers to does not exist, or no longer.",
                "Create the resource in the message again, or commit another one.",
                Actor.NETWORK,
            ),
            "network/NotThereByText",
            ("InvalidLoadBalancerProfileOutboundIPs", "InvalidLoadBalancerProfileOutboundIPPrefixes"),
            *("OutboundIPNotExist", "OutboundIPPrefixNotExist"),
        ),
        link="https://learn.microsoft.com/azure/aks/load-balancer-standard",
    ),
    *support(
        "error-codes/createorupdatevirtualnetworklinkfailed-error",
        Entry(
            "network/CreateOrUpdateVirtualNetworkLinkFailed",
            Refused,
            ("CreateOrUpdateVirtualNetworkLinkFailed",),
            "The virtual network is linked to another private DNS zone of the same name.",
            "Remove the link to the other zone in the message.",
            Actor.NETWORK,
            says=("overlapping namespaces",),
        ),
        Entry(
            "network/VirtualNetworkLink",
            Obstructed,
            ("CreateOrUpdateVirtualNetworkLinkFailed",),
            "AKS could not link the private DNS zone to the virtual network.",
            "Do what the message says.",
            Actor.NETWORK,
            wraps=True,
        ),
    ),
    *support(
        "error-codes/inuseroutetablecannotbedeleted-error",
        Entry(
            "network/InUseRouteTableCannotBeDeleted",
            Obstructed,
            ("InUseRouteTableCannotBeDeleted",),
            "A route table of the cluster is still associated with a subnet, so it cannot be deleted.",
            "Dissociate the route table in the message from the subnet.",
            Actor.NETWORK,
        ),
    ),
    *support(
        "error-codes/publicipaddr-inusesubnet-netsecgrp-error",
        Entry(
            "network/PublicIPAddressCannotBeDeleted",
            Obstructed,
            ("PublicIPAddressCannotBeDeleted",),
            "A public address of the cluster is still in use, so it cannot be deleted.",
            "Detach the public address in the message from the resource that uses it.",
            Actor.NETWORK,
        ),
        Entry(
            "network/InUseSubnetCannotBeDeleted",
            Obstructed,
            ("InUseSubnetCannotBeDeleted",),
            "Something is still in a subnet, so it cannot be deleted.",
            "Remove what the message names from the subnet.",
            Actor.NETWORK,
        ),
        Entry(
            "network/InUse",
            Obstructed,
            ("CannotBeDeleted",),
            "A part of the cluster's network is still in use, so it cannot be deleted.",
            "Detach what the message names from the resource that uses it.",
            Actor.NETWORK,
            family=True,
        ),
        Entry(
            "network/InUseNetworkSecurityGroupCannotBeDeleted",
            Obstructed,
            ("InUseNetworkSecurityGroupCannotBeDeleted",),
            "A network security group of the cluster is still in use, so it cannot be deleted.",
            "Dissociate the group in the message from the subnets and interfaces that use it.",
            Actor.NETWORK,
        ),
    ),
    *support(
        "error-codes/networksecuritygroupinusebyvirtualmachinescaleset-error",
        Entry(
            "network/InUseByVirtualMachineScaleSet",
            Obstructed,
            (
                "LoadBalancerInUseByVirtualMachineScaleSet",
                "NetworkSecurityGroupInUseByVirtualMachineScaleSet",
            ),
            "A scale set still uses a load balancer or a network security group, so it cannot be deleted.",
            "Detach the scale set in the message, and the public addresses of the load balancer.",
            Actor.NETWORK,
        ),
    ),
    *support(
        "error-codes/lb-pvtlinksvcwithpvtendptconn-error",
        Entry(
            "network/LoadBalancerWithPrivateLinkService",
            Obstructed,
            ("CannotDeleteLoadBalancerWithPrivateLinkService",),
            "A private link service uses a load balancer of the cluster, so it cannot be deleted.",
            "Delete the private link service in the message.",
            Actor.NETWORK,
        ),
        Entry(
            "network/PrivateLinkServiceWithConnections",
            Obstructed,
            ("PrivateLinkServiceWithPrivateEndpointConnectionsCannotBeDeleted",),
            "Private endpoints are connected to a private link service, so it cannot be deleted.",
            "Delete the private endpoint connections of the service in the message.",
            Actor.NETWORK,
        ),
    ),
    *support(
        "error-codes/linkedauthorizationfailed-error",
        Entry(
            "network/Reconcile",
            Obstructed,
            (
                *("ReconcileVNetError", "ReconcileStandardLoadBalancerError", "GetVnetError"),
                *("GetSubnetError", "GetRouteTableError", "GetNATGatewayError"),
                "AssociateRouteTableToSubnetError",
            ),
            "AKS could not read or change a part of the cluster's network.",
            "Do what the message says.",
            Actor.NETWORK,
            wraps=True,
        ),
    ),
    *sourced(
        "Azure/azure-service-operator issue 2273: the answer of AKS, cut short there",
        Entry(
            "network/GatewayOnSubnet",
            Refused,
            ("SubnetsAssociatedWithNATgateway",),
            "A subnet has a NAT gateway, and the cluster's outbound type is the load balancer.",
            "Commit `outboundType: userAssignedNATGateway`, or remove the gateway from the subnet.",
            Actor.NETWORK,
            family=True,
        ),
        link="https://learn.microsoft.com/azure/aks/nat-gateway",
    ),
    *sourced(
        "MicrosoftDocs/azure-docs issues 39112 and 92894, Azure/ARO-HCP pull request 469: answers of the"
        " network service",
        *also(
            Entry(
                "network/Delegation",
                Refused,
                ("SubnetDelegationsCannotChangeWhenSubnetUsedByResource", "SubnetMissingRequiredDelegation"),
                "AKS delegates this subnet to itself, and something else uses it or took the delegation"
                " away.",
                "Give the cluster a subnet that nothing else uses, or restore its delegation to"
                " Microsoft.ContainerService/managedClusters.",
                Actor.NETWORK,
            ),
            "network/DelegationByText",
            ("PreconditionFailed", "BadRequest", *WRAPPERS),
            "serviceassociationlinks/azurekubernetesservice already exists",
        ),
        link="https://learn.microsoft.com/azure/aks/concepts-network-cni-overview",
    ),
    *sourced(
        "Azure/AKS-Construction bicep/main.bicep, on rights at the virtual network",
        Entry(
            "network/ReconcilePrivateDNS",
            Obstructed,
            ("ReconcilePrivateDNS",),
            "AKS could not link the private DNS zone to the cluster's network.",
            "Give the identity of the cluster `Network Contributor` on the virtual network, if the message"
            " names nothing else.",
            Actor.NETWORK,
            wraps=True,
        ),
        link="https://learn.microsoft.com/azure/aks/private-clusters",
    ),
    *sourced(
        "MicrosoftDocs/azure-aks-docs articles/aks/api-server-vnet-integration.md",
        Entry(
            "network/ApiServerSubnet",
            Obstructed,
            ("ApiserverSubnetConfigError",),
            "The subnet of the API server is too small, not delegated to AKS, or closed to the identity of"
            " the cluster.",
            "Delegate a subnet of /28 or more to `Microsoft.ContainerService/managedClusters`, and let the"
            " identity of the cluster use it.",
            Actor.NETWORK,
            wraps=True,
        ),
        link="https://learn.microsoft.com/azure/aks/api-server-vnet-integration",
    ),
    *support(
        "create-upgrade-delete/error-code-requestdisallowedbypolicy-delete",
        Entry(
            "network/DeleteResourceGroup",
            Obstructed,
            ("DeleteResourceGroupError", "DeleteResourceGroupFailed", "ResourceGroupDeletionBlocked"),
            "AKS could not delete the node resource group.",
            "Do what the message says; Azure's activity log of the group shows what keeps it.",
            Actor.NETWORK,
            wraps=True,
        ),
    ),
)
