"""What the app may do with resources that manifests name, and what a subscription has registered."""

from __future__ import annotations

from typing import Any

import pytest

from shared.azure.availability.permissions import (
    Grant,
    Need,
    assigned,
    features_of,
    grants_of,
    lacking,
    needs_of,
    registered_features,
    registered_providers,
    roles_of,
    unregistered,
)
from shared.language.desired import Desired
from shared.language.model.cluster.spec import ClusterSpec
from tests.support.one_cluster import SUBSCRIPTION

GROUP = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/net"
SUBNET = f"{GROUP}/providers/Microsoft.Network/virtualNetworks/hub/subnets/nodes"
IDENTITY = f"{GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/aks"
JOIN = "Microsoft.Network/virtualNetworks/subnets/join/action"
NETWORK_CONTRIBUTOR = "4d97b98b-1d4f-4787-a291-c67834d212e7"


def spec(pool: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    system = {"name": "system", "mode": "System", "vmSize": "Standard_D4s_v5", "count": 1}
    return {
        "subscriptionId": SUBSCRIPTION,
        "resourceGroup": "rg",
        "location": "eastus",
        "kubernetesVersion": "1.36",
        "nodePools": [system | (pool or {})],
        "flux": {"repository": "https://github.com/example/fleet", "path": "./platform"},
        **more,
    }


def needed(pool: dict[str, Any] | None = None, **more: Any) -> set[tuple[str, str]]:
    wanted = Desired({"name": "one", "spec": spec(pool, **more)})
    return {(need.action, need.resource) for need in needs_of(wanted)}


def test_a_cluster_that_names_nothing_needs_nothing() -> None:
    assert needed() == set()


def test_each_resource_needs_the_action_of_microsofts_page() -> None:
    disks = f"{GROUP}/providers/Microsoft.Compute/diskEncryptionSets/disks"
    named = needed(
        {"vnetSubnetID": SUBNET},
        identity={"type": "UserAssigned", "userAssignedIdentity": IDENTITY},
        diskEncryptionSetID=disks,
    )
    assert named == {
        (JOIN, SUBNET),
        ("Microsoft.ManagedIdentity/userAssignedIdentities/assign/action", IDENTITY),
        ("Microsoft.Compute/diskEncryptionSets/read", disks),
    }


def test_what_the_app_writes_at_a_resource_needs_the_right_to_write_it() -> None:
    credentials = [{"name": "shop", "identity": IDENTITY, "namespace": "shop", "serviceAccount": "shop"}]
    roles = [{"name": "net", "role": "Network Contributor", "scope": SUBNET, "identity": IDENTITY}]
    assert needed(federatedCredentials=credentials, roleAssignments=roles) == {
        ("Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials/write", IDENTITY),
        ("Microsoft.Authorization/roleAssignments/write", SUBNET),
    }


@pytest.mark.parametrize(
    ("scope", "actions", "excepted", "allowed"),
    [
        (SUBNET, ("Microsoft.Network/*",), (), True),
        (SUBNET.upper().replace("/SUBSCRIPTIONS", "/subscriptions"), (JOIN.upper(),), (), True),
        (GROUP, ("*",), (), True),
        (f"{GROUP}2", ("*",), (), False),
        (GROUP[:-1], ("*",), (), False),
        ("/", ("*/action",), (), True),
        ("/providers/Microsoft.Management/managementGroups/all", ("*",), (), True),
        (GROUP, ("*/read",), (), False),
        (GROUP, ("Microsoft.Network/virtualNetworks/*/join/action",), (), True),
        (GROUP, ("Microsoft.Network/virtualNetworks/subnets/*/join/action",), (), True),
        (GROUP, ("Microsoft.Network/virtualNetworks/*/subnets/join",), (), False),
        (GROUP, ("*",), ("Microsoft.Network/*/action",), False),
    ],
)
def test_a_role_counts_for_its_scope_and_below_without_what_it_leaves_out(
    scope: str, actions: tuple[str, ...], excepted: tuple[str, ...], *, allowed: bool
) -> None:
    grant = Grant(scope, actions, excepted)
    short = lacking([Need("one", JOIN, SUBNET)], {(SUBSCRIPTION, ""): [grant]})
    shown = "virtualNetworks/hub/subnets/nodes of the resource group net"
    assert short == ([] if allowed else [f"permission: the worker lacks {JOIN} on {shown} (one)"])


def test_of_a_subscription_that_was_not_read_nothing_is_said() -> None:
    assert lacking([Need("one", JOIN, SUBNET)], {}) == []


def test_assignments_are_joined_with_their_roles_and_an_unknown_role_is_no_shortage() -> None:
    role = {
        "name": NETWORK_CONTRIBUTOR.upper(),
        "properties": {"permissions": [{"actions": ["Microsoft.Network/*"]}]},
    }
    start = f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/"
    documents = [
        {"properties": {"scope": GROUP, "roleDefinitionId": f"{start}{name}"}}
        for name in (NETWORK_CONTRIBUTOR, "another")
    ]
    grants = grants_of(assigned(documents), roles_of([role]))
    assert grants == (Grant(GROUP, ("Microsoft.Network/*",)), Grant(GROUP, ("*",)))


def test_what_is_not_registered_is_said_with_its_clusters() -> None:
    providers = registered_providers(
        [
            {"namespace": "Microsoft.ContainerService", "registrationState": "Registered"},
            {"namespace": "Microsoft.PolicyInsights", "registrationState": "NotRegistered"},
        ]
    )
    features = registered_features(
        [{"name": "Microsoft.Compute/EncryptionAtHost", "properties": {"state": "NotRegistered"}}]
    )
    wanted = {"enableEncryptionAtHost": True}
    specs = {
        "one": ClusterSpec.model_validate(spec(wanted, addonProfiles={"azurepolicy": {"enabled": True}})),
        "two": ClusterSpec.model_validate(spec(wanted)),
    }
    start = f"registration: the subscription {SUBSCRIPTION} has not registered the"
    assert unregistered(SUBSCRIPTION, specs, providers, {"Microsoft.Compute": features}) == [
        f"{start} feature Microsoft.Compute/EncryptionAtHost (one, two)",
        f"{start} resource provider Microsoft.PolicyInsights (one)",
    ]
    assert unregistered(SUBSCRIPTION, specs, None, {}) == []


@pytest.mark.parametrize(
    ("pool", "more", "feature"),
    [
        ({"availabilityZones": ["auto"]}, {}, "Microsoft.Compute/VmssAutomaticZonePlacement"),
        (
            {},
            {
                "networkProfile": {
                    "outboundType": "managedNATGateway",
                    "natGatewayProfile": {"sku": "StandardV2"},
                }
            },
            "Microsoft.ContainerService/ManagedNATGatewayV2Preview",
        ),
        (
            {},
            {"azure": {"properties": {"nodeDisruptionProfile": {"nodeDisruptionPolicy": "AllowOnly"}}}},
            "Microsoft.ContainerService/NodeDisruptionProfile",
        ),
        ({}, {}, ""),
    ],
)
def test_a_preview_needs_the_feature_that_its_page_names(
    pool: dict[str, Any], more: dict[str, Any], feature: str
) -> None:
    assert features_of(ClusterSpec.model_validate(spec(pool, **more))) == ((feature,) if feature else ())
