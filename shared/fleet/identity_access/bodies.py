"""The documents of federated credentials and role assignments, and what makes one differ.

Shapes: federatedIdentityCredentials of Microsoft.ManagedIdentity (2023-01-31) and roleAssignments of
Microsoft.Authorization (2022-04-01) in github.com/Azure/azure-rest-api-specs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from shared.fleet.json_tree import Json
from shared.fleet.manifests.cluster.identity_access import (
    CONTROL_PLANE,
    KUBELET,
    FederatedCredential,
    RoleAssignment,
)

_GUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def issuer_of(existing: Json) -> str:
    """Return the issuer of a cluster's tokens, "" where Azure shows none."""
    profile = (existing.get("properties") or {}).get("oidcIssuerProfile") or {}
    return str(profile.get("issuerURL") or "")


def credential_body(entry: FederatedCredential, issuer: str) -> Json:
    """Return the body of a federated credential."""
    return {"properties": {"issuer": issuer, "subject": entry.subject, "audiences": [entry.audience]}}


def same_credential(live: Json, body: Json) -> bool:
    """Return whether a federated credential says what a body says."""
    shown = live.get("properties") or {}
    return all(shown.get(key) == value for key, value in body["properties"].items())


def role_id(role: str) -> str:
    """Return the GUID of a role that is named by it, "" for one that is named by its name."""
    return role.lower() if _GUID.fullmatch(role) else ""


def assignment_body(entry: RoleAssignment, *, role: str, principal: str, description: str) -> Json:
    """Return the body of a role assignment.

    With the type of the principal, Azure does not look for a new one in its directory, where it may not be
    yet (learn.microsoft.com/azure/role-based-access-control/troubleshooting).
    """
    definitions = f"/subscriptions/{entry.subscription}/providers/Microsoft.Authorization/roleDefinitions"
    return {
        "properties": {
            "roleDefinitionId": f"{definitions}/{role}",
            "principalId": principal,
            "principalType": "ServicePrincipal",
            "description": description,
        }
    }


def same_assignment(live: Json, entry: RoleAssignment, *, role: str, principal: str) -> bool:
    """Return whether a role assignment, whatever its name, gives what an entry asks for."""
    shown = live.get("properties") or {}
    definition = str(shown.get("roleDefinitionId") or "").rpartition("/")[2]
    return (
        str(shown.get("scope") or "").lower() == entry.scope.lower()
        and str(shown.get("principalId") or "").lower() == principal.lower()
        and definition.lower() == role.lower()
        and not shown.get("condition")
    )


def principal_in(existing: Json, identity: str) -> str:
    """Return the object id of an identity of a cluster that Azure shows; "" where it shows none."""
    properties, own = existing.get("properties") or {}, existing.get("identity") or {}
    if identity == KUBELET:
        kubelet = (properties.get("identityProfile") or {}).get("kubeletidentity") or {}
        return str(kubelet.get("objectId") or "")
    assigned = own.get("userAssignedIdentities") or {}
    if identity == CONTROL_PLANE:
        found = [*_principals(assigned), own.get("principalId")] if assigned else [own.get("principalId")]
        return str(found[0] or "")
    return str(next((one for name, one in _by_id(assigned) if name == identity.lower()), ""))


def _principals(assigned: Mapping[str, Json]) -> Iterator[str]:
    yield from (principal for _, principal in _by_id(assigned))


def _by_id(assigned: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    for name, one in assigned.items():
        yield name.lower(), str((one or {}).get("principalId") or "")
