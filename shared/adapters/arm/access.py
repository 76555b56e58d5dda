"""Federated credentials and role assignments, through the pipeline that all management libraries share.

azure-mgmt-authorization has eighteen API versions in 7 MB for four of these requests, and both libraries turn
Azure's documents into models with other names. Methods have the shape of theirs: ``arm`` calls them alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar

from shared.adapters.arm.arm_requests import ArmRequests

T = TypeVar("T")
_IDENTITIES = "/providers/Microsoft.ManagedIdentity/userAssignedIdentities"
_ROLES = "/providers/Microsoft.Authorization"


class Access(ArmRequests):
    """Who may act as an identity, and which roles a principal has, in one subscription."""

    versions: ClassVar = {_IDENTITIES: "2023-01-31", _ROLES: "2022-04-01"}

    def get_identity(self, group: str, name: str) -> dict[str, Any]:
        """Return a user-assigned identity."""
        return self._get(self._identity(group, name), _IDENTITIES)

    def list_federated_credentials(self, group: str, name: str) -> list[dict[str, Any]]:
        """Return the federated credentials of an identity."""
        return self._list(f"{self._identity(group, name)}/federatedIdentityCredentials", _IDENTITIES)

    def get_federated_credential(self, group: str, name: str, credential: str) -> dict[str, Any]:
        """Return a federated credential."""
        return self._get(self._credential(group, name, credential), _IDENTITIES)

    def put_federated_credential(
        self, group: str, name: str, credential: str, body: Mapping[str, Any], *, cls: Callable[..., T]
    ) -> T:
        """Create or replace a federated credential."""
        return self._write("PUT", self._credential(group, name, credential), _IDENTITIES, cls, body)

    def delete_federated_credential(
        self, group: str, name: str, credential: str, *, cls: Callable[..., T]
    ) -> T:
        """Delete a federated credential."""
        return self._write("DELETE", self._credential(group, name, credential), _IDENTITIES, cls)

    def list_role_assignments(self, principal: str) -> list[dict[str, Any]]:
        """Return the role assignments at, above and below the subscription: of a principal, or of all."""
        path = f"{self._subscription}{_ROLES}/roleAssignments"
        return self._list(path, _ROLES, {"$filter": f"principalId eq '{principal}'"} if principal else {})

    def list_roles(self, role: str) -> list[dict[str, Any]]:
        """Return the role definitions with a name."""
        path = f"{self._subscription}{_ROLES}/roleDefinitions"
        return self._list(path, _ROLES, {"$filter": f"roleName eq '{role}'"})

    def get_role_assignment(self, scope: str, assignment: str) -> dict[str, Any]:
        """Return a role assignment."""
        return self._get(f"{scope}{_ROLES}/roleAssignments/{assignment}", _ROLES)

    def put_role_assignment(
        self, scope: str, assignment: str, body: Mapping[str, Any], *, cls: Callable[..., T]
    ) -> T:
        """Create a role assignment."""
        return self._write("PUT", f"{scope}{_ROLES}/roleAssignments/{assignment}", _ROLES, cls, body)

    def delete_role_assignment(self, scope: str, assignment: str, *, cls: Callable[..., T]) -> T:
        """Delete a role assignment."""
        return self._write("DELETE", f"{scope}{_ROLES}/roleAssignments/{assignment}", _ROLES, cls)

    def _identity(self, group: str, name: str) -> str:
        return f"{self._subscription}/resourceGroups/{group}{_IDENTITIES}/{name}"

    def _credential(self, group: str, name: str, credential: str) -> str:
        return f"{self._identity(group, name)}/federatedIdentityCredentials/{credential}"
