"""The names of what is deployed, with every parameter as long as it may be."""

from __future__ import annotations

import re

import pytest

from tests.support.templates import GIVEN, resources

OF_STORAGE = r"\[format\('privatelink\.(blob|table)\.\{0\}', environment\(\)\.suffixes\.storage\)\]"
"""The name of a zone that only Azure knows: it has the domain of its storage."""
LIMITS = {
    "Microsoft.Authorization/locks": (90, r"[\w.()-]*[\w()-]"),
    "Microsoft.Authorization/roleAssignments": (36, r"\[guid\(.*\)\]|[0-9a-f-]+"),
    "Microsoft.Authorization/roleDefinitions": (36, r"[0-9a-f-]+"),
    "Microsoft.EventGrid/systemTopics": (50, r"[A-Za-z0-9-]{3,}"),
    "Microsoft.EventGrid/systemTopics/eventSubscriptions": (64, r"[A-Za-z0-9-]{3,}"),
    "Microsoft.Insights/components": (260, r"[^%&\\?/]+"),
    "Microsoft.Insights/diagnosticSettings": (260, r"[^*<>%&:\\?+/]+"),
    "Microsoft.Insights/metricAlerts": (260, r"[^*#&+:<>?@%{}\\/]+"),
    "Microsoft.Insights/scheduledQueryRules": (260, r"[^*<>%{}&:\\?/#]+"),
    "Microsoft.Insights/webtests": (260, r"[^\"%&<>\\?/]+"),
    "Microsoft.Insights/workbooks": (36, r"[0-9a-f-]+"),
    "Microsoft.KeyVault/vaults": (24, r"[A-Za-z][A-Za-z0-9-]{2,}"),
    "Microsoft.KeyVault/vaults/secrets": (127, r"[A-Za-z0-9-]+"),
    "Microsoft.ManagedIdentity/userAssignedIdentities": (128, r"[A-Za-z0-9][A-Za-z0-9_-]{2,}"),
    "Microsoft.Network/natGateways": (80, r"[A-Za-z0-9][\w.-]*\w"),
    "Microsoft.Network/networkSecurityGroups": (80, r"[A-Za-z0-9][\w.-]*\w"),
    "Microsoft.Network/privateDnsZones": (90, rf"privatelink\.[a-z.]+|{OF_STORAGE}"),
    "Microsoft.Network/privateDnsZones/virtualNetworkLinks": (120, r"roadstead|\[format\(.*'roadstead'\)\]"),
    "Microsoft.Network/privateEndpoints": (64, r"[A-Za-z0-9][\w.-]*\w"),
    "Microsoft.Network/privateEndpoints/privateDnsZoneGroups": (80, r"roadstead"),
    "Microsoft.Network/publicIPAddresses": (80, r"[A-Za-z0-9][\w.-]*\w"),
    "Microsoft.Network/virtualNetworks": (64, r"[A-Za-z0-9][\w.-]*\w"),
    "Microsoft.OperationalInsights/workspaces": (63, r"[A-Za-z0-9][A-Za-z0-9-]{2,}[A-Za-z0-9]"),
    "Microsoft.Resources/resourceGroups": (90, r"[\w.()-]*[\w()-]"),
    "Microsoft.ServiceBus/namespaces": (50, r"[A-Za-z][A-Za-z0-9-]{4,}[A-Za-z0-9]"),
    "Microsoft.ServiceBus/namespaces/networkRuleSets": (7, r"default"),
    "Microsoft.ServiceBus/namespaces/queues": (260, r"[A-Za-z0-9][\w./~-]*"),
    "Microsoft.Storage/storageAccounts": (24, r"[a-z0-9]{3,}"),
    "Microsoft.Storage/storageAccounts/blobServices": (7, r"default"),
    "Microsoft.Storage/storageAccounts/blobServices/containers": (63, r"[a-z0-9][a-z0-9-]{2,}"),
    "Microsoft.Storage/storageAccounts/managementPolicies": (7, r"default"),
    "Microsoft.Storage/storageAccounts/tableServices": (7, r"default"),
    "Microsoft.Storage/storageAccounts/tableServices/tables": (63, r"[A-Za-z][A-Za-z0-9]{2,}"),
    "Microsoft.Web/serverfarms": (60, r"[A-Za-z0-9-]+"),
    "Microsoft.Web/sites": (60, r"[A-Za-z0-9][A-Za-z0-9-]*[A-Za-z0-9]"),
    "Microsoft.Web/sites/config": (14, r"appsettings|authsettingsV2"),
}
"""The length and the characters of the last part of a name.

Source: "Naming rules and restrictions for Azure resources"
(learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules); for event subscriptions,
learn.microsoft.com/azure/templates/microsoft.eventgrid.
"""


@pytest.mark.parametrize("given", GIVEN)
def test_azure_takes_every_name_however_long_the_parameters_are(given: str) -> None:
    for found in resources(given):
        most, pattern = LIMITS[found.type]
        name = found.name if found.name.startswith("[") else found.name.rpartition("/")[2]
        assert re.fullmatch(pattern, name), found.id
        assert len(name) <= most or name.startswith("[guid("), found.id


def test_no_two_resources_of_one_place_have_one_name() -> None:
    """Resource Manager takes two if the condition of the second is that of the first, with not()."""
    for given in GIVEN:
        found: dict[str, list[str]] = {}
        for resource in resources(given):
            found.setdefault(resource.id.lower(), []).append(str(resource.whole.get("condition")))
        for conditions in found.values():
            assert len(conditions) == 1 or conditions == [
                f"[not({conditions[1].strip('[]')})]",
                conditions[1],
            ]
