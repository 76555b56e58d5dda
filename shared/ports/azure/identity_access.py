"""The operations on user-assigned identities, their federated credentials, and role assignments.

Sources: ManagedIdentity.json (2023-01-31) and authorization-RoleAssignmentsCalls.json (2022-04-01) of
github.com/Azure/azure-rest-api-specs. Azure refuses two writes at once to the federated credentials of an
identity (learn.microsoft.com/entra/workload-id/workload-identity-federation-considerations).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shared.azure.rate_limits import ARM_DELETE, ARM_READ, ARM_WRITE
from shared.frozen import dataclass
from shared.json_tree import Json
from shared.ports.azure.calls import AzureCall, Request, Write
from shared.resource_ids import ManagedIdentityId, SubscriptionId

_IDENTITIES, _CREDENTIALS = "2023-01-31", "{target.resource}/federatedIdentityCredentials"
_ROLES, _OF_ROLES = "2022-04-01", "/providers/Microsoft.Authorization"
_OF_SUBSCRIPTION = f"/subscriptions/{{target.subscription}}{_OF_ROLES}"
_ASSIGNMENT = f"{{scope}}{_OF_ROLES}/roleAssignments/{{assignment}}"


@dataclass(frozen=True)
class GetIdentity(AzureCall[Json | None]):
    """Return a user-assigned identity, or None; ``properties`` has principalId, clientId and tenantId."""

    request, limits = Request("GET", "{target.resource}", _IDENTITIES), (ARM_READ,)
    absent_is_fine = True
    needs = ("id", "properties.principalId", "properties.clientId", "properties.tenantId")
    target: ManagedIdentityId


@dataclass(frozen=True)
class PutIdentity(Write):
    """Create a user-assigned identity, or write its tags, at once; ``body`` has ``location`` and ``tags``."""

    request, limits = Request("PUT", "{target.resource}", _IDENTITIES), (ARM_WRITE,)
    target: ManagedIdentityId
    body: Json


@dataclass(frozen=True)
class DeleteIdentity(Write):
    """Delete a user-assigned identity with its federated credentials, at once."""

    request, limits = Request("DELETE", "{target.resource}", _IDENTITIES), (ARM_DELETE,)
    absent_is_fine = True
    target: ManagedIdentityId


@dataclass(frozen=True)
class ListFederatedCredentials(AzureCall[Sequence[Json] | None]):
    """Return the federated credentials of an identity, whoever created them; None without the identity."""

    request, limits = Request("LIST", _CREDENTIALS, _IDENTITIES), (ARM_READ,)
    absent_is_fine = True
    needs = ("name", "properties")
    target: ManagedIdentityId


@dataclass(frozen=True)
class GetFederatedCredential(AzureCall[Json | None]):
    """Return a federated credential, or None."""

    request, limits = Request("GET", f"{_CREDENTIALS}/{{credential}}", _IDENTITIES), (ARM_READ,)
    absent_is_fine = True
    needs = ("name", "properties")
    target: ManagedIdentityId
    credential: str


@dataclass(frozen=True)
class PutFederatedCredential(Write):
    """Create or replace a federated credential, at once; ``body`` has ``properties``."""

    request, limits = Request("PUT", f"{_CREDENTIALS}/{{credential}}", _IDENTITIES), (ARM_WRITE,)
    target: ManagedIdentityId
    credential: str
    body: Json


@dataclass(frozen=True)
class DeleteFederatedCredential(Write):
    """Delete a federated credential, at once."""

    request, limits = Request("DELETE", f"{_CREDENTIALS}/{{credential}}", _IDENTITIES), (ARM_DELETE,)
    absent_is_fine = True
    target: ManagedIdentityId
    credential: str


@dataclass(frozen=True)
class ListRoleAssignments(AzureCall[Sequence[Json]]):
    """Return the role assignments in a subscription, at every scope in it and above it.

    They are those of a ``principal``, or of everybody.
    """

    request, limits = Request("LIST", f"{_OF_SUBSCRIPTION}/roleAssignments", _ROLES), (ARM_READ,)
    needs = ("id", "properties")
    target: SubscriptionId
    principal: str = ""

    @property
    def query(self) -> Mapping[str, str]:
        """The filter for a principal."""
        return {"$filter": f"principalId eq '{self.principal}'"} if self.principal else {}


@dataclass(frozen=True)
class ListRoles(AzureCall[Sequence[Json]]):
    """Return the role definitions of a subscription that have a name: none, or one."""

    request, limits = Request("LIST", f"{_OF_SUBSCRIPTION}/roleDefinitions", _ROLES), (ARM_READ,)
    needs = ("id", "properties")
    target: SubscriptionId
    role: str

    @property
    def query(self) -> Mapping[str, str]:
        """The filter for the name."""
        return {"$filter": f"roleName eq '{self.role}'"}


@dataclass(frozen=True)
class GetRoleAssignment(AzureCall[Json | None]):
    """Return a role assignment, or None."""

    request, limits = Request("GET", _ASSIGNMENT, _ROLES), (ARM_READ,)
    absent_is_fine = True
    needs = ("id", "properties")
    target: SubscriptionId
    scope: str
    assignment: str


@dataclass(frozen=True)
class PutRoleAssignment(Write):
    """Create a role assignment, at once: Azure refuses to change one; ``body`` has ``properties``."""

    request, limits = Request("PUT", _ASSIGNMENT, _ROLES), (ARM_WRITE,)
    target: SubscriptionId
    scope: str
    assignment: str
    body: Json


@dataclass(frozen=True)
class DeleteRoleAssignment(Write):
    """Delete a role assignment, at once."""

    request, limits = Request("DELETE", _ASSIGNMENT, _ROLES), (ARM_DELETE,)
    absent_is_fine = True
    target: SubscriptionId
    scope: str
    assignment: str
