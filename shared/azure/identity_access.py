"""What a cluster grants to identities in Azure: names, documents, and what differs.

A name follows from the cluster's resource id, which no other cluster has, and from the manifest. So it says
whose it is without any record: nothing else has such a name unless this cluster's steps have written it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from shared.azure.differences import Difference
from shared.json_tree import Json
from shared.language.desired import Desired
from shared.language.model.cluster.access import (
    CONTROL_PLANE,
    KUBELET,
    FederatedCredential,
    RoleAssignment,
)
from shared.resource_ids import ClusterId

CREDENTIALS = "/federatedidentitycredentials/"
ASSIGNMENTS = "/providers/microsoft.authorization/roleassignments/"


def credential_prefix(cluster: ClusterId) -> str:
    """Return how the names of a cluster's federated credentials begin."""
    return f"roadstead-{hashlib.sha256(cluster.resource.lower().encode()).hexdigest()[:12]}-"


def credential_name(cluster: ClusterId, entry: str) -> str:
    """Return the name of a federated credential; Azure allows 120 letters, digits and hyphens."""
    return credential_prefix(cluster) + entry


def description_of(cluster: ClusterId, entry: RoleAssignment) -> str:
    """Return what people read at a role assignment; its name is computed from it."""
    return _description(cluster, entry.name, entry.role, entry.principal)


def _description(cluster: ClusterId, entry: str, role: str, principal: str) -> str:
    what = f"{role} for {principal}, {entry} of {cluster.name}"
    return f"Roadstead: {what}; written from git, and removed with it"


def assignment_name(cluster: ClusterId, scope: str, description: str) -> str:
    """Return the name of a role assignment, which Azure wants to be a GUID."""
    return str(uuid5(NAMESPACE_URL, f"{cluster.resource}|{scope}|{description}".lower()))


def name_of_assignment(cluster: ClusterId, entry: RoleAssignment) -> str:
    """Return the name of the role assignment of an entry."""
    return assignment_name(cluster, entry.scope, description_of(cluster, entry))


def is_our_assignment(cluster: ClusterId, live: Json) -> bool:
    """Return whether a step of this cluster has written a role assignment: its name says so."""
    properties = live.get("properties") or {}
    description, scope = str(properties.get("description") or ""), str(properties.get("scope") or "")
    return str(live.get("name")).lower() == assignment_name(cluster, scope, description)


def granted(document: Mapping[str, Any]) -> Sequence[str]:
    """Return the resource ids, in lower case, of all that a stored form grants."""
    return tuple(dict.fromkeys(_granted(document)))


def _granted(document: Mapping[str, Any]) -> Iterator[str]:
    spec = document["spec"]
    cluster = ClusterId(spec["subscriptionId"], spec["resourceGroup"], document["name"])
    for one in spec.get("federatedCredentials") or ():
        yield f"{one['identity']}{CREDENTIALS}{credential_name(cluster, one['name'])}".lower()
    for one in spec.get("roleAssignments") or ():  # not validated: by later rules it may be invalid
        principal = one.get("identity") or one.get("principalId") or ""
        description = _description(cluster, one["name"], one["role"], principal)
        name = assignment_name(cluster, one["scope"], description)
        yield f"{one['scope']}{ASSIGNMENTS}{name}".lower()


def former(before: Sequence[str], after: Sequence[str], earlier: Sequence[str]) -> tuple[str, ...]:
    """Return the resource ids of what a spec had and has no longer; ``earlier`` still had to go."""
    present = set(after)
    return tuple(each for each in dict.fromkeys((*earlier, *before)) if each not in present)


def is_credential(resource: str) -> bool:
    """Return whether a resource id of a grant is that of a federated credential."""
    return CREDENTIALS in resource


def wanted_names(
    cluster: ClusterId, entries: Sequence[FederatedCredential]
) -> dict[str, FederatedCredential]:
    """Return entries by the names of their federated credentials."""
    return {credential_name(cluster, one.name): one for one in entries}


# The documents of federated credentials and role assignments, and what makes one differ.
#
# Shapes: federatedIdentityCredentials of Microsoft.ManagedIdentity (2023-01-31) and roleAssignments of
# Microsoft.Authorization (2022-04-01) in github.com/Azure/azure-rest-api-specs.

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


# What a manifest grants to identities, compared with what Azure has of it. Pure.
#
# The fields of a federated credential can change. A role assignment is there or not: Azure changes none.

_CREDENTIAL, _ROLE = "federatedCredentials[", "roleAssignments["
GRANTS = (_CREDENTIAL, _ROLE)
"""How the path of a difference of a grant begins."""


def credential_path(entry: str, field: str = "") -> str:
    """Return the path of a federated credential, or of a field of it."""
    return ".".join(filter(None, (f"{_CREDENTIAL}{entry}]", field)))


def role_path(entry: str) -> str:
    """Return the path of a role assignment."""
    return f"{_ROLE}{entry}]"


def credential_differences(
    desired: Desired, live: Mapping[str, Sequence[Json] | None], issuer: str
) -> Iterator[Difference]:
    """Yield the fields in which the federated credentials differ, whatever a job leaves.

    ``live`` are those of each identity, by its id in lower case: None where it does not exist, which no job
    changes. An ``issuer`` that is not known is not compared. One that is there under another name is no
    difference: a job leaves it too.
    """
    for entry in desired.spec.federated_credentials:
        wanted = dict(credential_body(entry, issuer)["properties"])
        if not issuer:
            del wanted["issuer"]
        found, path = live[entry.identity.lower()], credential_path(entry.name)
        by_name = {str(one["name"]).lower(): one.get("properties") or {} for one in found or ()}
        has = by_name.get(credential_name(desired.id, entry.name).lower())
        if has is not None:
            for field, value in wanted.items():
                if has.get(field) != value:
                    yield Difference(credential_path(entry.name, field), value, has.get(field))
        elif not any(all(one.get(key) == value for key, value in wanted.items()) for one in by_name.values()):
            yield Difference(path, wanted, None, left_alone=found is None)


def role_differences(desired: Desired, missing: Collection[str]) -> Iterator[Difference]:
    """Yield the role assignments that are ``missing``, by the names of their entries."""
    for entry in desired.spec.role_assignments:
        if entry.name in missing:
            yield Difference(role_path(entry.name), _shown(entry), None)


def _shown(entry: RoleAssignment) -> Json:
    return {"role": entry.role, "scope": entry.scope, "principal": entry.principal}
