"""The names in Azure of what a cluster grants: the same for every attempt, and recognised as this cluster's.

A name follows from the cluster's resource id, which no other cluster has, and from the manifest. So it says
whose it is without any record: nothing else has such a name unless this cluster's steps have written it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from shared.fleet.json_tree import Json
from shared.fleet.manifests.cluster.identity_access import FederatedCredential, RoleAssignment
from shared.fleet.resource_ids import ClusterId

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
