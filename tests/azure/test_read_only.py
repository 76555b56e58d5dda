"""A PUT has nothing that only Azure writes: the tables are those of the management library's models."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator
from typing import Any

import pytest
from azure.mgmt.containerservice import models
from azure.mgmt.containerservice._utils.model_base import Model, _RestField
from azure.mgmt.containerservice.models import _models

from shared.azure.changes.comparison import CLUSTER, POOL, writable_cluster, writable_pool
from tests.support.arm_bodies import OWNER, cluster_body, created, desired, pool, pool_body

NAMES = {**vars(_models), "_models": models}


def declared(kind: type[Any], what: type[Any] | None = None) -> Iterator[tuple[str, Any]]:
    """Yield the attributes of a model and its bases; their annotations without ``what``."""
    for base in reversed(kind.__mro__):
        if what is None:
            yield from getattr(base, "__annotations__", {}).items()
        else:
            yield from ((name, value) for name, value in vars(base).items() if isinstance(value, what))


def models_in(annotation: Any) -> Iterator[tuple[tuple[str, ...], type[Any]]]:
    """Yield each model in an annotation, with the way to it through lists and objects."""
    if isinstance(annotation, str):
        annotation = eval(annotation, NAMES)  # noqa: S307 - the library's own annotations
    if isinstance(annotation, typing.ForwardRef):
        annotation = eval(annotation.__forward_arg__, NAMES)  # noqa: S307
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        for document in inner:
            yield from models_in(document)
    elif origin in (list, dict):
        step = "[]" if origin is list else "*"
        yield from (((step, *way), model) for way, model in models_in(inner[-1]))
    elif isinstance(annotation, type) and issubclass(annotation, Model):
        yield (), annotation


def read_only(kind: type[Any], path: tuple[str, ...] = (), above: tuple[Any, ...] = ()) -> Iterator[str]:
    """Yield the path of each property that a model marks as read-only."""
    kind()  # the library names the properties when a model is first created
    annotations = dict(declared(kind))
    for name, field in declared(kind, _RestField):
        place = (*path, field._rest_name)
        if field._visibility == ["read"]:
            yield ".".join(place)
            continue
        for way, model in models_in(annotations[name]):
            if model not in above:
                yield from read_only(model, (*place, *way), (*above, model))


def test_the_tables_name_what_the_models_mark_as_read_only() -> None:
    of_clusters = set(read_only(models.ManagedCluster))
    of_their_pools = {path for path in of_clusters if path.startswith("properties.agentPoolProfiles.")}
    assert set(CLUSTER) == of_clusters - of_their_pools
    assert set(POOL) == {path.removeprefix("properties.") for path in read_only(models.AgentPool)}
    assert {path.removeprefix("properties.agentPoolProfiles.[].") for path in of_their_pools} <= set(POOL)


def marked(value: Any, kind: type[Any]) -> Iterator[str]:
    """Yield the read-only properties of a model that a body has."""
    for path in read_only(kind):
        found = [value]
        for step in path.split("."):
            below: list[Any] = []
            for document in found:
                if step == "[]":
                    below += document if isinstance(document, list) else []
                elif step == "*":
                    below += document.values() if isinstance(document, dict) else []
                elif isinstance(document, dict) and document.get(step) is not None:
                    below.append(document[step])
            found = below
        if found:
            yield path


def filled(kind: type[Any], above: tuple[Any, ...] = ()) -> dict[str, Any]:
    """Return a document with every property of a model; objects have one key, lists one item."""
    kind()
    annotations, document = dict(declared(kind)), dict[str, Any]()
    for name, field in declared(kind, _RestField):
        value: Any = "x"
        for way, model in models_in(annotations[name]):
            value = filled(model, (*above, model)) if model not in above else {}
            for step in reversed(way):
                value = [value] if step == "[]" else {"key": value}
        document[field._rest_name] = value
    return document


def test_a_body_of_everything_that_azure_can_show_has_nothing_read_only() -> None:
    cluster = filled(models.ManagedCluster)
    assert len(list(marked(cluster, models.ManagedCluster))) > 25
    body = writable_cluster(cluster)
    assert list(marked(body, models.ManagedCluster)) == []
    assert "agentPoolProfiles" not in body["properties"]
    assert body["properties"]["networkProfile"]["loadBalancerProfile"]["outboundIPs"]
    profile = {"name": "one", **filled(models.AgentPool)["properties"]}
    assert list(marked({"properties": writable_pool(profile)}, models.AgentPool)) == []


@pytest.mark.parametrize("users", [False, True])
def test_what_was_read_of_a_cluster_is_written_back_without_azures_own(users: bool) -> None:
    identity = (
        "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/ids/providers"
        "/Microsoft.ManagedIdentity/userAssignedIdentities/one"
    )
    fields: dict[str, Any] = {
        "oidcIssuerProfile": {"enabled": True},
        "addonProfiles": {"azurepolicy": {"enabled": True}},
        "nodePools": [pool()],
    }
    if users:
        fields["identity"] = {"type": "UserAssigned", "userAssignedIdentity": identity}
    live = created(desired(**fields))
    balancer = live["properties"]["networkProfile"]["loadBalancerProfile"]
    balancer["effectiveOutboundIPs"] = [{"id": "an address"}]
    assert len(list(marked(live, models.ManagedCluster))) >= 8
    body = cluster_body(desired(**fields, tags={"a": "b"}), OWNER, live)
    assert body is not None
    assert list(marked(body, models.ManagedCluster)) == []
    profile = live["properties"]["agentPoolProfiles"][0]
    bigger = desired(**{**fields, "nodePools": [pool(count=2)]})
    changed = pool_body(bigger.spec.node_pools[0], bigger, OWNER, profile)
    assert changed is not None
    assert list(marked(changed, models.AgentPool)) == []
