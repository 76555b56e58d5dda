"""Another components file on a cluster: what it no longer has goes, and nothing that is in use."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from localcloud.kubernetes.world.kinds import BUILT_IN
from localcloud.kubernetes.world.object_store import At, WriteMode
from localcloud.memory.crashes import Counter, Tripwire
from shared.kubernetes.flux_objects import INVENTORY, listed_in
from shared.resource_ids import ObjectRef
from tests.support.flux_components import (
    NAMESPACE,
    RECEIVER,
    brought,
    definition,
    deployment,
    fleet,
    installed,
    named,
)
from tests.support.one_cluster import api, live, world
from tests.support.sample import sample

pytestmark = pytest.mark.lives

OLD = (
    named("ServiceAccount", "old-controller"),
    deployment("old-controller"),
    named("ConfigMap", "old-settings", data={"a": "b"}),
)
CONTROLLER = ObjectRef("apps/v1", "Deployment", "old-controller", NAMESPACE)
ACCOUNT = ObjectRef("v1", "ServiceAccount", "old-controller", NAMESPACE)
SETTINGS = ObjectRef("v1", "ConfigMap", "old-settings", NAMESPACE)
RECEIVERS = ObjectRef("apiextensions.k8s.io/v1", "CustomResourceDefinition", "receivers.example.org")


def test_what_a_new_components_file_lacks_is_removed() -> None:
    cloud = installed(*OLD)
    assert {CONTROLLER, ACCOUNT, SETTINGS} <= listed_in(live(cloud, INVENTORY))
    said = brought(cloud, fleet())
    assert [api(cloud).get(ref) for ref in (CONTROLLER, ACCOUNT, SETTINGS)] == [None, None, None]
    assert "removed Deployment old-controller in flux-system" in said
    assert not {CONTROLLER, ACCOUNT, SETTINGS} & listed_in(live(cloud, INVENTORY))
    assert api(cloud).get(ObjectRef("apps/v1", "Deployment", "source-controller", NAMESPACE))


def test_an_object_that_is_not_ours_is_not_removed_although_the_inventory_lists_it() -> None:
    cloud = installed(*OLD)
    kind = next(kind for kind in BUILT_IN if kind.kind == "ConfigMap")
    at = At(kind, SETTINGS.name, NAMESPACE)
    world(cloud).delete(at)
    world(cloud).create(kind, NAMESPACE, {"metadata": {"name": SETTINGS.name}, "data": {"theirs": "1"}})
    brought(cloud, fleet())
    assert live(cloud, SETTINGS)["data"] == {"theirs": "1"}
    assert api(cloud).get(CONTROLLER) is None


def test_a_copy_that_somebody_made_with_our_annotations_is_not_removed() -> None:
    cloud = installed(*OLD)
    kind = next(kind for kind in BUILT_IN if kind.kind == "ConfigMap")
    copied = {"name": SETTINGS.name, "annotations": live(cloud, SETTINGS)["metadata"]["annotations"]}
    world(cloud).delete(At(kind, SETTINGS.name, NAMESPACE))
    world(cloud).create(kind, NAMESPACE, {"metadata": copied, "data": {"theirs": "1"}})
    brought(cloud, fleet(named("ConfigMap", "other")))
    assert live(cloud, SETTINGS)["data"] == {"theirs": "1"}
    assert api(cloud).get(CONTROLLER) is None


def test_what_an_inventory_that_somebody_deleted_listed_stays() -> None:
    cloud = installed(*OLD)
    kind = next(kind for kind in BUILT_IN if kind.kind == "ConfigMap")
    world(cloud).delete(At(kind, INVENTORY.name, NAMESPACE))
    said = brought(cloud, fleet(named("ConfigMap", "other")))
    assert api(cloud).get(SETTINGS) is not None
    assert "removed" not in said


def test_a_former_component_that_another_manager_applies_by_now_stays() -> None:
    cloud = installed(*OLD)
    kind = next(kind for kind in BUILT_IN if kind.kind == "ConfigMap")
    theirs = named("ConfigMap", SETTINGS.name, data={"a": "b"})
    write = WriteMode(manager="kustomize-controller")
    world(cloud).apply(At(kind, SETTINGS.name, NAMESPACE), theirs, write)
    said = brought(cloud, fleet())
    assert live(cloud, SETTINGS)["data"] == {"a": "b"}
    assert (
        "ConfigMap old-settings in flux-system stays, because it is also applied by kustomize-controller"
        in said
    )
    assert SETTINGS not in listed_in(live(cloud, INVENTORY))


def test_a_namespace_is_never_removed() -> None:
    extra = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "extra"}}
    cloud = installed(extra)
    brought(cloud, fleet())
    assert api(cloud).get(ObjectRef("v1", "Namespace", "extra"))


def test_a_definition_without_objects_is_removed_and_one_with_objects_stays_until_they_are_deleted() -> None:
    cloud = installed(definition("v1", storage="v1"))
    api(cloud).apply(RECEIVER)
    said = brought(cloud, fleet())
    assert (
        "CustomResourceDefinition receivers.example.org stays, because 1 object of it exists: "
        "the next job removes it without them" in said
    )
    receiver = live(cloud, ObjectRef("example.org/v1", "Receiver", "a", "default"))
    assert RECEIVERS in listed_in(live(cloud, INVENTORY))
    api(cloud).delete(receiver)
    brought(cloud, fleet(named("ConfigMap", "other")))
    assert api(cloud).get(RECEIVERS) is None


def test_objects_are_stored_in_the_new_version_before_a_definition_drops_the_old_one() -> None:
    cloud = installed(definition("v1beta1", storage="v1beta1"))
    api(cloud).apply({**RECEIVER, "apiVersion": "example.org/v1beta1", "spec": {"events": ["ping"]}})
    assert live(cloud, RECEIVERS)["status"]["storedVersions"] == ["v1beta1"]
    brought(cloud, fleet(definition("v1", storage="v1")))
    after = live(cloud, RECEIVERS)
    assert [version["name"] for version in after["spec"]["versions"]] == ["v1"]
    assert after["status"]["storedVersions"] == ["v1"]
    receiver = live(cloud, ObjectRef("example.org/v1", "Receiver", "a", "default"))
    assert receiver["spec"] == {"events": ["ping"]}


def test_a_version_in_which_nothing_was_ever_stored_is_dropped_at_once() -> None:
    cloud = installed(definition("v1", "v1beta1", storage="v1"))
    version = world(cloud).version
    brought(cloud, fleet(definition("v1", storage="v1")))
    assert world(cloud).version > version
    assert [version["name"] for version in live(cloud, RECEIVERS)["spec"]["versions"]] == ["v1"]


def upgraded(counter: Counter) -> None:
    """Bring about components without former ones, and with another stored version, while the host dies."""
    cloud = installed(*OLD, definition("v1beta1", storage="v1beta1"))
    api(cloud).apply({**RECEIVER, "apiVersion": "example.org/v1beta1", "spec": {"events": ["ping"]}})
    wired: Any = Tripwire(cloud.ports.kubernetes, counter)
    cloud.with_ports(lambda ports: replace(ports, kubernetes=wired))
    brought(cloud, fleet(definition("v1", storage="v1")))
    assert [api(cloud).get(ref) for ref in (CONTROLLER, ACCOUNT, SETTINGS)] == [None, None, None]
    assert live(cloud, RECEIVERS)["status"]["storedVersions"] == ["v1"]
    receiver = live(cloud, ObjectRef("example.org/v1", "Receiver", "a", "default"))
    assert receiver["spec"] == {"events": ["ping"]}
    assert listed_in(live(cloud, INVENTORY)).isdisjoint({CONTROLLER, ACCOUNT, SETTINGS})


def test_an_upgrade_of_flux_survives_a_crash_at_any_call_to_the_cluster() -> None:
    counted = Counter()
    upgraded(counted)
    assert counted.calls > 40
    for point in sample("upgrades of Flux", range(2 * counted.calls), 6):
        upgraded(Counter(point))
