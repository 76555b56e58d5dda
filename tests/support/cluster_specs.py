"""Generated specs of clusters: every typed field, with values that its own rule admits."""

from __future__ import annotations

from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError

from shared.language.model.cluster.spec import ClusterProperties, ClusterSpec
from shared.language.model.node_pool import NodePool
from shared.language.model.node_pool_parts import VirtualMachinesProfile
from shared.language.resolve.rules.aks_rules import broken_rules

_GROUP = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/rg/providers"
SAMPLES: tuple[Any, ...] = (
    *("1.36", "1.36.2", "Abc", "asm-1-27", "10m", "1h30m", "10", "0.5", "true", "false", "33%", "aGk="),
    *("10.9.0.0/16", "192.0.2.7", "198.51.100.0/24", "2001:db8::/64", "00000000-0000-0000-0000-00000000000A"),
    *("2026-05-01T13:00:00Z", "2026-05-01", "01:00", "+01:00", "http://proxy.example:3128", "32768 60999"),
    *(
        "ssh-rsa AAAA key",
        "https://v.vault.azure.net/keys/k/1",
        "system",
        "Standard_D4s_v5",
        "k=v:NoSchedule",
    ),
    *("10s", "net.*"),
    *(1, 4, 8, 28, 30, 64, 100, 1440, 70_000, 1_000_000, -1, 0.25),
    f"{_GROUP}/Microsoft.Network/virtualNetworks/V/subnets/S",
    *(f"{_GROUP}/Microsoft.Network/{kind}/X" for kind in ("publicIPAddresses", "publicIPPrefixes")),
    *(f"{_GROUP}/Microsoft.Network/{kind}/X" for kind in ("privateDnsZones", "applicationGateways")),
    f"{_GROUP}/Microsoft.Network/applicationSecurityGroups/X",
    f"{_GROUP}/Microsoft.ManagedIdentity/userAssignedIdentities/X",
    f"{_GROUP}/Microsoft.OperationalInsights/workspaces/X",
    f"{_GROUP}/Microsoft.KeyVault/vaults/X",
    f"{_GROUP}/Microsoft.ContainerRegistry/registries/X",
    f"{_GROUP}/Microsoft.ContainerService/snapshots/X",
    *(f"{_GROUP}/Microsoft.Compute/{k}/X" for k in ("diskEncryptionSets", "hostGroups")),
    *(f"{_GROUP}/Microsoft.Compute/{k}/X" for k in ("proximityPlacementGroups", "capacityReservationGroups")),
)


def _good(adapter: TypeAdapter[Any], value: Any) -> bool:
    try:
        adapter.validate_python(value)
    except ValidationError:
        return False
    return True


def values(annotation: Any) -> st.SearchStrategy[Any]:
    """Return the values of a field by its annotation; no strategy where only None fits."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return st.one_of([values(kind) for kind in inner if kind is not NoneType])
    if origin is Literal:
        return st.sampled_from(inner)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return sections(annotation)
    base = inner[0] if origin is Annotated else annotation
    if get_origin(base) is Literal:
        return st.sampled_from(get_args(base))
    if get_origin(base) is tuple:
        lists = st.lists(values(get_args(base)[0]), min_size=1, max_size=2, unique_by=repr)
        return lists.filter(lambda value: _good(TypeAdapter(annotation), value))
    if get_origin(base) is dict:
        return st.dictionaries(st.sampled_from(["a", "B"]), values(get_args(base)[1]), max_size=2)
    if base is bool:
        return st.booleans()
    adapter = TypeAdapter(annotation)
    good = [value for value in SAMPLES if _good(adapter, value)]
    assert good, f"no sample for {annotation}"
    return st.sampled_from(good)


@cache
def sections(model: type[BaseModel]) -> st.SearchStrategy[dict[str, Any]]:
    """Return good documents of a model; fields that do not go together are left out."""
    hints = get_type_hints(model, include_extras=True)
    needed: dict[str, Any] = {}
    free: dict[str, Any] = {}
    for name, info in model.model_fields.items():
        into = needed if info.is_required() else free
        into[info.alias or name] = values(hints[name])
    return st.fixed_dictionaries(needed, optional=free).filter(lambda value: _good(TypeAdapter(model), value))


def _options(model: type[BaseModel], leave: set[str]) -> dict[str, st.SearchStrategy[Any]]:
    hints = get_type_hints(model, include_extras=True)
    fields = {name: info for name, info in model.model_fields.items() if name not in leave}
    return {info.alias or name: values(hints[name]) for name, info in fields.items()}


_SIZES = st.one_of(
    st.fixed_dictionaries({"count": st.integers(1, 3)}),
    st.just({"minCount": 1, "maxCount": 4}),
)
_MACHINES = st.fixed_dictionaries(
    {"type": st.just("VirtualMachines"), "virtualMachinesProfile": values(VirtualMachinesProfile)}
)
_POOL = _options(
    NodePool,
    {
        *("name", "azure", "mode", "vm_size", "count", "min_count", "max_count"),
        *("type", "virtual_machines_profile", "rollback"),
    },
)
_CLUSTER = _options(ClusterProperties, {"kubernetes_version"})
_TAGS = st.dictionaries(st.sampled_from(["Cost", "team"]), st.sampled_from(["A", "b"]), max_size=2)
_UNTYPED = st.fixed_dictionaries(
    {},
    optional={
        "podIdentityProfile": st.sampled_from([{"enabled": False}, {"allowNetworkPluginKubenet": True}]),
        "privateLinkResources": st.just([{"name": "management", "groupId": "management"}]),
    },
)
"""Properties of Azure that a manifest has no field for."""


def _some(options: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """Return documents with up to four of the fields, so that most of them go together."""
    names = st.sets(st.sampled_from(sorted(options)), max_size=4).map(sorted)
    return names.flatmap(lambda chosen: st.fixed_dictionaries({name: options[name] for name in chosen}))


def _pool(name: str, mode: str) -> st.SearchStrategy[dict[str, Any]]:
    scale_set = _SIZES.map(lambda size: {"vmSize": "Standard_D4s_v5", **size})
    parts = st.tuples(st.just({"name": name, "mode": mode}), scale_set | _MACHINES, _some(_POOL))
    merged = parts.map(lambda found: {key: value for part in found for key, value in part.items()})
    return merged.filter(lambda value: _good(TypeAdapter(NodePool), value))


@st.composite
def specs(draw: st.DrawFn) -> dict[str, Any]:
    """Return a good spec of a cluster with one or two pools."""
    pools = [draw(_pool("system", "System")), *draw(st.lists(_pool("apps", "User"), max_size=1))]
    extra = draw(_UNTYPED)
    return {
        "subscriptionId": "00000000-0000-0000-0000-000000000001",
        "resourceGroup": "rg-one",
        "location": "eastus",
        "kubernetesVersion": draw(st.sampled_from(["1.36", "1.36.2"])),
        **draw(_some(_CLUSTER)),
        "tags": draw(_TAGS),
        "nodePools": pools,
        "flux": {"repository": "https://github.com/example/fleet", "path": "./platform"},
        **({"azure": {"properties": extra}} if extra else {}),
    }


def _allowed(spec: dict[str, Any]) -> bool:
    return _good(TypeAdapter(ClusterSpec), spec) and not any(broken_rules(ClusterSpec.model_validate(spec)))


SPECS = specs().filter(_allowed)
