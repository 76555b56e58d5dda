"""Assignments of Azure Policy to the cluster.

The names are ARM's: Microsoft.Authorization/policyAssignments. learn.microsoft.com/azure/governance/policy/
concepts/policy-for-kubernetes says what policies about objects of Kubernetes need, and that their parameters
``effect`` and ``excludedNamespaces`` are called the same in nearly all of them.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, JsonValue, StrictStr, model_validator

from shared.language.model.base import Manifest, ObjectName, rule, stated_rule
from shared.language.model.cluster.flux_source import FluxName

KUBERNETES = "Microsoft.Kubernetes.Data"
"""The mode of definitions about objects of Kubernetes; the add-on azurepolicy carries them out."""
EFFECT, EXCLUDED = "effect", "excludedNamespaces"
_GUID = r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_OF_SUBSCRIPTION = re.compile(rf"/subscriptions/(?P<subscription>{_GUID})/", re.IGNORECASE)
_DEFINITION = r"/providers/Microsoft\.Authorization/policy(Set)?Definitions/[^<>*%&:\\?.+/\s]{1,128}"
_NEEDS_IDENTITY = ("deployifnotexists", "modify")

Definition = Annotated[
    StrictStr,
    rule(
        rf"(?i:(/subscriptions/{_GUID}|/providers/Microsoft\.Management/managementGroups/[\w().-]{{1,90}})?{_DEFINITION})",
        "the id of a policy definition or of an initiative (a policySetDefinition), as Azure writes it",
    ),
]
Parameter = Annotated[
    StrictStr, rule(r"[A-Za-z][A-Za-z0-9_.-]{0,127}", "the name of a parameter of the definition")
]
Below = Annotated[
    StrictStr,
    rule(
        r"[A-Za-z]+/[A-Za-z0-9-]+",
        "a type and a name below the cluster, such as agentPools/batch",
    ),
]


def _without_identity(effect: str) -> str:
    if effect.lower() in _NEEDS_IDENTITY:
        raise ValueError(f"must not be {effect}: it needs an identity, and these assignments have none")
    return effect


Effect = Annotated[
    StrictStr,
    rule(r"[A-Za-z]{1,40}", "an effect that the definition allows, such as Audit, Deny or Disabled"),
    AfterValidator(_without_identity),
    stated_rule("not modify and not deployIfNotExists, which need an identity"),
]


class PolicyAssignment(Manifest):
    """A policy or an initiative of Azure Policy that is assigned to the cluster."""

    name: ObjectName
    """The name of the entry; entries of the layers are merged by it."""
    definition: Definition
    """What is assigned: a policy definition, or an initiative, which exists."""
    mode: Literal["Microsoft.Kubernetes.Data", "Indexed", "All"] = "Microsoft.Kubernetes.Data"
    """The mode of the definition. The default is about objects in the cluster, and needs the add-on
    azurepolicy; the others are about the cluster as a resource of Azure."""
    effect: Effect | None = None
    """The parameter ``effect`` of the definition; without it, the default of the definition."""
    excluded_namespaces: Annotated[tuple[FluxName, ...], Field(max_length=200)] | None = None
    """The parameter ``excludedNamespaces``, which replaces the default of the definition."""
    parameters: Annotated[dict[Parameter, JsonValue], Field(max_length=100)] = Field(default_factory=dict)
    """Other parameters of the definition, with their values."""
    not_scopes: Annotated[tuple[Below, ...], Field(max_length=100)] = ()
    """What below the cluster is left out."""
    enforcement_mode: Literal["Default", "DoNotEnforce"] = "Default"
    """DoNotEnforce shows compliance, and has no effect."""

    @property
    def values(self) -> Mapping[str, Any]:
        """The value of every parameter that is given."""
        own: dict[str, Any] = {} if self.effect is None else {EFFECT: self.effect}
        if self.excluded_namespaces is not None:
            own[EXCLUDED] = list(self.excluded_namespaces)
        return {**self.parameters, **own}

    @model_validator(mode="after")
    def _given_once(self) -> Self:
        for name, given in ((EFFECT, self.effect), (EXCLUDED, self.excluded_namespaces)):
            if given is not None and name in self.parameters:
                raise ValueError(f"has {name} also in parameters; write it once")
        if EFFECT in self.parameters:
            _without_identity(str(self.parameters[EFFECT]))
        if self.excluded_namespaces is not None and self.mode != KUBERNETES:
            raise ValueError(f"excludedNamespaces needs mode: {KUBERNETES}")
        return self


PolicyAssignments = Annotated[tuple[PolicyAssignment, ...], Field(max_length=50)]


def check_policies(entries: Sequence[PolicyAssignment], spec: Mapping[str, Any]) -> None:
    """Raise ValueError where entries are out of reach, or need the add-on that is off.

    ``spec`` has the valid fields that come before.
    """
    for entry in entries:
        found = _OF_SUBSCRIPTION.match(entry.definition)
        own = spec.get("subscription_id")
        if found and own and found["subscription"].lower() != own.lower():
            raise ValueError(
                f"{entry.name}: Azure assigns a definition of a subscription only there; "
                "put it into a management group"
            )
        if entry.mode == KUBERNETES and not _has_addon(spec):
            raise ValueError(
                f"{entry.name} needs addonProfiles.azurepolicy.enabled: true; or set mode: "
                "Indexed or All, if the definition is about the cluster as a resource"
            )


def _has_addon(spec: Mapping[str, Any]) -> bool:
    """Return whether the cluster has the add-on; AKS Automatic presets it."""
    if "sku" not in spec or "addon_profiles" not in spec:
        return True  # what they should say is another message
    profiles = spec["addon_profiles"]
    policy = profiles.azurepolicy if profiles else None
    return bool(spec["sku"].automatic or (policy and policy.enabled))
