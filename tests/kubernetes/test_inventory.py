"""The inventory of Flux's components and the versions of definitions: what goes, and in which order."""

from __future__ import annotations

from typing import Any

import pytest

from shared.kubernetes.flux_instance import bridge, dropped_versions, kind_in, migrated, storage_version
from shared.kubernetes.flux_objects import (
    in_order_of_removal,
    inventory_of,
    is_applied,
    is_ours,
    listed_in,
    removable,
    stamped,
)
from shared.resource_ids import ObjectRef

ACCOUNT = ObjectRef("v1", "ServiceAccount", "a", "flux-system")
CONTROLLER = ObjectRef("apps/v1", "Deployment", "a", "flux-system")
DEFINITION = ObjectRef("apiextensions.k8s.io/v1", "CustomResourceDefinition", "as.example.org")
NAMESPACE = ObjectRef("v1", "Namespace", "flux-system")
ROLE = ObjectRef("rbac.authorization.k8s.io/v1", "ClusterRole", "a")


def test_an_inventory_is_read_as_it_was_written_in_any_order() -> None:
    refs = frozenset({ACCOUNT, CONTROLLER, DEFINITION})
    assert listed_in(inventory_of(refs)) == refs
    assert inventory_of([ACCOUNT, ROLE]) == inventory_of([ROLE, ACCOUNT])
    assert is_ours(inventory_of(refs))


@pytest.mark.parametrize("content", ["", "[", '"text"', '[{"kind": "Secret"}]'])
def test_an_unreadable_inventory_lists_nothing_so_that_nothing_is_removed(content: str) -> None:
    assert listed_in({"metadata": {}, "data": {"objects": content}}) == frozenset()
    assert listed_in({"metadata": {}}) == frozenset()


def test_workloads_go_first_definitions_last_and_namespaces_never() -> None:
    refs = [DEFINITION, ROLE, NAMESPACE, ACCOUNT, CONTROLLER]
    assert in_order_of_removal(refs) == [CONTROLLER, ROLE, ACCOUNT, DEFINITION]
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "flux-system"}}
    assert removable([manifest]) == frozenset()


def version(name: str, *, storage: bool = False, served: bool = True) -> dict[str, Any]:
    return {
        "name": name,
        "served": served,
        "storage": storage,
        "schema": {"openAPIV3Schema": {"type": "object"}},
    }


def definition(*versions: dict[str, Any], stored: tuple[str, ...] = ()) -> dict[str, Any]:
    spec = {"group": "example.org", "names": {"kind": "Receiver"}, "versions": list(versions)}
    manifest = {
        "metadata": {"name": "receivers.example.org"},
        "kind": "CustomResourceDefinition",
        "spec": spec,
    }
    return {
        **stamped(manifest),
        "status": {"storedVersions": list(stored), "acceptedNames": {"kind": "Receiver"}},
    }


NEW = definition(version("v1", storage=True))


def test_only_a_version_in_which_objects_may_be_stored_is_dropped() -> None:
    live = definition(version("v1", storage=True), version("v1beta1"), stored=("v1",))
    assert dropped_versions(NEW, live) == []
    live = definition(version("v1", storage=True), version("v1beta1"), stored=("v1beta1", "v1"))
    assert dropped_versions(NEW, live) == ["v1beta1"]


def test_a_definition_that_kubernetes_has_not_established_drops_nothing() -> None:
    assert dropped_versions(NEW, {"metadata": {}, "spec": {}}) == []


def test_the_one_in_between_has_the_versions_of_both_and_stores_in_the_new_one() -> None:
    live = definition(
        version("v1beta1", storage=True), version("v1alpha1", served=False), stored=("v1beta1",)
    )
    both = bridge(NEW, live)
    shown = [
        (document["name"], document["served"], document["storage"]) for document in both["spec"]["versions"]
    ]
    assert shown == [("v1", True, True), ("v1beta1", True, False)]
    assert storage_version(both) == "v1"
    assert kind_in(both, "v1") == ("example.org/v1", "Receiver")
    assert is_applied(both, bridge(NEW, live))
    assert not is_applied(NEW, both)


def test_a_migrated_definition_names_one_stored_version_and_keeps_the_rest() -> None:
    live = definition(version("v1", storage=True), stored=("v1beta1", "v1"))
    assert migrated(live, "v1")["status"] == {"storedVersions": ["v1"], "acceptedNames": {"kind": "Receiver"}}
    assert migrated(live, "v1")["spec"] == live["spec"]
