"""Generated bodies through the models of Azure's library and the local Azure: no unlisted disagreement.

``make deep`` sends thousands; each commit sends some hundred. A disagreement is a rule of the tables of
refusals or a code of AKS, and docs/local-azure-refusals.md or docs/local-cloud.md lists it.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from enum import Enum
from pathlib import Path
from typing import Any, Union, get_args, get_origin

import pytest
from azure.core.exceptions import DeserializationError
from azure.mgmt.containerservice import models
from hypothesis import given, settings

from localcloud.azure import refusals_page
from localcloud.azure.world.arm_errors import AksError, ArmError
from localcloud.azure.world.azure_world import AzureWorld
from localcloud.common.clock import ManualClock
from localcloud.common.control_plane import NullPlane
from shared.json_tree import Json
from shared.resource_ids import ClusterId
from tests.support.arm_bodies import OWNER, cluster_body, desired, pool_body
from tests.support.cluster_specs import SPECS
from tests.support.sample import DEEP

_RAW: Mapping[Any, tuple[type, ...]] = {
    str: (str,),
    bool: (bool,),
    int: (int,),
    float: (int, float),
    bytes: (str,),
    datetime: (str,),
    date: (str,),
}
"""The JSON types of a declared type."""
_GROUP = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/rg/providers"
_NUMBERS = (1, 2, 5, 30, 100, 5000, 200000)
_SAMPLES: Mapping[Any, tuple[Any, ...]] = {
    str: ("a", "10m", "10s", "10", "33%", "true", "10.9.0.0/16", "aGk=", f"{_GROUP}/Microsoft.Network/x/y"),
    int: _NUMBERS,
    float: _NUMBERS,
    bytes: ("aGk=",),
    datetime: ("2026-05-01T13:00:00Z",),
    date: ("2026-05-01",),
}


def objection(model: type, body: Any, at: str = "") -> tuple[str, str] | None:
    """Return what the models of the library object to first: ("unknown" | "type" | "enum", path), or None."""
    if not isinstance(body, Mapping):
        return "type", at
    try:
        read = model(body)
    except (DeserializationError, ValueError, TypeError, AttributeError):
        return "type", at
    fields = {field._rest_name: attribute for attribute, field in read._attr_to_rest_field.items()}
    for key, value in body.items():
        if key not in fields:
            return "unknown", f"{at}.{key}"
        if value is None:
            continue
        try:
            found = getattr(read, fields[key])
        except (DeserializationError, ValueError, TypeError, AttributeError):
            return "type", f"{at}.{key}"
        problem = _held_against(_declared(model, fields[key])[0], found, value, f"{at}.{key}")
        if problem:
            return problem
    return None


def _held_against(declared: Any, found: Any, value: Any, at: str) -> tuple[str, str] | None:
    origin, inner = get_origin(declared), get_args(declared)
    if origin in (list, dict):
        if not isinstance(value, list if origin is list else Mapping):
            return "type", at
        values = [*value] if isinstance(value, list) else [*value.values()]
        items = [*found] if origin is list else [*found.values()]
        pairs = [
            (item, document) for item, document in zip(items, values, strict=True) if document is not None
        ]
        return next(filter(None, (_held_against(inner[-1], item, pair, at) for item, pair in pairs)), None)
    if origin is Union:
        if not isinstance(value, str):
            return "type", at
        return None if isinstance(found, Enum) or value == "" else ("enum", at)
    if declared in _RAW:
        fits = isinstance(value, _RAW[declared]) and isinstance(value, bool) is (declared is bool)
        wanted = declared if declared in (bytes, datetime, date) else object
        return None if fits and isinstance(found, wanted) else ("type", at)
    return objection(declared, value, at)


def _declared(model: type, attribute: str) -> tuple[Any, bool]:
    """Return the declared type of an attribute, and whether it is optional."""
    for parent in model.__mro__:
        if attribute in getattr(parent, "__annotations__", {}):
            return _resolved(parent.__annotations__[attribute])
    raise AssertionError(attribute)


def _resolved(declared: Any) -> tuple[Any, bool]:
    name = getattr(declared, "__forward_arg__", declared)
    if isinstance(name, str):
        return getattr(models, name.removeprefix("_models.")), False
    if get_origin(declared) is Union:
        inner = [document for document in get_args(declared) if document is not type(None)]
        optional = len(inner) < len(get_args(declared))
        if len(inner) == 1:
            return _resolved(inner[0])[0], optional
        return Union[inner[0], _resolved(inner[1])[0]], optional  # noqa: UP007
    if get_origin(declared) in (list, dict):
        item = _resolved(get_args(declared)[-1])[0]
        return (list[item] if get_origin(declared) is list else dict[str, item]), False  # type: ignore[valid-type]
    return declared, False


def fields_of(model: type) -> Iterator[tuple[str, Any, bool, bool]]:
    """Yield name, declared type, whether optional, and whether a caller may write it, of each field."""
    read = model({})
    for attribute, field in read._attr_to_rest_field.items():
        yield field._rest_name, *_declared(model, attribute), field._visibility != ["read"]


def generated(model: type, chance: random.Random) -> dict[str, Any]:
    """Return a body of a model: what it requires, and a few of its other fields."""
    settable = [(name, kind, optional) for name, kind, optional, writable in fields_of(model) if writable]
    free = [field for field in settable if field[2]]
    chosen = [field for field in settable if not field[2]] + chance.sample(
        free, min(len(free), chance.randint(1, 2))
    )
    return {name: _value(kind, chance) for name, kind, _ in chosen}


def _value(declared: Any, chance: random.Random) -> Any:
    origin, inner = get_origin(declared), get_args(declared)
    if origin is list:
        return [_value(inner[0], chance)]
    if origin is dict:
        return {chance.choice(["a", "azurepolicy", "omsagent"]): _value(inner[1], chance)}
    if origin is Union:
        return str(chance.choice([*inner[1]]).value)
    if declared is bool:
        return chance.random() < 0.5
    samples = _SAMPLES.get(declared)
    return chance.choice(samples) if samples else generated(declared, chance)


def mutated(body: Mapping[str, Any], chance: random.Random) -> dict[str, Any]:
    """Return a copy of a body with one unknown name, one wrong type, or one value that only Azure writes."""
    copy: dict[str, Any] = _copied(body)
    chosen = chance.choice(list(_objects(copy)))
    kind = chance.choice(["unknown", "type", "type"]) if chosen else "unknown"
    if kind == "unknown":
        chosen[chance.choice(["enabledd", "newProfile", "name2"])] = True
    else:
        key = chance.choice(sorted(chosen))
        chosen[key] = chance.choice(
            [value for value in (7, 1.5, True, "?", ["x"], {"x": 1}) if type(value) is not type(chosen[key])]
        )
    return copy


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects of a body that have fixed names, the first one included."""
    if isinstance(value, dict):
        yield value
        for key, item in value.items():
            if key not in (
                "tags",
                "nodeLabels",
                "userAssignedIdentities",
                "addonProfiles",
                "identityProfile",
            ):
                yield from _objects(item)
    elif isinstance(value, list):
        for item in value:
            yield from _objects(item)


pytestmark = pytest.mark.lives

DOCS = Path(__file__).parents[3] / "docs"
CLUSTER = ClusterId("00000000-0000-0000-0000-000000000001", "rg", "one")
WALKED, FROM_MANIFESTS, INVALID = (2400, 400, 1200) if DEEP else (240, 20, 120)
SYSTEM = {"name": "system", "mode": "System", "vmSize": "Standard_D4s_v5"}
MODELS = {
    "cluster": models.ManagedCluster,
    "update": models.ManagedCluster,
    "pool": models.AgentPool,
    "maintenance": models.MaintenanceConfiguration,
}


def walked(kind: str, chance: random.Random) -> dict[str, Any]:
    """Return a body that the models take, of a cluster, an update of one, a pool or a maintenance window."""
    if kind == "maintenance":
        return {"properties": generated(models.MaintenanceConfigurationProperties, chance)}
    if kind == "pool":
        profile = generated(models.ManagedClusterAgentPoolProfileProperties, chance)
        return {"properties": {"count": 1, **profile}}
    properties = generated(models.ManagedClusterProperties, chance)
    properties.pop("agentPoolProfiles", None)
    if kind == "update":
        return {"location": "westeurope", "properties": properties}
    whole = {"dnsPrefix": "one", "agentPoolProfiles": [SYSTEM], **properties}
    return {"location": "westeurope", "identity": {"type": "SystemAssigned"}, "properties": whole}


class Target:
    """A world with a cluster that takes pools, updates and maintenance windows."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.world = AzureWorld(self.clock, plane=NullPlane(), throttle=False)
        self.world.put_group(CLUSTER.subscription, CLUSTER.resource_group, {"location": "westeurope"})

    def send(self, kind: str, body: Json) -> Json:
        """Send a body; return what Azure shows then, or raise its refusal."""
        if kind != "cluster":
            self.world.put_cluster(CLUSTER, _BASE)
            self.clock.advance(10)
        if kind == "pool":
            self.world.put_pool(CLUSTER, "web", body)
            return self.world.get_pool(CLUSTER, "web")
        if kind == "maintenance":
            name = "aksManagedAutoUpgradeSchedule" if "maintenanceWindow" in str(body) else "default"
            self.world.put_maintenance(CLUSTER, name, body)
            return self.world.get_maintenance(CLUSTER, name)
        self.world.put_cluster(CLUSTER, body)
        self.clock.advance(10)
        return self.world.get_cluster(CLUSTER)


_BASE = {
    "location": "westeurope",
    "identity": {"type": "SystemAssigned"},
    "properties": {"dnsPrefix": "one", "agentPoolProfiles": [SYSTEM]},
}


def local(kind: str, body: Json) -> tuple[str, Json | None]:
    """Return the objection of the local Azure (a kind, a rule or a code), or what it shows."""
    try:
        return "", Target().send(kind, body)
    except ArmError as error:
        if error.code == "UnmarshalError":
            return ("unknown" if "unknown field" in error.message else "type"), None
        if " is none of " in error.message and error.code == "InvalidParameter":
            return "enum", None
        return (isinstance(error, AksError) and error.rule) or f"{error.code} {error.target}".strip(), None


def compared(kind: str, body: Json, found: Counter[str]) -> None:
    """Count how the models and the local Azure differ about a body."""
    found["bodies"] += 1
    problem = objection(MODELS[kind], body)
    refused, shown = local(kind, body)
    if problem is not None:
        found["invalid"] += 1
        print(kind, problem)
    if (problem[0] if problem else "") != refused:
        found[refused or f"accepted: {problem}"] += 1
    if shown is not None:
        found["accepted"] += 1
        strange = objection(MODELS[kind], shown)
        if strange is not None:
            found[f"shown {strange[1].removeprefix('.properties.')}"] += 1


def unlisted(found: Counter[str]) -> dict[str, int]:
    pages = "\n".join((DOCS / page).read_text() for page in ("local-azure-refusals.md", "local-cloud.md"))
    listed = set(re.findall(r"`([^`\n]+)`", pages)) | {"bodies", "invalid", "accepted"}
    return {key: count for key, count in found.items() if key not in listed}


def test_walked_bodies_are_taken_by_both_or_the_refusal_is_listed() -> None:
    chance, found = random.Random(1), Counter[str]()
    for number in range(WALKED):
        kind = ("cluster", "pool", "update", "cluster", "pool", "maintenance")[number % 6]
        compared(kind, walked(kind, chance), found)
    print(dict(found))
    assert found["bodies"] == WALKED
    assert found["invalid"] == 0
    assert found["accepted"] > WALKED / 3
    assert unlisted(found) == {}


def test_mutated_bodies_are_refused_by_both_for_the_same_reason() -> None:
    chance, found = random.Random(2), Counter[str]()
    while found["invalid"] < INVALID:
        kind = chance.choice(["cluster", "pool", "update", "maintenance"])
        compared(kind, mutated(walked(kind, chance), chance), found)
    print(dict(found))
    assert unlisted(found) == {}


def test_the_bodies_of_generated_manifests_are_taken_by_both_or_the_refusal_is_listed() -> None:
    found = Counter[str]()

    @settings(max_examples=FROM_MANIFESTS, database=None, derandomize=True, deadline=None)
    @given(SPECS)
    def send(spec: Mapping[str, Any]) -> None:
        cluster = desired(**spec)
        body = cluster_body(cluster, OWNER, None)
        assert body is not None
        compared("cluster", body, found)
        for pool in cluster.spec.node_pools[1:]:
            made = pool_body(pool, cluster, OWNER, None)
            assert made is not None
            compared("pool", made, found)

    sent: Callable[[], None] = send
    sent()
    print(dict(found))
    assert found["invalid"] == 0
    assert unlisted(found) == {}


def test_the_page_of_refusals_is_that_of_the_tables() -> None:
    page = (DOCS / "local-azure-refusals.md").read_text()
    assert page == refusals_page.page(), "make generate writes it again"
