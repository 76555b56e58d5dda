"""What a subscription may have: regions, sizes of machines, limits, networks, providers and features.

Alerts and their rules are here too, because no cluster has them. Shapes: the examples of
github.com/Azure/azure-rest-api-specs (specification/alertsmanagement and specification/monitor;
specification/compute, skus and usages; specification/network, usages and virtualNetworks;
specification/resources, providers and features). Every provider and feature is registered, and every region
has every size of ``quotas`` in three zones, unless a test says otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from ipaddress import ip_network
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from localcloud.azure.world import request_limits as limits
from localcloud.azure.world.arm_errors import ArmError
from localcloud.azure.world.azure_engine import AzureEngine
from localcloud.azure.world.catalog import REGIONS, region
from localcloud.azure.world.quotas import CLUSTERS, SERIES, cores_of
from shared.json_tree import Json

_FEATURES = {
    "microsoft.compute": ("EncryptionAtHost", "VmssAutomaticZonePlacement"),
    "microsoft.containerservice": ("NodeDisruptionProfile", "ManagedNATGatewayV2Preview"),
}
"""Features that documents of AKS name, by their provider."""
_PROVIDERS = (
    *("Microsoft.Authorization", "Microsoft.Compute", "Microsoft.ContainerService", "Microsoft.Features"),
    *("Microsoft.KubernetesConfiguration", "Microsoft.ManagedIdentity", "Microsoft.Network"),
    *("Microsoft.OperationalInsights", "Microsoft.OperationsManagement", "Microsoft.PolicyInsights"),
)
_ADDRESSES = ("PublicIPAddresses", "IPv4StandardSkuPublicIpAddresses", "StandardSkuLoadBalancers")


def _disks(name: str) -> Mapping[str, str]:
    """Return what a size has for disks; ddsv5-series and ddv4-series say how large the temporary one is."""
    local = re.fullmatch(r"Standard_[DE](\d+)a?ds?_v[45]", name)
    return {
        "EncryptionAtHostSupported": "True",
        "EphemeralOSDiskSupported": str(local is not None),
        "MaxResourceVolumeMB": str(int(local[1]) * 38_400 if local else 0),
    }


class Offers:
    """What every subscription may have; a test takes sizes away and creates networks."""

    def __init__(self, engine: AzureEngine) -> None:
        self._engine = engine
        self._barred: set[tuple[str, str]] = set()
        self._networks: dict[str, dict[str, Any]] = {}
        self._unregistered: set[str] = set()
        self._alerts: dict[str, dict[str, Any]] = {}
        self._rules: dict[str, dict[str, Any]] = {}

    # What a test says

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

    def unregister(self, name: str) -> None:
        """Let no subscription have a provider, or a feature such as Microsoft.Compute/EncryptionAtHost."""
        with self._engine.lock:
            self._unregistered.add(name.lower())

    def fire(self, resource: str, rule: str, severity: str = "Sev1") -> str:
        """Fire an alert of a rule about a resource, and return its name."""
        name = alert_name(resource, rule)
        subscription, group = resource.split("/")[2], resource.split("/")[4]
        place = f"/subscriptions/{subscription}/resourceGroups/{group}"
        essentials = {
            "severity": severity,
            "monitorCondition": "Fired",
            "alertState": "New",
            "alertRule": f"{place}/providers/microsoft.insights/metricalerts/{rule}",
            "targetResource": resource,
            "targetResourceName": resource.rpartition("/")[2],
            "targetResourceGroup": group,
            "startDateTime": self._engine.now.isoformat(),
            "monitorService": "Platform",
        }
        kind = "Microsoft.AlertsManagement/alerts"
        with self._engine.lock:
            if self.fires_since(name):
                return name
            self._alerts[name] = {
                "id": f"/subscriptions/{subscription}/providers/{kind}/{name}",
                "name": name,
                "type": kind,
                "properties": {"essentials": essentials},
            }
        return name

    def fires_since(self, alert: str) -> str:
        """Return when an alert fired that is not resolved, "" for any other one."""
        with self._engine.lock:
            found = self._alerts.get(alert, {}).get("properties", {}).get("essentials", {})
            return str(found["startDateTime"]) if found.get("monitorCondition") == "Fired" else ""

    def resolve(self, alert: str) -> None:
        """Resolve an alert, as Azure does when its condition is over."""
        with self._engine.lock:
            self._alerts[alert]["properties"]["essentials"]["monitorCondition"] = "Resolved"

    def put_alert_rule(self, subscription: str, group: str, name: str, *, enabled: bool = True) -> None:
        """Create or change a rule that queries logs, as a deployment does."""
        place = f"/subscriptions/{subscription}/resourceGroups/{group}/providers"
        rule = f"{place}/Microsoft.Insights/scheduledQueryRules/{name}"
        with self._engine.lock:
            self._rules[rule.lower()] = {"id": rule, "name": name, "properties": {"enabled": enabled}}

    # Requests

    def list_alert_rules(self, subscription: str, group: str) -> list[Json]:
        """Return the rules of a resource group that query logs."""
        with self._engine.request(subscription, limits.ARM_READ):
            self._engine.group(subscription, group)
            start = f"/subscriptions/{subscription}/resourceGroups/{group}/".lower()
            return [rule for key, rule in sorted(self._rules.items()) if key.startswith(start)]

    def list_alerts(self, subscription: str, group: str, page: str = "") -> tuple[list[Json], str]:
        """Return a page of the alerts that fire in a group, "" for all, and what the next page is called."""
        with self._engine.request(subscription, limits.ARM_READ):
            start = f"/subscriptions/{subscription}/".lower()
            left: list[Json] = [
                alert
                for name, alert in sorted(self._alerts.items())
                if name > page
                and alert["id"].lower().startswith(start)
                and alert["properties"]["essentials"]["monitorCondition"] == "Fired"
                and group.lower() in ("", alert["properties"]["essentials"]["targetResourceGroup"].lower())
            ]
            shown = left[: self._engine.page_size]
            return shown, str(shown[-1]["name"]) if len(left) > len(shown) else ""

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
                for family, form, numbers in SERIES
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
            "capabilities": [
                {"name": "vCPUs", "value": str(cores_of(name))},
                *({"name": kind, "value": value} for kind, value in _disks(name).items()),
            ],
            "restrictions": [{"type": "Location", "values": [location], **reason}] if barred else [],
        }

    def list_compute_usages(self, subscription: str, location: str) -> list[Json]:
        """Return how many cores of each family are used in a region."""
        with self._engine.request(subscription, limits.ARM_READ):
            self._require(location)
            used = self._engine.quotas.used(self._engine.clusters, subscription, location)
            return [self._usage(subscription, location, name, count) for name, count in used.items()]

    def list_network_usages(self, subscription: str, location: str) -> list[Json]:
        """Return how many public addresses are used in a region: one for each cluster."""
        return self._of_clusters(subscription, location, _ADDRESSES)

    def list_cluster_usages(self, subscription: str, location: str) -> list[Json]:
        """Return how many clusters are in a region; shape: the quota preflight of Azure/telescope."""
        return self._of_clusters(subscription, location, (CLUSTERS,))

    def _of_clusters(self, subscription: str, location: str, names: Sequence[str]) -> list[Json]:
        with self._engine.request(subscription, limits.ARM_READ):
            self._require(location)
            count = self._engine.quotas.clusters(self._engine.clusters, subscription, location)
            return [self._usage(subscription, location, name, count) for name in names]

    def list_networks(self, subscription: str) -> list[Json]:
        """Return the virtual networks of a subscription, each of which a test created."""
        with self._engine.request(subscription, limits.ARM_READ):
            start = f"/subscriptions/{subscription}/".lower()
            return [network for name, network in self._networks.items() if name.lower().startswith(start)]

    def list_providers(self, subscription: str) -> list[Json]:
        """Return the resource providers, with whether a subscription has registered each."""
        with self._engine.request(subscription, limits.ARM_READ):
            return [
                {
                    "id": f"/subscriptions/{subscription}/providers/{name}",
                    "namespace": name,
                    "registrationPolicy": "RegistrationRequired",
                    "registrationState": self._state(name),
                    "resourceTypes": [],
                }
                for name in _PROVIDERS
            ]

    def list_features(self, subscription: str, namespace: str) -> list[Json]:
        """Return the features of a provider, with whether a subscription has registered each."""
        with self._engine.request(subscription, limits.ARM_READ):
            kind, start = "Microsoft.Features/providers", f"/subscriptions/{subscription}/providers"
            return [
                {
                    "id": f"{start}/{kind}/{namespace}/features/{name}",
                    "name": f"{namespace}/{name}",
                    "type": f"{kind}/features",
                    "properties": {"state": self._state(f"{namespace}/{name}")},
                }
                for name in _FEATURES.get(namespace.lower(), ())
            ]

    def _state(self, name: str) -> str:
        return "NotRegistered" if name.lower() in self._unregistered else "Registered"

    def _usage(self, subscription: str, location: str, name: str, used: int) -> dict[str, Any]:
        return {
            "name": {"value": name, "localizedValue": name},
            "currentValue": used,
            "limit": self._engine.quotas.of(subscription, location, name),
            "unit": "Count",
        }

    def _require(self, location: str) -> None:
        if region(location) not in REGIONS:
            message = f"The provided location '{location}' is not available."
            raise ArmError(400, "NoRegisteredProviderFound", message)


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


def alert_name(resource: str, rule: str) -> str:
    """Return the name of the alert of a rule about a resource."""
    return str(uuid5(NAMESPACE_URL, f"{resource}/{rule}"))
