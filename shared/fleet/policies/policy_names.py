"""The names of policy assignments in Azure: the same for every attempt, and recognised as this cluster's.

A name follows from the cluster's resource id and from the manifest, like those of what a cluster grants.
Another definition has another name, so the new assignment is there before the former one goes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shared.fleet.json_tree import Json
from shared.fleet.manifests.cluster.policies import PolicyAssignment
from shared.fleet.resource_ids import ClusterId

POLICIES = "/providers/microsoft.authorization/policyassignments/"


def policy_prefix(cluster: ClusterId) -> str:
    """Return how the names of a cluster's policy assignments begin."""
    return f"roadstead-{_hash(cluster.resource)}-"


def policy_name(cluster: ClusterId, entry: str, definition: str) -> str:
    """Return the name of a policy assignment; Azure allows 64 characters."""
    return policy_prefix(cluster) + _hash(f"{entry}|{definition}")


def by_name(cluster: ClusterId, entries: Sequence[PolicyAssignment]) -> dict[str, PolicyAssignment]:
    """Return entries by the names of their assignments."""
    return {policy_name(cluster, one.name, one.definition): one for one in entries}


def is_our_policy(cluster: ClusterId, live: Json) -> bool:
    """Return whether a step of this cluster has written a policy assignment: its name and place say so."""
    place, _, name = str(live.get("id") or "").lower().rpartition(POLICIES)
    return place == cluster.resource.lower() and name.startswith(policy_prefix(cluster))


def assigned(document: Mapping[str, Any]) -> Sequence[str]:
    """Return the resource ids, in lower case, of all policy assignments of a stored form."""
    return tuple(_assigned(document))


def _assigned(document: Mapping[str, Any]) -> Iterator[str]:
    spec = document["spec"]
    cluster = ClusterId(spec["subscriptionId"], spec["resourceGroup"], document["name"])
    for one in spec.get("policies") or ():  # not validated: by later rules it may be invalid
        yield f"{cluster.resource}{POLICIES}{policy_name(cluster, one['name'], one['definition'])}".lower()


def is_policy(resource: str) -> bool:
    """Return whether a resource id is that of a policy assignment."""
    return POLICIES in resource


def _hash(text: str) -> str:
    return hashlib.sha256(text.lower().encode()).hexdigest()[:12]
