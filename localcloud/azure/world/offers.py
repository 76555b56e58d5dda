"""What a subscription may have in a region: regions, sizes of machines, limits, and networks.

Shapes: the examples of github.com/Azure/azure-rest-api-specs (specification/compute, skus and usages;
specification/network, usages and virtualNetworks). Families and sizes: the pages of the series below
learn.microsoft.com/azure/virtual-machines/sizes, and the names of families as ``az vm list-usage`` shows them
(learn.microsoft.com/azure/quotas/per-vm-quota-requests). Every region has every size in three zones, and
limits that no fleet of a test reaches, unless a test says otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import ip_network
from typing import Any

from localcloud.azure.world import request_limits as limits
from localcloud.azure.world.arm_errors import ArmError
from localcloud.azure.world.azure_engine import AzureEngine
from localcloud.azure.world.catalog import REGIONS, region
from localcloud.azure.world.pools.agent_pools import vcpus
from shared.json_tree import Json

_SERIES: tuple[tuple[str, str, tuple[int, ...]], ...] = (
    ("standardBSFamily", "Standard_B{}ms", (2, 4, 8, 12, 16, 20)),
    ("standardBsv2Family", "Standard_B{}s_v2", (2, 4, 8, 16, 32)),
    ("standardDv2Family", "Standard_D{}_v2", (1, 2, 3, 4, 5)),
    ("standardDSv2Family", "Standard_DS{}_v2", (1, 2, 3, 4, 5)),
    ("standardDv3Family", "Standard_D{}_v3", (2, 4, 8, 16, 32, 48, 64)),
    ("standardDSv3Family", "Standard_D{}s_v3", (2, 4, 8, 16, 32, 48, 64)),
    ("standardDSv4Family", "Standard_D{}s_v4", (2, 4, 8, 16, 32, 48, 64)),
    ("standardDDv4Family", "Standard_D{}d_v4", (2, 4, 8, 16, 32, 48, 64)),
    ("standardDDSv4Family", "Standard_D{}ds_v4", (2, 4, 8, 16, 32, 48, 64)),
    ("standardDv5Family", "Standard_D{}_v5", (2, 4, 8, 16, 32, 48, 64, 96)),
    ("standardDSv5Family", "Standard_D{}s_v5", (2, 4, 8, 16, 32, 48, 64, 96)),
    ("standardDDSv5Family", "Standard_D{}ds_v5", (2, 4, 8, 16, 32, 48, 64, 96)),
    ("standardDASv5Family", "Standard_D{}as_v5", (2, 4, 8, 16, 32, 48, 64, 96)),
    ("standardDPSv5Family", "Standard_D{}ps_v5", (2, 4, 8, 16, 32, 48, 64)),
    ("standardESv5Family", "Standard_E{}s_v5", (2, 4, 8, 16, 20, 32, 48, 64, 96)),
    ("standardEDSv5Family", "Standard_E{}ds_v5", (2, 4, 8, 16, 20, 32, 48, 64, 96)),
    ("standardFSv2Family", "Standard_F{}s_v2", (2, 4, 8, 16, 32, 48, 64, 72)),
    ("standardLSv3Family", "Standard_L{}s_v3", (8, 16, 32, 48, 64, 80)),
    ("StandardDsv6Family", "Standard_D{}s_v6", (2, 4, 8, 16, 32, 48, 64, 96, 128)),
    ("StandardDadsv6Family", "Standard_D{}ads_v6", (2, 4, 8, 16, 32, 48, 64, 96)),
)
_OLD = re.compile(r"Standard_DS?(\d)_v2")
_CORES_OF_OLD = {"1": 1, "2": 2, "3": 4, "4": 8, "5": 16}
FAMILIES: Mapping[str, str] = {
    form.format(number).lower(): family for family, form, numbers in _SERIES for number in numbers
}
"""The family of each size, by its name in lower case."""
LIMIT = 1_000_000
_ADDRESSES = ("PublicIPAddresses", "IPv4StandardSkuPublicIpAddresses", "StandardSkuLoadBalancers")


class Offers:
    """What every subscription may have; a test sets limits, takes sizes away and makes networks."""

    def __init__(self, engine: AzureEngine) -> None:
        self._engine = engine
        self._limits: dict[tuple[str, str, str], int] = {}
        self._barred: set[tuple[str, str]] = set()
        self._networks: dict[str, dict[str, Any]] = {}

    # What a test says

    def limit(self, subscription: str, location: str, name: str, limit: int) -> None:
        """Limit cores of a family, all ``cores`` or public addresses of a subscription in a region."""
        with self._engine.lock:
            self._limits[subscription.lower(), location, name] = limit

    def bar(self, location: str, size: str) -> None:
        """Let no subscription have a size in a region."""
        with self._engine.lock:
            self._barred.add((location, size.lower()))

    def create_network(self, resource: str, location: str, subnets: Mapping[str, tuple[str, int]]) -> None:
        """Create a virtual network; of each subnet the prefix, and how many addresses are used."""
        with self._engine.lock:
            self._networks[resource] = {
                "id": resource,
                "name": resource.rpartition("/")[2],
                "location": location,
                "properties": {
                    "subnets": [
                        _subnet(f"{resource}/subnets/{name}", prefix, used)
                        for name, (prefix, used) in subnets.items()
                    ]
                },
            }

    # Requests

    def list_locations(self, subscription: str) -> list[Json]:
        """Return the regions of a subscription."""
        with self._engine.request(subscription, limits.ARM_READ):
            return [
                {
                    "id": f"/subscriptions/{subscription}/locations/{name}",
                    "name": name,
                    "type": "Region",
                    "displayName": name,
                    "regionalDisplayName": name,
                    "metadata": {"regionType": "Physical", "regionCategory": "Recommended"},
                }
                for name in sorted(REGIONS)
            ]

    def list_sizes(self, subscription: str, location: str) -> list[Json]:
        """Return the sizes of machines in a region, and none where there is no such region."""
        with self._engine.request(subscription, limits.ARM_READ):
            if region(location) not in REGIONS:
                return []
            return [
                self._size(location, form.format(number), family)
                for family, form, numbers in _SERIES
                for number in numbers
            ]

    def _size(self, location: str, name: str, family: str) -> dict[str, Any]:
        reason = {"reasonCode": "NotAvailableForSubscription", "restrictionInfo": {"locations": [location]}}
        barred = (location, name.lower()) in self._barred
        return {
            "resourceType": "virtualMachines",
            "name": name,
            "tier": "Standard",
            "size": name.removeprefix("Standard_"),
            "family": family,
            "locations": [location],
            "locationInfo": [{"location": location, "zones": ["1", "2", "3"], "zoneDetails": []}],
            "capabilities": [{"name": "vCPUs", "value": str(cores_of(name))}],
            "restrictions": [{"type": "Location", "values": [location], **reason}] if barred else [],
        }

    def list_compute_usages(self, subscription: str, location: str) -> list[Json]:
        """Return how many cores of each family are used in a region."""
        with self._engine.request(subscription, limits.ARM_READ):
            self._require(location)
            used: dict[str, int] = {"cores": 0, **{family: 0 for family, _, _ in _SERIES}}
            for cluster, existing in self._engine.clusters.items():
                if cluster.subscription != subscription.lower() or existing.document["location"] != location:
                    continue
                for pool in existing.pools.values():
                    cores = pool["count"] * cores_of(str(pool["vmSize"]))
                    used["cores"] += cores
                    family = FAMILIES.get(str(pool["vmSize"]).lower())
                    if family:
                        used[family] += cores
            return [self._usage(subscription, location, name, count) for name, count in used.items()]

    def list_network_usages(self, subscription: str, location: str) -> list[Json]:
        """Return how many public addresses are used in a region: one for each cluster."""
        with self._engine.request(subscription, limits.ARM_READ):
            self._require(location)
            count = sum(
                cluster.subscription == subscription.lower() and existing.document["location"] == location
                for cluster, existing in self._engine.clusters.items()
            )
            return [self._usage(subscription, location, name, count) for name in _ADDRESSES]

    def list_networks(self, subscription: str) -> list[Json]:
        """Return the virtual networks of a subscription, each of which a test created."""
        with self._engine.request(subscription, limits.ARM_READ):
            start = f"/subscriptions/{subscription}/".lower()
            return [one for name, one in self._networks.items() if name.lower().startswith(start)]

    def _usage(self, subscription: str, location: str, name: str, used: int) -> dict[str, Any]:
        most = self._limits.get((subscription.lower(), location, name), LIMIT)
        return {
            "name": {"value": name, "localizedValue": name},
            "currentValue": used,
            "limit": most,
            "unit": "Count",
        }

    def _require(self, location: str) -> None:
        if region(location) not in REGIONS:
            message = f"The provided location '{location}' is not available."
            raise ArmError(400, "NoRegisteredProviderFound", message)


def cores_of(size: str) -> int:
    """Return the cores of a size; the number in the name of an old one is no number of cores."""
    old = _OLD.fullmatch(size)
    return _CORES_OF_OLD[old[1]] if old else vcpus(size)


def _subnet(resource: str, prefix: str, used: int) -> dict[str, Any]:
    addresses = [f"{resource}/ipConfigurations/{number}" for number in range(used)]
    return {
        "id": resource,
        "name": resource.rpartition("/")[2],
        "properties": {
            "addressPrefix": str(ip_network(prefix)),
            "ipConfigurations": [{"id": address} for address in addresses],
        },
    }
