"""The operations on user-assigned identities, their federated credentials, and role assignments.

Sources: ManagedIdentity.json (2023-01-31) and authorization-RoleAssignmentsCalls.json (2022-04-01) of
github.com/Azure/azure-rest-api-specs. Azure refuses two writes at once to the federated credentials of an
identity (learn.microsoft.com/entra/workload-id/workload-identity-federation-considerations).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shared.fleet.json_tree import Json
from shared.fleet.resource_ids import ManagedIdentityId, SubscriptionId
from shared.jobs.rate_limits import ARM_DELETE, ARM_READ, ARM_WRITE
from shared.ports.azure.calls import AzureCall, Write


@dataclass(frozen=True)
class GetIdentity(AzureCall[Json | None]):
    """Return a user-assigned identity with its ``properties.principalId``, or None."""

    service, sdk, limits = "access", "get_identity", (ARM_READ,)
    absent_is_fine = True
    target: ManagedIdentityId


@dataclass(frozen=True)
class ListFederatedCredentials(AzureCall[Sequence[Json] | None]):
    """Return the federated credentials of an identity, whoever created them; None without the identity."""

    service, sdk, limits = "access", "list_federated_credentials", (ARM_READ,)
    absent_is_fine = True
    target: ManagedIdentityId


@dataclass(frozen=True)
class GetFederatedCredential(AzureCall[Json | None]):
    """Return a federated credential, or None."""

    service, sdk, limits = "access", "get_federated_credential", (ARM_READ,)
    absent_is_fine = True
    target: ManagedIdentityId
    credential: str


@dataclass(frozen=True)
class PutFederatedCredential(Write):
    """Create or replace a federated credential, at once; ``body`` has ``properties``."""

    service, sdk, limits = "access", "put_federated_credential", (ARM_WRITE,)
    target: ManagedIdentityId
    credential: str
    body: Json


@dataclass(frozen=True)
class DeleteFederatedCredential(Write):
    """Delete a federated credential, at once."""

    service, sdk, limits = "access", "delete_federated_credential", (ARM_DELETE,)
    absent_is_fine = True
    target: ManagedIdentityId
    credential: str


@dataclass(frozen=True)
class ListRoleAssignments(AzureCall[Sequence[Json]]):
    """Return the role assignments in a subscription, at every scope in it and above it.

    They are those of a ``principal``, or of everybody.
    """

    service, sdk, limits = "access", "list_role_assignments", (ARM_READ,)
    target: SubscriptionId
    principal: str = ""


@dataclass(frozen=True)
class ListRoles(AzureCall[Sequence[Json]]):
    """Return the role definitions of a subscription that have a name: none, or one."""

    service, sdk, limits = "access", "list_roles", (ARM_READ,)
    target: SubscriptionId
    role: str


@dataclass(frozen=True)
class GetRoleAssignment(AzureCall[Json | None]):
    """Return a role assignment, or None."""

    service, sdk, limits = "access", "get_role_assignment", (ARM_READ,)
    absent_is_fine = True
    target: SubscriptionId
    scope: str
    assignment: str


@dataclass(frozen=True)
class PutRoleAssignment(Write):
    """Create a role assignment, at once: Azure refuses to change one; ``body`` has ``properties``."""

    service, sdk, limits = "access", "put_role_assignment", (ARM_WRITE,)
    target: SubscriptionId
    scope: str
    assignment: str
    body: Json


@dataclass(frozen=True)
class DeleteRoleAssignment(Write):
    """Delete a role assignment, at once."""

    service, sdk, limits = "access", "delete_role_assignment", (ARM_DELETE,)
    absent_is_fine = True
    target: SubscriptionId
    scope: str
    assignment: str
