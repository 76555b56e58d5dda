"""ARM JSON as a spec: properties that have a field, the rest, and no defaults that Azure shows by itself.

ARM ignores the letter case of names and enums; the result has the spelling of the models.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

from pydantic import BaseModel, TypeAdapter, ValidationError

from shared.azure.changes.comparison import matches, same
from shared.frozen import dataclass, field
from shared.json_tree import Json, Path
from shared.language.model.arm_types import SECRET
from shared.language.model.cluster.spec import ClusterProperties
from shared.language.model.node_pool import NodePool
from shared.language.resolve.manifest_file import PLACEHOLDER


@dataclass(frozen=True)
class FieldPlace:
    """The manifest's field for a property: its name and type, and the model of a value that is an object."""

    name: str
    adapter: TypeAdapter[Any]
    kind: Any
    model_of_value: type[BaseModel] | None


@dataclass
class Parts:
    """A resource that is split; ``left`` has a sentence for everything that a manifest cannot express.

    ``read_only`` are patterns of the properties that only Azure writes.
    """

    read_only: tuple[str, ...]
    left: list[str] = field(default_factory=list)

    def take(
        self, properties: Json, model: type[BaseModel], path: Path = (), where: str = ""
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what a model has fields for, and the rest; ``where`` begins the names in ``left``."""
        typed: dict[str, Any] = {}
        rest: dict[str, Any] = {}
        for key, value in properties.items():
            place = places(model).get(key.lower())
            at = (*path, place.name if place else key)
            if empty(value) or matches(at, self.read_only):
                continue
            if place is None:
                rest |= self._untyped(key, value, where + ".".join(at))
            elif place.model_of_value is not None and isinstance(value, Mapping):
                below, remainder = self.take(value, place.model_of_value, at, where)
                if below:
                    self._try(place, below, where + ".".join(at), typed)
                if remainder:
                    rest[place.name] = remainder
            else:
                self._leaf(place, value, where + ".".join(at), typed)
        in_order = (place.name for place in places(model).values())
        return {name: typed[name] for name in in_order if name in typed}, rest

    def _leaf(self, place: FieldPlace, value: Any, name: str, typed: dict[str, Any]) -> None:
        spelled = _spelled(place.kind, value)
        if isinstance(value, str) and PLACEHOLDER.search(value):
            self.left.append(f"{name}: a manifest would fill in the braces of {value}")
            return
        if isinstance(value, Mapping):
            for key, inner in value.items():  # labels and tags: an invalid one does not affect the others
                self._try(place, {key: inner}, f"{name}.{key}", typed)
        else:
            self._try(place, spelled, name, typed)

    def _try(self, place: FieldPlace, value: Any, name: str, typed: dict[str, Any]) -> None:
        try:
            place.adapter.validate_python(value)
        except ValidationError as error:
            self.left.append(f"{name}: {first_message(error)}")
            return
        typed[place.name] = {**typed.get(place.name, {}), **value} if isinstance(value, Mapping) else value

    def _untyped(self, key: str, value: Any, name: str) -> dict[str, Any]:
        if SECRET.fullmatch(key) or (isinstance(value, Mapping) and any(map(SECRET.fullmatch, _keys(value)))):
            self.left.append(f"{name}: it looks like a secret, and secrets do not belong in git")
            return {}
        rest = without_empty(value)
        return {} if empty(rest) else {key: rest}


def empty(value: Any) -> bool:
    """Return whether a value is empty."""
    return value is None or value in ({}, [], "")


def without_empty(value: Any) -> Any:
    """Return a value without empty values, at any depth of its objects."""
    if not isinstance(value, Mapping):
        return value
    entries = {key: without_empty(inner) for key, inner in value.items()}
    return {key: inner for key, inner in entries.items() if not empty(inner)}


def first_message(error: ValidationError) -> str:
    """Return the first message of a validation error."""
    first = error.errors()[0]
    at = "".join(f".{step}" for step in first["loc"])
    message = str(first.get("ctx", {}).get("error") or first["msg"])
    return f"{at[1:]} {message}" if at else message


@cache
def places(model: type[BaseModel]) -> Mapping[str, FieldPlace]:
    """Return a model's fields by ARM's name in lower case."""
    hints = get_type_hints(model, include_extras=True)
    fields = {}
    for name, info in model.model_fields.items():
        kind = hints[name]
        alias = info.alias or name
        fields[alias.lower()] = FieldPlace(alias, TypeAdapter(kind), kind, _model_of(kind))
    return fields


def _model_of(kind: Any) -> type[BaseModel] | None:
    """Return the model of a field's value, None for lists, maps with free keys, and plain values."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind
    if get_origin(kind) in (tuple, dict, Literal):
        return None
    return next((model for inner in get_args(kind) if (model := _model_of(inner)) is not None), None)


def _spelled(kind: Any, value: Any) -> Any:
    """Return a value with the model's spelling where it is one of an enum."""
    if isinstance(value, list):
        return [_spelled(kind, item) for item in value]
    if not isinstance(value, str):
        return value
    return next((member for member in _members(kind) if str(member).lower() == value.lower()), value)


def _members(kind: Any) -> Iterator[Any]:
    if get_origin(kind) is Literal:
        yield from get_args(kind)
    else:
        for inner in get_args(kind):
            yield from _members(inner)


def _keys(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key)
            yield from _keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _keys(inner)


# Removes from a spec the defaults that ARM shows for every cluster.
#
# The defaults are those of learn.microsoft.com/rest/api/aks/managed-clusters and .../agent-pools.

DEFAULTS: Mapping[str, Any] = {
    "enableRBAC": True,
    "supportPlan": "KubernetesOfficial",
    "publicNetworkAccess": "Enabled",
    "networkProfile.networkDataplane": "azure",
    "networkProfile.outboundType": "loadBalancer",
    "networkProfile.loadBalancerSku": "standard",
    "networkProfile.ipFamilies": ["IPv4"],
    "networkProfile.loadBalancerProfile.managedOutboundIPs.count": 1,
    "networkProfile.loadBalancerProfile.backendPoolType": "NodeIPConfiguration",
    "networkProfile.loadBalancerProfile.idleTimeoutInMinutes": 30,
    "networkProfile.loadBalancerProfile.allocatedOutboundPorts": 0,
    "nodeProvisioningProfile.mode": "Manual",
    "nodeResourceGroupProfile.restrictionLevel": "Unrestricted",
    "bootstrapProfile.artifactSource": "Direct",
    "serviceMeshProfile.mode": "Disabled",
    "storageProfile.diskCSIDriver.version": "v1",
    "servicePrincipalProfile.clientId": "msi",
}
"""What ARM shows for a cluster whose manifest has no other value."""
POOL_DEFAULTS: Mapping[str, Any] = {
    "type": "VirtualMachineScaleSets",
    "mode": "User",
    "osType": "Linux",
    "osSKU": "Ubuntu",
    "kubeletDiskType": "OS",
    "powerState.code": "Running",
    "scaleSetPriority": "Regular",
    "scaleDownMode": "Delete",
    "workloadRuntime": "OCIContainer",
    "securityProfile.sshAccess": "LocalUser",
    "upgradeSettings.maxUnavailable": "0",
}
"""The same for a node pool. ``osDiskType`` has none: some sizes would make a new pool Ephemeral."""


def shortened(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a spec without defaults."""
    result: dict[str, Any] = {}
    for key, value in spec.items():
        place = places(ClusterProperties).get(key.lower())
        if key == "nodePools":
            result[key] = [_short_pool(pool) for pool in value]
        elif place is None:
            result[key] = value
        elif (small := without_defaults(value, place.model_of_value, DEFAULTS, (key,))) is not None:
            result[key] = small
    if result.get("identity") == {"type": "SystemAssigned"}:
        del result["identity"]
    return result


def _short_pool(pool: Mapping[str, Any]) -> dict[str, Any]:
    result = without_defaults(pool, NodePool, POOL_DEFAULTS, ())
    return result if isinstance(result, dict) else dict(pool)


def without_defaults(
    value: Any, model: type[BaseModel] | None, defaults: Mapping[str, Any], path: Path
) -> Any:
    """Return a value without defaults, None when nothing remains."""
    if not isinstance(value, Mapping):
        default = defaults.get(".".join(path))
        is_default = same(value, None, path) or (default is not None and same(value, default, path))
        return None if is_default else value
    result = {}
    for key, inner in value.items():
        place = places(model).get(key.lower()) if model else None
        if place is not None and place.model_of_value is None and isinstance(inner, Mapping):
            small: Any = inner  # labels and tags have no defaults
        else:
            small = without_defaults(inner, place.model_of_value if place else None, defaults, (*path, key))
        if not empty(small):
            result[key] = small
    return (result if _is_valid(result, model) else dict(value)) if result else None


def _is_valid(value: Mapping[str, Any], model: type[BaseModel] | None) -> bool:
    """Return whether an object is valid without its defaults: a model may require a field."""
    try:
        return model is None or bool(model.model_validate(value))
    except ValidationError:
        return False
