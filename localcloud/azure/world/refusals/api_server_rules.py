"""Refusals about the access to an API server: private, by ranges, in a subnet, with a zone of one's own."""

from __future__ import annotations

import ipaddress

from localcloud.azure.world.refusals.rule import RefusalRule, RequestedWrite, is_one_way

_ACCESS = "apiServerAccessProfile"
_SYSTEM_ASSIGNED = "SystemAssigned"
_OF_EXAMPLES = tuple(map(ipaddress.ip_network, ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")))


def _changes_private(asked: RequestedWrite) -> bool:
    return asked.changes(f"{_ACCESS}.enablePrivateCluster") and not asked.now(
        f"{_ACCESS}.enableVnetIntegration"
    )


def _changes_zone(asked: RequestedWrite) -> bool:
    zone = f"{_ACCESS}.privateDNSZone"
    return asked.changes(zone) and asked.says(zone).lower() != "none"


def _zone_name(asked: RequestedWrite) -> str:
    """Return the name of a private DNS zone of one's own, "" without one."""
    zone = str(asked.now(f"{_ACCESS}.privateDNSZone") or "").lower()
    return zone.split("/")[-1] if "/" in zone else ""


def _foreign_zone(asked: RequestedWrite) -> bool:
    zone, region = _zone_name(asked), str(asked.now("location"))
    if not zone or region.startswith(("china", "usgov", "usdod")):
        return False
    kinds = [f"{kind}.{region}.azmk8s.io" for kind in ("privatelink", "private")]
    below = any(
        zone.endswith(f".{kind}") and 0 < len(zone) - len(kind) - 1 <= 32 and zone.count(".") == 4
        for kind in kinds
    )
    return not (zone in (*kinds, f"{region}.azmk8s.io") or below)


def _on_subnets(asked: RequestedWrite) -> bool:
    return any(pool.get("vnetSubnetID") for pool in asked.now("agentPoolProfiles") or ())


def _not_public(asked: RequestedWrite) -> bool:
    texts = asked.now(f"{_ACCESS}.authorizedIPRanges") or ()
    if asked.now(f"{_ACCESS}.enableVnetIntegration"):
        return False
    return not all(map(_on_the_internet, texts))


def _on_the_internet(text: str) -> bool:
    """Return whether anybody may have an IPv4 address there; the ranges of examples count as such."""
    try:
        network = ipaddress.IPv4Network(text, strict=False)
    except ValueError:
        return False
    first, last = network.network_address, network.broadcast_address
    if first in ipaddress.ip_network("0.0.0.0/8") or any(first in kept for kept in _OF_EXAMPLES):
        return True
    return any(address.is_global and not address.is_multicast for address in (first, last))


RULES = (
    RefusalRule(
        "zone-needs-user-identity",
        "docs private-clusters: a user-assigned identity with roles; "
        "hashicorp/terraform-provider-azurerm#10940",
        f"{_ACCESS}.privateDNSZone",
        "A private DNS zone of one's own needs identity type UserAssigned.",
        lambda asked: _zone_name(asked) and asked.now("identity.type") == _SYSTEM_ASSIGNED,
    ),
    RefusalRule(
        "zone-of-the-region",
        "docs private-clusters: the format of the name; MicrosoftDocs/azure-docs#111880",
        f"{_ACCESS}.privateDNSZone",
        "The private DNS zone must be privatelink.<region>.azmk8s.io or "
        "<subzone>.privatelink.<region>.azmk8s.io.",
        _foreign_zone,
    ),
    RefusalRule(
        "nodes-only-range-alone",
        "Azure/terraform-azurerm-aks#378",
        f"{_ACCESS}.authorizedIPRanges",
        "Setting apiServerAuthorizedIPRange to 0.0.0.0/32 is not allowed with other IP ranges. Refer to "
        "https://aka.ms/aks/auth-ip-ranges for more details",
        lambda asked: (
            "0.0.0.0/32" in (asked.now(f"{_ACCESS}.authorizedIPRanges") or ())
            and len(asked.now(f"{_ACCESS}.authorizedIPRanges")) > 1
        ),
    ),
    RefusalRule(
        "ranges-are-few",
        "docs api-server-authorized-ip-ranges: up to 200, and 2,000 with API Server VNet Integration",
        f"{_ACCESS}.authorizedIPRanges",
        "Too many authorized IP ranges.",
        lambda asked: (
            len(asked.now(f"{_ACCESS}.authorizedIPRanges") or ())
            > (2000 if asked.now(f"{_ACCESS}.enableVnetIntegration") else 200)
        ),
    ),
    RefusalRule(
        "ranges-are-public",
        "docs api-server-authorized-ip-ranges: public IP address ranges; azure-cli validate_ip_ranges; "
        "MicrosoftDocs/azure-docs#98356",
        f"{_ACCESS}.authorizedIPRanges",
        "apiServerAccessProfile.authorizedIPRanges must be public IPv4 ranges.",
        _not_public,
    ),
    RefusalRule(
        "api-subnet-needs-integration",
        "azure-cli get_apiserver_subnet_id",
        f"{_ACCESS}.subnetId",
        "apiServerAccessProfile.subnetId needs enableVnetIntegration.",
        lambda asked: (
            asked.now(f"{_ACCESS}.subnetId")
            and not asked.now(f"{_ACCESS}.enableVnetIntegration")
            and asked.now("sku.name") != "Automatic"
        ),
    ),
    RefusalRule(
        "integration-needs-api-subnet",
        "models ManagedClusterAPIServerAccessProfile.subnet_id: required when creating with BYO Vnet",
        f"{_ACCESS}.subnetId",
        "apiServerAccessProfile.enableVnetIntegration needs subnetId in a virtual network of one's own.",
        lambda asked: (
            asked.now(f"{_ACCESS}.enableVnetIntegration")
            and not asked.now(f"{_ACCESS}.subnetId")
            and _on_subnets(asked)
        ),
    ),
    RefusalRule(
        "network-integration-stays",
        "docs api-server-vnet-integration: cannot be disabled",
        f"{_ACCESS}.enableVnetIntegration",
        "Changing property 'apiServerAccessProfile.enableVnetIntegration' is not allowed.",
        is_one_way(f"{_ACCESS}.enableVnetIntegration"),
        code="PropertyChangeNotAllowed",
    ),
    RefusalRule(
        "private-only-with-integration",
        "docs api-server-vnet-integration: private cluster mode of an existing cluster",
        f"{_ACCESS}.enablePrivateCluster",
        "Changing property 'apiServerAccessProfile.enablePrivateCluster' is not allowed.",
        _changes_private,
        code="PropertyChangeNotAllowed",
    ),
    RefusalRule(
        "private-zone-to-none",
        "docs private-clusters: from a private DNS zone to public only",
        f"{_ACCESS}.privateDNSZone",
        "Changing property 'apiServerAccessProfile.privateDNSZone' is not allowed.",
        _changes_zone,
        code="PropertyChangeNotAllowed",
    ),
    RefusalRule(
        "no-name-at-all",
        "docs private-clusters: privateDNSZone none and publicDNS false at the same time isn't supported",
        f"{_ACCESS}.enablePrivateClusterPublicFQDN",
        "privateDNSZone none needs enablePrivateClusterPublicFQDN.",
        lambda asked: (
            str(asked.now(f"{_ACCESS}.privateDNSZone")).lower() == "none"
            and asked.now(f"{_ACCESS}.enablePrivateClusterPublicFQDN") is False
        ),
    ),
    RefusalRule(
        "ranges-are-for-public-servers",
        "docs private-clusters: IP authorized ranges only apply to the public API server",
        f"{_ACCESS}.authorizedIPRanges",
        "authorizedIPRanges are not allowed on a private cluster.",
        lambda asked: (
            asked.now(f"{_ACCESS}.enablePrivateCluster") and asked.now(f"{_ACCESS}.authorizedIPRanges")
        ),
    ),
)
