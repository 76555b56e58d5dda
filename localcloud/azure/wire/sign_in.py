"""What a client asks before it works with resources: the cloud's endpoints, tenants, subscriptions, regions.

``az cloud register --endpoint-resource-manager`` reads ``/metadata/endpoints``, and ``az login`` lists
tenants and subscriptions.
"""

from __future__ import annotations

from typing import Any

from localcloud.azure.world.azure_world import AzureWorld
from localcloud.azure.world.catalog import TENANT


def endpoints(base: str) -> dict[str, Any]:
    """Return the endpoints of the cloud, of which it has Resource Manager only; ``base`` is its URL."""
    nowhere = f"{base}/_local/no-such-service/"
    return {
        "name": "RoadsteadLocal",
        "portal": nowhere,
        "authentication": {
            "loginEndpoint": base,
            "audiences": [base],
            "tenant": TENANT,
            "identityProvider": "AAD",
        },
        "graphAudience": nowhere,
        "graph": nowhere,
        "resourceManager": base,
        "sqlManagement": nowhere,
        "gallery": nowhere,
        "batch": nowhere,
        "microsoftGraphResourceId": nowhere,
        "activeDirectoryDataLake": nowhere,
        "logAnalyticsResourceId": nowhere,
        "ossrDbmsResourceId": nowhere,
        "suffixes": {"storage": "local.invalid", "keyVaultDns": "vault.local.invalid"},
    }


def tenants() -> dict[str, Any]:
    """Return the one tenant."""
    tenant = {"id": f"/tenants/{TENANT}", "tenantId": TENANT, "displayName": "Local", "countryCode": "NL"}
    return {"value": [tenant]}


def subscriptions(world: AzureWorld) -> dict[str, Any]:
    """Return the subscriptions."""
    return {"value": [subscription(identifier) for identifier in world.subscriptions]}


def subscription(identifier: str) -> dict[str, Any]:
    """Return one subscription."""
    return {
        "id": f"/subscriptions/{identifier}",
        "subscriptionId": identifier,
        "tenantId": TENANT,
        "displayName": f"Local {identifier[-4:]}",
        "state": "Enabled",
        "authorizationSource": "RoleBased",
        "subscriptionPolicies": {
            "locationPlacementId": "Public_2014-09-01",
            "quotaId": "Internal_2014-09-01",
            "spendingLimit": "Off",
        },
        "managedByTenants": [],
    }
