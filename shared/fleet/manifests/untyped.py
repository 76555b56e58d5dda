"""``azure.properties``: properties of ARM for which the manifest has no field yet.

They are merged into the body last. Properties that have a field are refused here, so that there is one way to
write them; so are properties that only Azure writes, and those that look like secrets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from pydantic import AfterValidator, BaseModel

from shared.fleet.manifests.arm_types import SECRET
from shared.fleet.manifests.base import models_in

OWNED_BY_AZURE = {
    "cluster": (
        *("provisioningState", "powerState", "currentKubernetesVersion", "fqdn", "privateFQDN"),
        *("azurePortalFQDN", "maxAgentPools", "resourceUID", "status", "eTag"),
    ),
    "pool": (
        *("provisioningState", "currentOrchestratorVersion", "eTag", "status", "virtualMachineNodesStatus"),
    ),
}
"""The properties that only Azure writes."""
COMMANDS_OF_POOLS = {
    "nodeImageVersion": "writing it rolls the pool back once, to an image that it ran lately and that Azure "
    "soon does not offer any more; spec.minNodeImageVersion and autoUpgradeProfile keep images new, and "
    "rollback.nodeImageVersion, which `roadstead rollback` proposes, rolls back",
}
"""Properties whose write is a command, which git cannot repeat, and what to do instead.

Source: AgentPool.node_image_version in the models of the management library, and
learn.microsoft.com/azure/aks/roll-back-node-pool-version.
"""


def only_untyped(
    models: Iterable[type[BaseModel]],
    kind: str,
    instead: Mapping[str, str],
    commands: Mapping[str, str] = MappingProxyType({}),
) -> AfterValidator:
    """Return the rule for the properties of a "cluster" or "pool" for which these models have no field.

    ``instead`` has the manifest's field for a property with another name in ARM; ``commands`` what to do
    instead of writing a property that is no state.
    """
    typed, owned = tuple(models), {name.lower() for name in OWNED_BY_AZURE[kind]}
    other = {name.lower(): place for name, place in instead.items()}
    refused = {name.lower(): why for name, why in commands.items()}

    def check(value: dict[str, Any]) -> dict[str, Any]:
        for key in value:
            if key.lower() in owned:
                raise ValueError(f"only Azure writes {key}; remove it")
            if key.lower() in refused:
                raise ValueError(
                    f"{key} is a command, which a manifest cannot repeat: {refused[key.lower()]}"
                )
            if key.lower() in other:
                raise ValueError(f"{key} has a field of its own in the manifest: {other[key.lower()]}")
        _refuse_typed(value, typed, "")
        _refuse_secrets(value, "")
        return value

    return AfterValidator(check)


def _refuse_typed(value: Mapping[str, Any], models: Iterable[type[BaseModel]], path: str) -> None:
    fields = {
        (info.alias or name).lower(): (info.alias or name, info)
        for model in models
        for name, info in model.model_fields.items()
    }
    for key, inner in value.items():
        if key.lower() not in fields:
            continue
        alias, info = fields[key.lower()]
        below = tuple(models_in(info.annotation))
        if not (below and isinstance(inner, Mapping)):
            raise ValueError(f"{path}{key} has a field of its own in the manifest: write {path}{alias} there")
        _refuse_typed(inner, below, f"{path}{alias}.")


def _refuse_secrets(value: Any, path: str) -> None:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if SECRET.fullmatch(key):
                raise ValueError(f"{path}{key} looks like a secret; secrets do not belong in git")
            _refuse_secrets(inner, f"{path}{key}.")
    elif isinstance(value, list):
        for inner in value:
            _refuse_secrets(inner, path)
