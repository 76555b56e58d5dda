"""Federated credentials and role assignments, through the pipeline that all management libraries share.

azure-mgmt-authorization has eighteen API versions in 7 MB for four of these requests, and both libraries turn
Azure's documents into models with other names. Methods have the shape of theirs: ``arm`` calls them alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from types import SimpleNamespace
from typing import Any, TypeVar
from urllib.parse import quote

from azure.core.exceptions import HttpResponseError
from azure.core.rest import HttpRequest
from azure.mgmt.core import ARMPipelineClient
from azure.mgmt.core.exceptions import ARMErrorFormat

PUBLIC_CLOUD = "https://management.azure.com"
T = TypeVar("T")
_IDENTITIES = "/providers/Microsoft.ManagedIdentity/userAssignedIdentities"
_ROLES = "/providers/Microsoft.Authorization"
_VERSIONS = {_IDENTITIES: "2023-01-31", _ROLES: "2022-04-01"}
_FINE = (HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.NO_CONTENT)


class Access:
    """Who may act as an identity, and which roles a principal has, in one subscription."""

    def __init__(
        self, _credential: Any, subscription: str, *, base_url: str = PUBLIC_CLOUD, **pipeline: Any
    ) -> None:
        self._client: Any = ARMPipelineClient(base_url=base_url, **pipeline)
        self._base, self._subscription = base_url, f"/subscriptions/{subscription}"

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

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
        """Return the role assignments of a principal at, above and below the subscription."""
        path = f"{self._subscription}{_ROLES}/roleAssignments"
        return self._list(path, _ROLES, {"$filter": f"principalId eq '{principal}'"})

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

    def _get(self, path: str, kind: str) -> dict[str, Any]:
        document: dict[str, Any] = self._send("GET", path, kind).json()
        return document

    def _list(self, path: str, kind: str, query: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
        page = self._send("GET", path, kind, query=query).json()
        found = list(page.get("value") or ())
        while page.get("nextLink"):
            page = self._answer(HttpRequest("GET", page["nextLink"])).json()
            found += page.get("value") or ()
        return found

    def _write(
        self, method: str, path: str, kind: str, cls: Callable[..., T], body: Mapping[str, Any] | None = None
    ) -> T:
        response = self._send(method, path, kind, body=body)
        return cls(SimpleNamespace(http_response=response), None, {})

    def _send(
        self,
        method: str,
        path: str,
        kind: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Any:
        url, params = f"{self._base}{quote(path)}", {"api-version": _VERSIONS[kind], **(query or {})}
        return self._answer(HttpRequest(method, url, params=params, json=body))

    def _answer(self, request: HttpRequest) -> Any:
        response = self._client.send_request(request)
        if response.status_code not in _FINE:
            raise HttpResponseError(response=response, error_format=ARMErrorFormat)
        return response
