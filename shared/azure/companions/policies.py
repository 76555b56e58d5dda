"""An assignment of Azure Policy to a cluster: its name, its document, and what differs. Pure.

Another definition has another name, so the new assignment is there before the former one goes.

Shape: policyAssignments of Microsoft.Authorization (2025-03-01) in github.com/Azure/azure-rest-api-specs. An
assignment is compared as a whole: a parameter, an override or a selector that somebody adds makes a policy
weaker, and git does not have it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Self

from shared.azure.companions.companion import Companion, Fields
from shared.frozen import dataclass
from shared.json_tree import Json
from shared.language.desired import Desired
from shared.language.model.cluster.policies import EFFECT, EXCLUDED, PolicyAssignment
from shared.resource_ids import ClusterId

_PLAIN = {
    "definition": "policyDefinitionId",
    "enforcementMode": "enforcementMode",
    "notScopes": "notScopes",
    "overrides": "overrides",
    "resourceSelectors": "resourceSelectors",
}
"""Fields of a manifest, and two that it never has, with ARM's names."""
_PARAMETER = "parameters."
"""How the fields of other parameters begin than those with a field of their own."""
_LONGEST = 128
"""How long a display name may be: assignment-structure, below learn.microsoft.com/azure/governance/policy."""


def policy_name(cluster: ClusterId, entry: str, definition: str) -> str:
    """Return the name of a policy assignment; Azure allows 64 characters."""
    return _prefix(cluster) + _hash(f"{entry}|{definition}")


@dataclass(frozen=True)
class PolicyCompanion(Companion):
    """A policy assignment; the fields of parameters are called ``parameters.NAME``."""

    noun, entries = "policy assignment", "policies"
    segment = "/providers/microsoft.authorization/policyassignments/"

    @classmethod
    def of(cls, desired: Desired) -> Sequence[Self]:
        """Return the assignments of a manifest."""
        return [cls._of(desired.id, entry) for entry in desired.spec.policies]

    @classmethod
    def _of(cls, cluster: ClusterId, entry: PolicyAssignment) -> Self:
        shown: dict[str, Any] = {"definition": entry.definition}
        scopes = [f"{cluster.resource}/{below}" for below in entry.not_scopes] or None
        fields = {**shown, "enforcementMode": entry.enforcement_mode, "notScopes": scopes}
        resource = cls.id_of(cluster, {"name": entry.name, **shown})
        return cls(cluster, entry.name, resource, {**fields, **_parameters(entry.values)}, shown)

    @classmethod
    def id_of(cls, cluster: ClusterId, entry: Json) -> str:
        """Return the id of a stored assignment."""
        return f"{cluster.resource}{cls.segment}{policy_name(cluster, entry['name'], entry['definition'])}"

    @classmethod
    def is_ours(cls, cluster: ClusterId, resource: str, live: Json) -> bool:
        """Return whether a step of this cluster has written an assignment: its name and place say so."""
        return resource.startswith(f"{cluster.resource}{cls.segment}{_prefix(cluster)}".lower())

    def shown(self, live: Json) -> Fields:
        """Return what Azure has, and its defaults."""
        properties = live.get("properties") or {}
        fields = {field: properties.get(name) or None for field, name in _PLAIN.items()}
        fields["enforcementMode"] = fields["enforcementMode"] or "Default"
        given = properties.get("parameters") or {}
        return {**fields, **_parameters({name: value.get("value") for name, value in given.items()})}

    def _is_same(self, field: str, has: Any, wanted: Any) -> bool:
        if field == "notScopes":
            return sorted(map(str.lower, has or ())) == sorted(map(str.lower, wanted or ()))
        if field in ("definition", "enforcementMode"):
            return str(has).lower() == str(wanted).lower()
        return super()._is_same(field, has, wanted)

    def _body(self, fields: Fields) -> Json:
        properties = {arm: fields[name] for name, arm in _PLAIN.items() if fields.get(name) is not None}
        values = {
            name.removeprefix(_PARAMETER): {"value": value}
            for name, value in fields.items()
            if name not in _PLAIN and value is not None
        }
        whose = f"{self.name} of {self.cluster.name}"
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


def _prefix(cluster: ClusterId) -> str:
    """Return how the names of a cluster's policy assignments begin."""
    return f"roadstead-{_hash(cluster.resource)}-"


def _hash(text: str) -> str:
    return hashlib.sha256(text.lower().encode()).hexdigest()[:12]
