"""A definition that drops a version in which objects are stored, and the one in between."""

from __future__ import annotations

from typing import Any

from shared.kubernetes.flux_instance import bridge, dropped_versions, kind_in, migrated, storage_version
from shared.kubernetes.flux_objects import is_applied, stamped


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
    shown = [(one["name"], one["served"], one["storage"]) for one in both["spec"]["versions"]]
    assert shown == [("v1", True, True), ("v1beta1", True, False)]
    assert storage_version(both) == "v1"
    assert kind_in(both, "v1") == ("example.org/v1", "Receiver")
    assert is_applied(both, bridge(NEW, live))
    assert not is_applied(NEW, both)


def test_a_migrated_definition_names_one_stored_version_and_keeps_the_rest() -> None:
    live = definition(version("v1", storage=True), stored=("v1beta1", "v1"))
    assert migrated(live, "v1")["status"] == {"storedVersions": ["v1"], "acceptedNames": {"kind": "Receiver"}}
    assert migrated(live, "v1")["spec"] == live["spec"]
