"""A real API server takes every FluxInstance of Roadstead, by the operator's own definition and rules."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

import pytest

from shared.kubernetes.flux_instance import INSTANCE, instance_object
from shared.kubernetes.flux_lockdown import identity_kept_by_operator, keeps_identity
from shared.language.model.base import models_in
from shared.language.model.cluster.flux import FluxInstance
from tests.authority.operator_definitions import operator_definitions
from tests.authority.real_cluster import RealCluster
from tests.authority.real_world import Refused
from tests.support.operator_clusters import OPERATOR, SHOP, operated
from tests.support.resolved_fleets import resolved
from tests.support.sources import CLIENT, WITH_IDENTITY

_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_INSTANCES = "/apis/fluxcd.controlplane.io/v1/namespaces/default/fluxinstances"
_STRICT = {"fieldManager": "roadstead", "fieldValidation": "Strict", "force": "true"}
EVERYTHING = """\
components: [source-controller, kustomize-controller, helm-controller, notification-controller, \
image-reflector-controller, image-automation-controller, source-watcher], \
cluster: {size: large, domain: cluster.local, networkPolicy: false, objectLevelWorkloadIdentity: true}, \
storage: {class: managed-csi, size: 10Gi}, \
kustomize: {patches: [{target: {kind: Deployment, name: source-controller}, patch: "[]"}]}"""
IDENTITY = f"workloadIdentity: {{clientId: {CLIENT}}}"
TENANT = "00000000-0000-0000-0000-000000000007"


@pytest.fixture(scope="module")
def real(cluster: RealCluster) -> Iterator[RealCluster]:
    """Return a cluster with the kinds of the operator."""
    for definition in operator_definitions():
        cluster.world.call("POST", _DEFINITIONS, definition)
    deadline = time.monotonic() + 60
    while not _is_served(cluster):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    yield cluster
    for definition in operator_definitions():
        cluster.world.call("DELETE", f"{_DEFINITIONS}/{definition['metadata']['name']}")


def _is_served(cluster: RealCluster) -> bool:
    try:
        return "items" in cluster.world.call("GET", _INSTANCES)
    except Refused:
        return False


def applied(cluster: RealCluster, body: dict[str, Any]) -> dict[str, Any]:
    """Apply an instance as Roadstead does, in a namespace that every cluster has."""
    name, moved = body["metadata"]["name"], {**body["metadata"], "namespace": "default"}
    path = f"{_INSTANCES}/{name}"
    content = {**body, "metadata": moved}
    return cluster.world.call("PATCH", path, content, _STRICT, "application/apply-patch+yaml")


def of_manifest(files: dict[str, bytes]) -> dict[str, Any]:
    """Return the instance of a cluster, whose identity no team's object has where both come together."""
    cluster = resolved(files).clusters["one"]
    instance = cluster.spec.flux.instance
    assert instance is not None
    kept = keeps_identity(cluster)
    fields = identity_kept_by_operator(OPERATOR, instance.distribution.version) if kept else {}
    acts_as = cluster.spec.flux.workload_identity
    ids = {"client_id": acts_as.named if acts_as else "", "tenant_id": TENANT if kept else ""}
    return instance_object(cluster, instance, identities=fields, **ids)


@pytest.mark.parametrize(
    "files",
    [
        operated(),
        operated("2.8.6", instance=EVERYTHING),
        operated() | {"systems/shop.yaml": SHOP},
        operated(flux=IDENTITY, extra=WITH_IDENTITY),
        operated(flux=IDENTITY, extra=WITH_IDENTITY) | {"systems/shop.yaml": SHOP},
    ],
    ids=["the least", "every field", "locked down", "workload identity", "an identity that teams have not"],
)
def test_what_roadstead_applies_is_taken_as_it_is(real: RealCluster, files: dict[str, bytes]) -> None:
    body = of_manifest(files)
    assert body["apiVersion"] == INSTANCE.api_version
    spec = applied(real, body)["spec"]
    assert _within(body["spec"], spec)


def _within(given: Any, found: Any) -> bool:
    """Return whether a value has what was applied; the definition adds its defaults."""
    if isinstance(given, dict):
        return all(key in found and _within(value, found[key]) for key, value in given.items())
    return bool(given == found)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("metadata", "name"), "other", "the only accepted name for a FluxInstance is 'flux'"),
        (("spec", "components"), ["other-controller"], "Unsupported value"),
        (("spec", "unknown"), True, "field not declared in schema"),
        (("spec", "distribution"), {"version": "2.8.x"}, "spec.distribution.registry: Required value"),
    ],
)
def test_the_definition_refuses_what_is_no_instance(
    real: RealCluster, path: tuple[str, str], value: Any, message: str
) -> None:
    body = of_manifest(operated())
    part = {**body[path[0]], path[1]: value}
    with pytest.raises(Refused, match=message):
        applied(real, {**body, path[0]: part})


def test_a_manifest_takes_the_values_that_the_definition_takes() -> None:
    [instances] = [
        operator_definition
        for operator_definition in operator_definitions()
        if operator_definition["spec"]["names"]["kind"] == "FluxInstance"
    ]
    schema = instances["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    compared = list(_choices(FluxInstance, schema))
    assert len(compared) == 3
    assert all(ours == theirs for ours, theirs in compared)


def _choices(model: Any, schema: dict[str, Any]) -> Iterator[tuple[set[str], set[str]]]:
    """Yield the values of each field that is one of some, here and in the definition."""
    for name, info in model.model_fields.items():
        property_schema = schema["properties"][info.alias or name]
        theirs = property_schema.get("enum") or property_schema.get("items", {}).get("enum")
        if theirs:
            yield _literals(info.annotation), {*theirs}
        for inner in models_in(info.annotation):
            below = property_schema.get("items", property_schema)
            if "properties" in below and not theirs:
                yield from _choices(inner, below) if name != "patches" else ()


def _literals(annotation: Any) -> set[str]:
    if get_origin(annotation) is Literal:
        return {*get_args(annotation)}
    return {value for inner in get_args(annotation) for value in _literals(inner)}
