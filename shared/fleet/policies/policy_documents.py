"""The document of a policy assignment, and the fields that a manifest and Azure have of it.

Shape: policyAssignments of Microsoft.Authorization (2025-03-01) in github.com/Azure/azure-rest-api-specs. An
assignment is compared as a whole: a parameter, an override or a selector that somebody adds makes a policy
weaker, and git does not have it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shared.fleet.json_tree import Json
from shared.fleet.manifests.cluster.policies import EFFECT, EXCLUDED, PolicyAssignment
from shared.fleet.resource_ids import ClusterId

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
