"""The networks of a fleet: who is reached from where, what exists already, and what a company gives."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any

import pytest

from shared.configuration.settings import App
from tests.support.templates import (
    EVERYTHING,
    EXAMPLE,
    EXISTING,
    GIVEN,
    PRIVATE,
    REQUIRED,
    Resource,
    assignments,
    of_type,
    resources,
    settings_of,
)

OUTBOUND = EVERYTHING
SHIELDED = (
    "Microsoft.Storage/storageAccounts",
    "Microsoft.ServiceBus/namespaces",
    "Microsoft.KeyVault/vaults",
)
SERVICES = {"blob": 3, "table": 1, "namespace": 1, "vault": 1}
"""Through how many endpoints the apps reach a service: every host has blobs, one account has the tables."""


def endpoints(given: str) -> dict[str, list[str]]:
    """Return the ids of what is reached through private endpoints, by service."""
    found: dict[str, list[str]] = {}
    for endpoint in of_type("Microsoft.Network/privateEndpoints", given):
        (link,) = endpoint.properties["privateLinkServiceConnections"]
        (group,) = link["properties"]["groupIds"]
        found.setdefault(group, []).append(link["properties"]["privateLinkServiceId"])
    return found


def site(app: App, given: str) -> Any:
    """Return the properties of an app."""
    (found,) = [
        found.properties
        for found in of_type("Microsoft.Web/sites", given)
        if any(identity.endswith(f"-{app}") for identity in found.whole["identity"]["userAssignedIdentities"])
    ]
    return found


@pytest.mark.parametrize("given", [REQUIRED, EXAMPLE])
def test_without_a_network_nothing_of_one_is_created(given: str) -> None:
    assert [found for found in resources(given) if found.type.startswith("Microsoft.Network/")] == []
    for app in of_type("Microsoft.Web/sites", given):
        assert not app.properties.get("virtualNetworkSubnetId")


@pytest.mark.parametrize("given", [OUTBOUND, PRIVATE, EXISTING])
def test_every_app_calls_others_from_the_subnet_of_the_apps(given: str) -> None:
    subnets = {found.properties["virtualNetworkSubnetId"] for found in of_type("Microsoft.Web/sites", given)}
    assert len(subnets) == 1
    assert "appsSubnetId" in str(subnets) or "/subnets/fleet-apps" in str(subnets)


def test_a_network_that_goes_out_alone_needs_no_premium_bus_and_no_endpoint() -> None:
    (bus,) = of_type("Microsoft.ServiceBus/namespaces", OUTBOUND)
    assert bus.whole["sku"]["name"] == "Standard"
    assert endpoints(OUTBOUND) == {}
    for kind in SHIELDED:
        assert {found.properties["publicNetworkAccess"] for found in of_type(kind, OUTBOUND)} == {"Enabled"}


@pytest.mark.parametrize("given", [PRIVATE, EXISTING])
def test_in_a_private_network_every_store_is_reached_through_its_endpoint_alone(given: str) -> None:
    (bus,) = of_type("Microsoft.ServiceBus/namespaces", given)
    assert bus.whole["sku"] == {"name": "Premium", "tier": "Premium", "capacity": 1}
    shielded = [found for kind in SHIELDED for found in of_type(kind, given)]
    assert {found.properties["publicNetworkAccess"] for found in shielded} == {"Disabled"}
    reached = endpoints(given)
    assert {group: len(found) for group, found in reached.items() if group != "sites"} == SERVICES
    stores = {found for group, ids in reached.items() if group != "sites" for found in ids}
    assert stores == {found.id for found in shielded}
    (table, *_) = of_type("Microsoft.Storage/storageAccounts/tableServices/tables", given)
    assert table.id.startswith(reached["table"][0])


@pytest.mark.parametrize("given", [PRIVATE, EXISTING])
def test_azure_s_own_services_pass_into_a_private_network(given: str) -> None:
    """Source: learn.microsoft.com/azure/service-bus-messaging/private-link-service, for Event Grid."""
    (rules,) = of_type("Microsoft.ServiceBus/namespaces/networkRuleSets", given)
    assert rules.properties["trustedServiceAccessEnabled"] is True
    for kind in ("Microsoft.Storage/storageAccounts", "Microsoft.KeyVault/vaults"):
        for found in of_type(kind, given):
            assert found.properties["networkAcls"] == {"bypass": "AzureServices", "defaultAction": "Deny"}


def test_a_new_network_has_a_zone_for_every_service_that_is_linked_to_it() -> None:
    zones = [found.name for found in of_type("Microsoft.Network/privateDnsZones", PRIVATE)]
    words = ("blob", "table", "servicebus", "vaultcore", "azurewebsites")
    assert len(zones) == len(words)
    assert all(any(word in zone for zone in zones) for word in words)
    (network,) = of_type("Microsoft.Network/virtualNetworks", PRIVATE)
    links = of_type("Microsoft.Network/privateDnsZones/virtualNetworkLinks", PRIVATE)
    assert len(links) == len(zones)
    assert {link.properties["virtualNetwork"]["id"] for link in links} == {network.id}
    groups = of_type("Microsoft.Network/privateEndpoints/privateDnsZoneGroups", PRIVATE)
    assert len(groups) == len(of_type("Microsoft.Network/privateEndpoints", PRIVATE))


def test_a_new_network_has_room_for_the_apps_and_one_address_that_goes_out() -> None:
    """Azure may use 40 addresses for each app, and takes five of a subnet (functions-networking-options)."""
    for given in (OUTBOUND, PRIVATE):
        (network,) = of_type("Microsoft.Network/virtualNetworks", given)
        subnets = {found["name"]: found["properties"] for found in network.properties["subnets"]}
        assert all("_" not in name for name in subnets), "Flex Consumption takes no such name"
        apps = subnets["apps"]
        assert ip_network(apps["addressPrefix"]).num_addresses >= 40 * len(App) + 5
        assert [found["properties"]["serviceName"] for found in apps["delegations"]] == [
            "Microsoft.App/environments"
        ]
        (gateway,) = of_type("Microsoft.Network/natGateways", given)
        assert apps["natGateway"] == {"id": gateway.id}
        assert len(gateway.properties["publicIpAddresses"]) == 1
        ranges = [ip_network(found["addressPrefix"]) for found in subnets.values()]
        assert not ranges[0].overlaps(ranges[1])
        assert not subnets["endpoints"].get("delegations")
        assert ip_network(subnets["endpoints"]["addressPrefix"]).num_addresses >= 9 + 5


def test_a_private_entrance_is_an_endpoint_of_each_app_and_nobody_outside_is_asked_to_test_it() -> None:
    apps = of_type("Microsoft.Web/sites", PRIVATE)
    assert {app.properties["publicNetworkAccess"] for app in apps} == {"Disabled"}
    assert set(endpoints(PRIVATE)["sites"]) == {app.id for app in apps}
    assert of_type("Microsoft.Insights/webtests", PRIVATE) == []
    assert settings_of(App.CONTROL, PRIVATE)["PLAN_SCHEDULE"].endswith(" */5 * * * *"), "it looks for commits"


def test_a_public_entrance_takes_the_chosen_addresses_and_the_other_apps_nobody() -> None:
    control = site(App.CONTROL, EXISTING)["siteConfig"]
    allowed = {rule["ipAddress"]: rule["action"] for rule in control["ipSecurityRestrictions"]}
    chosen = ("192.30.252.0/22", "203.0.113.0/24", "ApplicationInsightsAvailability")
    assert allowed == dict.fromkeys(chosen, "Allow")
    assert control["ipSecurityRestrictionsDefaultAction"] == "Deny"
    for app in (App.WORKER, App.DELETER):
        found = site(app, EXISTING)["siteConfig"]
        assert {rule["action"] for rule in found["ipSecurityRestrictions"]} == {"Deny"}
        assert found["ipSecurityRestrictionsDefaultAction"] == "Deny"
    for given in (REQUIRED, OUTBOUND):
        assert site(App.CONTROL, given)["siteConfig"]["ipSecurityRestrictionsDefaultAction"] == "Allow"
    for app in App:
        assert site(app, EXISTING)["siteConfig"]["scmIpSecurityRestrictionsUseMain"] is False, "to publish"


def test_what_exists_is_used_and_not_written() -> None:
    kinds = {found.type for found in resources(EXISTING) if found.type.startswith("Microsoft.Network/")}
    assert kinds == {
        "Microsoft.Network/privateEndpoints",
        "Microsoft.Network/privateEndpoints/privateDnsZoneGroups",
    }
    groups = [found.name for found in of_type("Microsoft.Resources/resourceGroups", EXISTING)]
    assert "rg-platform-fleet" not in groups
    for endpoint in of_type("Microsoft.Network/privateEndpoints", EXISTING):
        assert endpoint.properties["subnet"]["id"].endswith("/subnets/fleet-endpoints")
    for group in of_type("Microsoft.Network/privateEndpoints/privateDnsZoneGroups", EXISTING):
        (zone,) = group.properties["privateDnsZoneConfigs"]
        assert "/resourceGroups/network/" in zone["properties"]["privateDnsZoneId"]


def test_names_of_a_company_are_taken_and_its_tags_are_on_everything_that_has_tags() -> None:
    named = {found.name for found in resources(EXISTING)}
    assert {"app-platform-fleet", "sbns-platform-fleet", "kv-platform-fleet", "stplatformfleet"} <= named
    assert {"law-platform-fleet", "ai-platform-fleet", "app-platform-fleet-deleter"} <= named
    for given, tags in (
        (EXISTING, {"costCenter": "4711", "owner": "platform"}),
        (OUTBOUND, {"team": "platform"}),
    ):
        placed = [found for found in resources(given) if "location" in found.whole]
        assert len(placed) > 20
        assert [found.id for found in placed if not tags.items() <= found.whole.get("tags", {}).items()] == []


def test_the_owner_of_the_target_subscriptions_may_give_the_roles_instead() -> None:
    def of_targets(given: str) -> list[Resource]:
        return [
            found
            for found in of_type("Microsoft.Authorization/roleDefinitions", given)
            if "/resourceGroups/" not in found.id
        ]

    own = "00000000-0000-0000-0000-000000000003"
    assert [found.id for found in of_targets(EXISTING) if own in found.id] == []
    assert [found.scope for found in assignments(EXISTING) if own in found.scope] == []
    assert of_targets(REQUIRED)


@pytest.mark.parametrize("given", GIVEN)
def test_every_app_has_the_settings_and_the_roles_of_its_data_in_every_network(given: str) -> None:
    for app in App:
        ours = set(settings_of(app, REQUIRED)) - {"GITHUB_TOKEN"}  # or those of a GitHub App
        assert ours <= set(settings_of(app, given))
    data = {(found.app, found.role) for found in assignments(REQUIRED) if "/providers/" in found.scope}
    assert data <= {(found.app, found.role) for found in assignments(given)}
