"""Federated credentials and role assignments, in both implementations of the port."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from localcloud.azure.world.access.role_assignments import ROLES
from shared.cluster.failures.errors import Conflict, Dependency, InvalidManifest, QuotaExceeded, Refused
from shared.ports.azure import (
    DeleteFederatedCredential,
    DeleteIdentity,
    DeleteRoleAssignment,
    GetFederatedCredential,
    GetIdentity,
    GetRoleAssignment,
    ListFederatedCredentials,
    ListRoleAssignments,
    ListRoles,
    PutFederatedCredential,
    PutGroup,
    PutIdentity,
    PutRoleAssignment,
)
from shared.resource_ids import ManagedIdentityId, SubscriptionId
from tests.support.azure_ports import CLUSTER, SUBSCRIPTION, Azure

SHOP = ManagedIdentityId(SUBSCRIPTION, CLUSTER.resource_group, "shop")
HERE = SubscriptionId(SUBSCRIPTION)
SCOPE = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg/providers/Microsoft.ContainerRegistry/registries/r"
PRINCIPAL = "00000000-0000-0000-0000-0000000000aa"
ONE, TWO = "00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"


def credential(subject: str = "system:serviceaccount:shop:api") -> dict[str, Any]:
    issuer = "https://eastus.oic.prod-aks.azure.com/tenant/cluster/"
    return {"properties": {"issuer": issuer, "subject": subject, "audiences": ["api://AzureADTokenExchange"]}}


def assignment(role: str = "AcrPull", **properties: str) -> dict[str, Any]:
    definition = (
        f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/{ROLES[role]}"
    )
    return {"properties": {"roleDefinitionId": definition, "principalId": PRINCIPAL, **properties}}


def with_shop(azure: Azure) -> Azure:
    azure.call(PutGroup(CLUSTER.group, {"location": "westeurope"}))
    azure.world.identities.put_identity(
        SUBSCRIPTION, CLUSTER.resource_group, "shop", {"location": "westeurope"}
    )
    return azure


def test_a_federated_credential_is_created_shown_changed_and_deleted(azure: Azure) -> None:
    with_shop(azure)
    assert azure.call(PutFederatedCredential(SHOP, "api", credential())).created
    shown = azure.call(GetFederatedCredential(SHOP, "api"))
    assert shown is not None
    assert (shown["name"], shown["properties"]) == ("api", credential()["properties"])
    assert not azure.call(
        PutFederatedCredential(SHOP, "api", credential("system:serviceaccount:a:b"))
    ).created
    (listed,) = azure.call(ListFederatedCredentials(SHOP)) or ()
    assert listed["properties"]["subject"] == "system:serviceaccount:a:b"
    assert azure.call(DeleteFederatedCredential(SHOP, "api")).request_id
    azure.call(DeleteFederatedCredential(SHOP, "api"))
    assert azure.call(GetFederatedCredential(SHOP, "api")) is None


def test_an_identity_is_created_tagged_again_and_deleted_with_its_credentials(azure: Azure) -> None:
    with_shop(azure)
    cart = replace(SHOP, name="cart")
    body = {"location": "eastus", "tags": {"a": "b"}}
    assert azure.call(PutIdentity(cart, body)).created
    shown = azure.call(GetIdentity(cart))
    assert shown is not None
    assert (shown["tags"], set(shown["properties"])) == ({"a": "b"}, {"clientId", "principalId", "tenantId"})
    assert not azure.call(PutIdentity(cart, {**body, "tags": {"a": "c"}})).created
    again = azure.call(GetIdentity(cart))
    assert again is not None
    assert (again["tags"], again["properties"]) == ({"a": "c"}, shown["properties"])
    azure.call(PutFederatedCredential(cart, "api", credential()))
    azure.call(DeleteIdentity(cart))
    azure.call(DeleteIdentity(cart))
    assert azure.call(GetIdentity(cart)) is None
    assert azure.call(ListFederatedCredentials(cart)) is None
    with pytest.raises(Dependency):
        azure.call(PutIdentity(replace(cart, resource_group="nowhere"), body))


def test_an_identity_that_does_not_exist_has_nothing_and_takes_nothing(azure: Azure) -> None:
    with_shop(azure)
    none = replace(SHOP, name="none")
    assert azure.call(GetIdentity(none)) is None
    assert azure.call(ListFederatedCredentials(none)) is None
    assert azure.call(GetFederatedCredential(none, "api")) is None
    azure.call(DeleteFederatedCredential(none, "api"))
    elsewhere = replace(SHOP, resource_group="nowhere")
    assert azure.call(ListFederatedCredentials(elsewhere)) is None
    with pytest.raises(Dependency):
        azure.call(PutFederatedCredential(none, "api", credential()))
    shop = azure.call(GetIdentity(SHOP))
    assert shop is not None
    assert shop["properties"]["principalId"]


def test_an_identity_takes_twenty_federated_credentials_and_each_service_account_once(azure: Azure) -> None:
    with_shop(azure)
    for number in range(20):
        azure.call(
            PutFederatedCredential(SHOP, f"api-{number}", credential(f"system:serviceaccount:{number}:a"))
        )
    with pytest.raises(QuotaExceeded, match="Too many Federated Identity Credentials") as refused:
        azure.call(PutFederatedCredential(SHOP, "one-more", credential("system:serviceaccount:more:a")))
    assert refused.value.entry == "access/TooManyFederatedCredentials"
    azure.call(PutFederatedCredential(SHOP, "api-0", credential("system:serviceaccount:changed:a")))
    with pytest.raises(Refused, match="already exists"):
        azure.call(PutFederatedCredential(SHOP, "api-1", credential("system:serviceaccount:2:a")))


def test_two_writes_at_once_to_an_identity_are_a_conflict(azure: Azure) -> None:
    with_shop(azure).world.identities.others_write(SHOP.subscription, SHOP.resource_group, SHOP.name)
    with pytest.raises(Conflict, match="written concurrently"):
        azure.call(PutFederatedCredential(SHOP, "api", credential()))
    azure.call(PutFederatedCredential(SHOP, "api", credential()))


def test_a_role_is_found_by_its_name_assigned_listed_and_removed(azure: Azure) -> None:
    (role,) = azure.call(ListRoles(HERE, "acrpull"))
    assert role["name"] == ROLES["AcrPull"]
    assert azure.call(ListRoles(HERE, "No Such Role")) == []
    assert azure.call(PutRoleAssignment(HERE, SCOPE, ONE, assignment(description="why"))).created
    assert not azure.call(PutRoleAssignment(HERE, SCOPE, ONE, assignment(description="why"))).created
    shown = azure.call(GetRoleAssignment(HERE, SCOPE, ONE))
    assert azure.call(ListRoleAssignments(HERE, PRINCIPAL)) == [shown]
    assert shown is not None
    assert shown["properties"]["scope"] == SCOPE
    assert azure.call(ListRoleAssignments(HERE, ONE)) == []
    assert azure.call(ListRoleAssignments(HERE)) == [shown]
    azure.call(DeleteRoleAssignment(HERE, SCOPE, ONE))
    azure.call(DeleteRoleAssignment(HERE, SCOPE, ONE))
    assert azure.call(GetRoleAssignment(HERE, SCOPE, ONE)) is None


def test_a_role_assignment_is_there_once_and_never_changes(azure: Azure) -> None:
    azure.call(PutRoleAssignment(HERE, SCOPE, ONE, assignment()))
    with pytest.raises(Conflict, match="already exists"):
        azure.call(PutRoleAssignment(HERE, SCOPE, TWO, assignment()))
    with pytest.raises(InvalidManifest, match="not allowed to be updated"):
        azure.call(PutRoleAssignment(HERE, SCOPE, ONE, assignment("Reader")))


def test_a_principal_that_is_not_in_the_directory_yet_may_be_there_soon(azure: Azure) -> None:
    azure.world.roles.unknown_principals.add(PRINCIPAL)
    with pytest.raises(Dependency, match="does not exist in the directory"):
        azure.call(PutRoleAssignment(HERE, SCOPE, ONE, assignment()))
    azure.call(PutRoleAssignment(HERE, SCOPE, ONE, assignment(principalType="ServicePrincipal")))


def test_a_subscription_takes_so_many_role_assignments(azure: Azure) -> None:
    azure.world.roles.most = 1
    azure.call(PutRoleAssignment(HERE, SCOPE, ONE, assignment()))
    with pytest.raises(QuotaExceeded):
        azure.call(PutRoleAssignment(HERE, SCOPE, TWO, assignment("Reader")))
