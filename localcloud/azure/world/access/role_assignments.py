"""Role definitions and role assignments of Azure.

Sources: authorization-RoleAssignmentsCalls.json and authorization-RoleDefinitionsCalls.json 2022-04-01 of
github.com/Azure/azure-rest-api-specs (shapes, forms of a filter); learn.microsoft.com/azure/
role-based-access-control/troubleshooting (4,000 in a subscription, PrincipalNotFound for a new principal
without its type) and built-in-roles (ids). RoleAssignmentExists is in Azure/azure-cli#8568, the text of
RoleAssignmentUpdateNotPermitted in Azure/Azure-Landing-Zones#2040, that of PrincipalNotFound in
Azure-Samples/azure-search-openai-demo#9. The scope is not looked up: only clusters, groups and identities
exist here. Assignments of a principal that no longer exists remain, as in Azure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID, uuid5

from localcloud.azure.world import request_limits as limits
from localcloud.azure.world.arm_errors import ArmError
from localcloud.azure.world.arm_resources import WriteAnswer
from localcloud.azure.world.azure_engine import AzureEngine
from localcloud.azure.world.catalog import TENANT
from localcloud.common.json_copy import copied
from shared.json_tree import Json

MOST = 4000
ROLES = {
    "AcrPull": "7f951dda-4ed3-4680-a7ca-43fe172d538d",
    "Contributor": "b24988ac-6180-42a0-ab88-20f7382dd24c",
    "Key Vault Secrets User": "4633458b-17de-408a-b874-0445c86b69e6",
    "Managed Identity Operator": "f1a07417-d97a-45cb-824c-7a7467783830",
    "Network Contributor": "4d97b98b-1d4f-4787-a291-c67834d212e7",
    "Private DNS Zone Contributor": "b12aa53e-6015-4669-85d0-8515ebb3ae7f",
    "Reader": "acdd72a7-3385-48ef-bd42-f606fba81ae7",
}
_ACTIONS = {
    "AcrPull": ["Microsoft.ContainerRegistry/registries/pull/read"],
    "Contributor": ["*"],
    "Key Vault Secrets User": [],
    "Managed Identity Operator": [
        "Microsoft.ManagedIdentity/userAssignedIdentities/*/read",
        "Microsoft.ManagedIdentity/userAssignedIdentities/*/assign/action",
        "Microsoft.Authorization/*/read",
        "Microsoft.Insights/alertRules/*",
        "Microsoft.Resources/subscriptions/resourceGroups/read",
        "Microsoft.Resources/deployments/*",
        "Microsoft.Support/*",
    ],
    "Network Contributor": [
        "Microsoft.Authorization/*/read",
        "Microsoft.Insights/alertRules/*",
        "Microsoft.Network/*",
        "Microsoft.ResourceHealth/availabilityStatuses/read",
        "Microsoft.Resources/deployments/*",
        "Microsoft.Resources/subscriptions/resourceGroups/read",
        "Microsoft.Support/*",
    ],
    "Private DNS Zone Contributor": ["Microsoft.Network/privateDnsZones/*", "Microsoft.Authorization/*/read"],
    "Reader": ["*/read"],
}
_EXCEPTED = {"Contributor": ["Microsoft.Authorization/*/Delete", "Microsoft.Authorization/*/Write"]}
"""What the roles allow and leave out, from built-in-roles; without their data actions."""
_FIXED = ("principalId", "roleDefinitionId", "scope")
_BY_PRINCIPAL = re.compile(r"principalId eq '([0-9a-fA-F-]{36})'")
_WITH_GROUPS = re.compile(r"assignedTo\('([0-9a-fA-F-]{36})'\)")
_BY_NAME = re.compile(r"roleName eq '([^']+)'")


class RoleAssignments:
    """The role assignments of every subscription, at subscriptions, groups and resources."""

    def __init__(self, engine: AzureEngine) -> None:
        self._engine = engine
        self._assignments: dict[str, dict[str, Any]] = {}
        self.unknown_principals: set[str] = set()
        """Principals that are not in every directory yet."""
        self.most = MOST
        self.apps: Mapping[str, Sequence[str]] = {}
        """The actions of the custom role that each principal has in every subscription."""

    def peek_assignments(self) -> list[Json]:
        """Return all role assignments; counts as no request."""
        with self._engine.lock:
            return list(self._assignments.values())

    def list_grants(self, subscription: str, principal: str) -> list[Json]:
        """Return the role assignments of a principal and its groups: nobody is in a group here."""
        found = self.list_role_assignments(subscription, principal)
        if principal.lower() not in self.apps:
            return found
        scope, role = f"/subscriptions/{subscription}", _custom(subscription, principal)
        kind = "Microsoft.Authorization/roleAssignments"
        properties = {
            "principalId": principal,
            "principalType": "ServicePrincipal",
            "roleDefinitionId": f"{scope}/providers/Microsoft.Authorization/roleDefinitions/{role}",
            "scope": scope,
        }
        name = str(uuid5(UUID(role), "assignment"))
        own = {"id": f"{scope}/providers/{kind}/{name}", "name": name, "type": kind, "properties": properties}
        return [*found, own]

    def list_role_definitions(self, subscription: str) -> list[Json]:
        """Return every role."""
        with self._engine.request(subscription, limits.ARM_READ):
            built_in = [_definition(subscription, name, key) for name, key in ROLES.items()]
            return [*built_in, *(self._of_app(subscription, principal) for principal in self.apps)]

    def _of_app(self, subscription: str, principal: str) -> Json:
        """Return the definition of the custom role of a principal."""
        scope, kind = f"/subscriptions/{subscription}", "Microsoft.Authorization/roleDefinitions"
        role = _custom(subscription, principal)
        properties = {
            "roleName": f"custom {role}",
            "type": "CustomRole",
            "assignableScopes": [scope],
            "permissions": [{"actions": [*self.apps[principal]], "notActions": []}],
        }
        return {
            "id": f"{scope}/providers/{kind}/{role}",
            "name": role,
            "type": kind,
            "properties": properties,
        }

    def list_roles(self, subscription: str, role: str) -> list[Json]:
        """Return the role definitions with a name, which ignores the case of letters."""
        with self._engine.request(subscription, limits.ARM_READ):
            found = [(name, key) for name, key in ROLES.items() if name.lower() == role.lower()]
            return [_definition(subscription, name, key) for name, key in found]

    def list_role_assignments(self, subscription: str, principal: str) -> list[Json]:
        """Return the role assignments of a principal, or of everybody."""
        with self._engine.request(subscription, limits.ARM_READ):
            below = f"/subscriptions/{subscription}".lower()
            return [
                copied(item)
                for key, item in sorted(self._assignments.items())
                if key.startswith(f"{below}/") and (not principal or _of(item, principal))
            ]

    def get_role_assignment(self, subscription: str, scope: str, name: str) -> Json:
        """Return a role assignment."""
        with self._engine.request(subscription, limits.ARM_READ):
            found = self._assignments.get(_key(scope, name))
            if found is None:
                message = f"The role assignment '{name}' is not found."
                raise ArmError(404, "RoleAssignmentNotFound", message)
            return copied(found)

    def put_role_assignment(self, subscription: str, scope: str, name: str, body: Json) -> WriteAnswer:
        """Create a role assignment, at once; only its description can change later."""
        with self._engine.request(subscription, limits.ARM_WRITE):
            _require_guid(name)
            properties = self._properties(scope, body.get("properties") or {})
            before = self._assignments.get(_key(scope, name))
            if before is None:
                self._check_new(subscription, properties)
            elif any(before["properties"][key].lower() != properties[key].lower() for key in _FIXED):
                message = "Tenant ID, application ID, principal ID, and scope are not allowed to be updated."
                raise ArmError(400, "RoleAssignmentUpdateNotPermitted", message)
            resource = f"{scope}/providers/Microsoft.Authorization/roleAssignments/{name}"
            kind = "Microsoft.Authorization/roleAssignments"
            document = {"id": resource, "name": name, "type": kind, "properties": properties}
            return self._engine.store("put-role-assignment", self._assignments, _key(scope, name), document)

    def delete_role_assignment(self, subscription: str, scope: str, name: str) -> WriteAnswer:
        """Delete a role assignment, at once."""
        with self._engine.request(subscription, limits.ARM_DELETE):
            resource = f"{scope}/providers/Microsoft.Authorization/roleAssignments/{name}"
            key = _key(scope, name)
            return self._engine.drop("delete-role-assignment", self._assignments, key, resource)

    def _properties(self, scope: str, given: Json) -> dict[str, Any]:
        principal, role = str(given.get("principalId") or ""), str(given.get("roleDefinitionId") or "")
        _require_guid(principal)
        if role.rpartition("/")[2].lower() not in ROLES.values():
            message = f"The specified role definition with ID '{role.rpartition('/')[2]}' does not exist."
            raise ArmError(404, "RoleDefinitionDoesNotExist", message)
        if "principalType" not in given and principal.lower() in self.unknown_principals:
            message = (
                f"Principal {principal} does not exist in the directory {TENANT}. Check that you have the "
                "correct principal ID. If you are creating this principal and then immediately assigning a "
                "role, this error might be related to a replication delay. In this case, set the role "
                "assignment principalType property to a value, such as ServicePrincipal, User, or Group. "
                "See https://aka.ms/docs-principaltype"
            )
            raise ArmError(400, "PrincipalNotFound", message)
        return {"principalType": "ServicePrincipal", **given, "scope": scope}

    def _check_new(self, subscription: str, properties: Json) -> None:
        below = f"/subscriptions/{subscription}/".lower()
        here = [assignment for key, assignment in self._assignments.items() if key.startswith(below)]
        for document in here:
            if all(document["properties"][key].lower() == properties[key].lower() for key in _FIXED):
                found = f"The ID of the existing role assignment is {UUID(document['name']).hex}."
                message = f"The role assignment already exists. {found}"
                raise ArmError(409, "RoleAssignmentExists", message)
        if len(here) >= self.most:
            message = "No more role assignments can be created"
            raise ArmError(400, "RoleAssignmentLimitExceeded", message)


def principal_of_filter(text: str) -> str:
    """Return the principal that a filter of a list names, "" without a filter, or refuse it.

    It is optional: ``RoleAssignments_ListForSubscription`` in authorization-RoleAssignmentsCalls.json.
    """
    return _named(_BY_PRINCIPAL, text) if text else ""


def member_of_filter(text: str) -> str:
    """Return the principal that a filter names together with its groups, "" for another filter."""
    found = _WITH_GROUPS.fullmatch(text)
    return found[1] if found else ""


def role_of_filter(text: str) -> str:
    """Return the role that a filter of a list names, or refuse the filter."""
    return _named(_BY_NAME, text)


def _named(form: re.Pattern[str], text: str) -> str:
    found = form.fullmatch(text)
    if found is None:
        raise ArmError(400, "UnsupportedQuery", f"The filter '{text}' is not supported.")
    return found[1]


def _custom(subscription: str, principal: str) -> str:
    """Return the GUID of the custom role of a principal in a subscription."""
    return str(uuid5(UUID(principal), subscription))


def _definition(subscription: str, name: str, key: str) -> Json:
    kind = "Microsoft.Authorization/roleDefinitions"
    return {
        "id": f"/subscriptions/{subscription}/providers/{kind}/{key}",
        "name": key,
        "type": kind,
        "properties": {
            "roleName": name,
            "type": "BuiltInRole",
            "assignableScopes": ["/"],
            "permissions": [{"actions": _ACTIONS[name], "notActions": _EXCEPTED.get(name, [])}],
        },
    }


def _of(document: Json, principal: str) -> bool:
    return str(document["properties"]["principalId"]).lower() == principal.lower()


def _key(scope: str, name: str) -> str:
    return f"{scope}/{name}".lower()


def _require_guid(text: str) -> None:
    try:
        UUID(text)
    except ValueError:
        message = f"The provided value '{text}' is no GUID."
        raise ArmError(400, "InvalidParameter", message) from None
