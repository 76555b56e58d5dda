"""What Azure has in a region for a subscription, as its lists show it. Pure.

Sources: the examples of github.com/Azure/azure-rest-api-specs (specification/compute, skus and usages;
specification/network, usages and virtualNetworks); virtual-networks-faq (addresses that Azure keeps).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Network
from typing import Any

from shared.frozen import dataclass, field
from shared.json_tree import Json

RESERVED = 5
"""The addresses of each subnet that Azure keeps (virtual-networks-faq)."""


@dataclass(frozen=True)
class Size:
    """A size of machines: its family, cores and zones, and whether the subscription may not have it.

    ``ephemeral`` is the room for an ephemeral OS disk in GB, ``encrypts`` whether hosts encrypt its disks;
    None where the list does not say it.
    """

    family: str
    cores: int
    zones: frozenset[str] = frozenset()
    barred: bool = False
    ephemeral: int | None = None
    encrypts: bool | None = None


@dataclass(frozen=True)
class AzureQuota:
    """A limit, and what of it is used."""

    used: int
    limit: int

    @property
    def left(self) -> int:
        """What is left; what is used can be above the limit."""
        return max(0, self.limit - self.used)


@dataclass(frozen=True)
class Subnet:
    """How many addresses a subnet has for nodes and pods, how many of them are used, and its IPv4 ranges.

    ``location`` is that of its network, "" where nobody said it, and ``delegated`` names the services to
    which it is delegated. ``gateway`` and ``routed``: whether it has a NAT gateway, and a route table.
    """

    size: int
    used: int
    ranges: tuple[str, ...] = ()
    location: str = ""
    delegated: tuple[str, ...] = ()
    gateway: bool = False
    routed: bool = False

    @property
    def left(self) -> int:
        """The addresses that are left."""
        return max(0, self.size - self.used)


@dataclass(frozen=True)
class Offer:
    """What Azure has in one region for one subscription; None, or nothing, for what it did not say.

    ``sizes`` and ``subnets`` are by name and id in lower case, ``quotas`` by the names that Azure gives them.
    Subnets can be in other subscriptions.
    """

    regions: frozenset[str] | None = None
    versions: Sequence[str] | None = None
    sizes: Mapping[str, Size] | None = None
    quotas: Mapping[str, AzureQuota] = field(default_factory=dict)
    subnets: Mapping[str, Subnet] = field(default_factory=dict)


def sizes_of(documents: Sequence[Json]) -> dict[str, Size]:
    """Return the sizes of machines in a list of what can be created in a region."""
    found = {}
    for document in documents:
        if document["resourceType"] != "virtualMachines":
            continue
        named = {
            capability.get("name"): capability.get("value")
            for capability in document.get("capabilities") or ()
        }
        places = document.get("locationInfo") or ()
        zones = {str(zone) for place in places for zone in place.get("zones") or ()}
        limits = document.get("restrictions") or ()
        for limit in limits:
            if limit.get("type") == "Zone":
                zones -= {*((limit.get("restrictionInfo") or {}).get("zones") or ())}
        cores = str(named.get("vCPUs") or "")
        found[str(document["name"]).lower()] = Size(
            str(document.get("family") or ""),
            int(cores) if cores.isdecimal() else 0,
            frozenset(zones),
            any(limit.get("type") == "Location" for limit in limits),
            _ephemeral(named),
            {"True": True, "False": False}.get(str(named.get("EncryptionAtHostSupported"))),
        )
    return found


def _ephemeral(named: Mapping[Any, Any]) -> int | None:
    """Return the largest of the places for an ephemeral OS disk: cache, temporary disk and NVMe disk.

    Source: learn.microsoft.com/azure/virtual-machines/ephemeral-os-disks, "Size requirements".
    """
    supported = str(named.get("EphemeralOSDiskSupported"))
    if supported != "True":
        return 0 if supported == "False" else None
    places = (("CachedDiskBytes", 2**30), ("MaxResourceVolumeMB", 2**10), ("NvmeDiskSizeInMiB", 2**10))
    sizes = ((str(named.get(name) or ""), unit) for name, unit in places)
    return max((int(size) // unit for size, unit in sizes if size.isdecimal()), default=0)


def quotas_of(documents: Sequence[Json]) -> dict[str, AzureQuota]:
    """Return the limits in a list of usages by their names."""
    return {
        str((document["name"] or {}).get("value")): AzureQuota(
            int(document.get("currentValue") or 0), int(document["limit"])
        )
        for document in documents
    }


def subnets_of(networks: Sequence[Json]) -> dict[str, Subnet]:
    """Return the subnets of networks by their ids in lower case; those of IPv6 alone have no limit."""
    found = {}
    for network in networks:
        for subnet in network["properties"].get("subnets") or ():
            shown = subnet.get("properties") or {}
            prefixes = shown.get("addressPrefixes") or [shown.get("addressPrefix")]
            ranges = tuple(str(prefix) for prefix in prefixes if _addresses(str(prefix)))
            if ranges:
                used, size = len(shown.get("ipConfigurations") or ()), sum(map(_addresses, ranges))
                found[str(subnet["id"]).lower()] = Subnet(
                    size - RESERVED,
                    used,
                    ranges,
                    str(network.get("location") or "").lower(),
                    tuple(_services(shown.get("delegations") or ())),
                    bool(shown.get("natGateway")),
                    bool(shown.get("routeTable")),
                )
    return found


def _services(delegations: Sequence[Json]) -> Iterator[str]:
    for delegation in delegations:
        yield str((delegation.get("properties") or {}).get("serviceName") or "")


def _addresses(prefix: str) -> int:
    """Return how many addresses an IPv4 range has, 0 for any other text."""
    try:
        return IPv4Network(prefix, strict=False).num_addresses
    except ValueError:
        return 0
