"""Assignments of Azure Policy to a cluster: names, documents, and what differs.

A name follows from the cluster's resource id and from the manifest, like those of what a cluster grants.
Another definition has another name, so the new assignment is there before the former one goes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shared.azure.differences import Difference
from shared.json_tree import Json
from shared.language.desired import Desired
from shared.language.model.cluster.policies import EFFECT, EXCLUDED, PolicyAssignment
from shared.resource_ids import ClusterId

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


# The document of a policy assignment, and the fields that a manifest and Azure have of it.
#
# Shape: policyAssignments of Microsoft.Authorization (2025-03-01) in github.com/Azure/azure-rest-api-specs.
# An assignment is compared as a whole: a parameter, an override or a selector that somebody adds makes a
# policy weaker, and git does not have it.

Fields = Mapping[str, Any]
"""Values by the names of the manifest; those of parameters by ``parameters.NAME``. None is no value."""
_PLAIN = {
    "definition": "policyDefinitionId",
    "enforcementMode": "enforcementMode",
    "notScopes": "notScopes",
    "overrides": "overrides",
    "resourceSelectors": "resourceSelectors",
}
"""Fields of a manifest, and two that it never has, with ARM's names."""
_PARAMETER = "parameters."
_LONGEST = 128
"""How long a display name may be: assignment-structure, below learn.microsoft.com/azure/governance/policy."""


def wanted_fields(cluster: ClusterId, entry: PolicyAssignment) -> Fields:
    """Return what git says of an assignment."""
    scopes = [f"{cluster.resource}/{below}" for below in entry.not_scopes]
    fields: dict[str, Any] = {"definition": entry.definition, "enforcementMode": entry.enforcement_mode}
    return {**fields, "notScopes": scopes or None, **_parameters(entry.values)}


def live_fields(live: Json) -> Fields:
    """Return what Azure has of an assignment."""
    properties = live.get("properties") or {}
    fields = {field: properties.get(name) or None for field, name in _PLAIN.items()}
    fields["enforcementMode"] = fields["enforcementMode"] or "Default"
    given = properties.get("parameters") or {}
    return {**fields, **_parameters({name: one.get("value") for name, one in given.items()})}


def differing_fields(has: Fields, wanted: Fields) -> Sequence[str]:
    """Return the fields that differ."""
    names = dict.fromkeys((*wanted, *has))
    return [name for name in names if not _same(name, has.get(name), wanted.get(name))]


def policy_body(cluster: ClusterId, entry: PolicyAssignment, fields: Fields) -> Json:
    """Return the document of an assignment with these fields."""
    properties = {arm: fields[name] for name, arm in _PLAIN.items() if fields.get(name) is not None}
    values = {
        name.removeprefix(_PARAMETER): {"value": value}
        for name, value in fields.items()
        if name not in _PLAIN and value is not None
    }
    whose = f"{entry.name} of {cluster.name}"
    return {
        "properties": {
            "displayName": f"{whose} (Roadstead)"[:_LONGEST],
            "description": f"Roadstead: {whose}; written from git, and removed with it",
            **properties,
            "parameters": values,
        }
    }


def _parameters(values: Mapping[str, Any]) -> dict[str, Any]:
    own = (EFFECT, EXCLUDED)
    return {name if name in own else f"{_PARAMETER}{name}": value for name, value in values.items()}


def _same(field: str, one: Any, other: Any) -> bool:
    if field == "notScopes":
        return sorted(each.lower() for each in one or ()) == sorted(each.lower() for each in other or ())
    if field in ("definition", "enforcementMode"):
        return str(one).lower() == str(other).lower()
    return bool(one == other)


# What Azure Policy has found of a cluster, by the assignments of the manifest.
#
# Azure evaluates by itself, about once a day and some minutes after a change of an assignment
# (learn.microsoft.com/azure/governance/policy/how-to/get-compliance-data): each state has the time when it
# was evaluated, and nothing here is newer than that.

"""What is so of an assignment of which Azure shows no state."""


# The policy assignments of a manifest, compared with those of the cluster. Pure.

POLICY = "policies["
"""How the path of a difference of an assignment begins."""


def policy_bodies(desired: Desired, live: Mapping[str, Json]) -> dict[str, Json]:
    """Return the bodies of the assignments to write, by name; ``live`` are those that exist, by name.

    A difference that the job leaves keeps the value that Azure has.
    """
    bodies: dict[str, Json] = {}
    for name, entry in by_name(desired.id, desired.spec.policies).items():
        wanted = wanted_fields(desired.id, entry)
        if name not in live:
            if _path(entry) not in desired.left:
                bodies[name] = policy_body(desired.id, entry, wanted)
            continue
        has = live_fields(live[name])
        written = [each for each in differing_fields(has, wanted) if _path(entry, each) not in desired.left]
        if written:
            fields = {**has, **{each: wanted.get(each) for each in written}}
            bodies[name] = policy_body(desired.id, entry, fields)
    return bodies


def policy_differences(desired: Desired, live: Mapping[str, Json]) -> tuple[Difference, ...]:
    """Return the fields in which the assignments of the manifest differ, whatever a job leaves."""
    found: list[Difference] = []
    for name, entry in by_name(desired.id, desired.spec.policies).items():
        if name not in live:
            found.append(Difference(_path(entry), {"definition": entry.definition}, None))
            continue
        wanted, has = wanted_fields(desired.id, entry), live_fields(live[name])
        found += [
            Difference(_path(entry, each), wanted.get(each), has.get(each))
            for each in differing_fields(has, wanted)
        ]
    return tuple(found)


def _path(entry: PolicyAssignment, field: str = "") -> str:
    return ".".join(filter(None, (f"{POLICY}{entry.name}]", field)))
