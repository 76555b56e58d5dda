"""Every typed field has the name and values of the models of Azure's own library."""

from __future__ import annotations

import re
import typing
from collections.abc import Iterator
from enum import Enum
from typing import Any, Literal, get_args, get_origin

from azure.mgmt.containerservice.models import _enums, _models
from pydantic import BaseModel

from shared.language.model.cluster.schedules import MaintenanceConfiguration
from shared.language.model.cluster.spec import ClusterProperties
from shared.language.model.node_pool import PoolProperties

THROUGH_AZURE_PROPERTIES = {
    "ManagedClusterProperties.agentPoolProfiles": "nodePools",
    "ManagedClusterProperties.servicePrincipalProfile": "its secret has no place in git",
    "ManagedClusterProperties.podIdentityProfile": "retired by Azure",
    "ManagedClusterProperties.privateLinkResources": "",
    "ManagedClusterProperties.status": "written by Azure",
    "ManagedClusterWindowsProfile.adminPassword": "Azure creates it",
    "ManagedClusterAddonProfile.config": "of add-ons that have no settings",
    "ManagedClusterAADProfile.clientAppID": "retired by Azure",
    "ManagedClusterAADProfile.serverAppID": "retired by Azure",
    "ManagedClusterAADProfile.serverAppSecret": "retired by Azure",
    "ManagedClusterAgentPoolProfileProperties.nodeImageVersion": "a command, which rolls the pool back",
    "ManagedClusterAgentPoolProfileProperties.enableAutoScaling": "minCount and maxCount",
    "ManagedClusterAgentPoolProfileProperties.virtualMachineNodesStatus": "written by Azure",
    "ManagedClusterAgentPoolProfileProperties.status": "written by Azure",
    "AgentPoolNetworkProfile.dranet": "",
}
"""The fields of a PUT for which the manifest has no typed field, and why; "" where it could have one."""


def rest_fields(model: Any) -> dict[str, tuple[str, bool]]:
    """Return the fields of a library's model by ARM's names: type as text, and whether Azure alone writes."""
    hints = {k: str(t) for c in reversed(model.__mro__) for k, t in getattr(c, "__annotations__", {}).items()}
    found = {}
    for owner in reversed(model.__mro__):
        for name, field in vars(owner).items():
            if type(field).__name__ == "_RestField":
                found[field._rest_name_input or name] = (hints[name], field._visibility == ["read"])
    return found


def inside(annotation: Any) -> Iterator[Any]:
    yield annotation
    if get_origin(annotation) is not Literal:
        for inner in get_args(annotation):
            yield from inside(inner)


def models_in(annotation: Any) -> list[type[BaseModel]]:
    return [p for p in inside(annotation) if isinstance(p, type) and issubclass(p, BaseModel)]


def values(annotation: Any) -> set[Any]:
    return {value for part in inside(annotation) if get_origin(part) is Literal for value in get_args(part)}


def compare(ours: type[BaseModel], theirs: Any, wrong: list[str], missing: set[str]) -> None:
    """Compare both models recursively; collect fields with other names, and those without a typed field."""
    fields, hints = rest_fields(theirs), typing.get_type_hints(ours, include_extras=True)
    names = {info.alias or name for name, info in ours.model_fields.items()}
    missing |= {f"{theirs.__name__}.{n}" for n, (_, reads) in fields.items() if not reads and n not in names}
    for name, info in ours.model_fields.items():
        alias = info.alias or name
        if alias not in fields:
            wrong.append(f"{ours.__name__}.{alias}")
            continue
        text = fields[alias][0]
        named = re.findall(r"[A-Z]\w+", text)
        enums = [e for n in named if isinstance(e := getattr(_enums, n, None), type) and issubclass(e, Enum)]
        allowed = {member.value for enum in enums for member in enum}
        if enums and not values(hints[name]) <= allowed:
            wrong.append(f"{ours.__name__}.{alias}: {values(hints[name]) - allowed}")
        models = [m for n in named if isinstance(m := getattr(_models, n, None), type)]
        below = models_in(hints[name])
        if below and "dict[" in text and not any(get_origin(part) is dict for part in inside(hints[name])):
            below = [m for hint in typing.get_type_hints(below[0]).values() for m in models_in(hint)]
        for model in below if models else ():
            compare(model, models[0], wrong, missing)


def test_every_field_has_its_name_in_arm_and_the_fields_without_a_type_are_known() -> None:
    wrong: list[str] = []
    missing: set[str] = set()
    compare(ClusterProperties, _models.ManagedClusterProperties, wrong, missing)
    compare(PoolProperties, _models.ManagedClusterAgentPoolProfileProperties, wrong, missing)
    compare(MaintenanceConfiguration, _models.MaintenanceConfigurationProperties, wrong, set())
    assert wrong == ["MaintenanceConfiguration.name"]  # the name of the resource, not a property
    assert missing - set(THROUGH_AZURE_PROPERTIES) == set(), "new in Azure's library: type them, or list them"
    assert set(THROUGH_AZURE_PROPERTIES) - missing == set(), "typed now: remove them from the list"
