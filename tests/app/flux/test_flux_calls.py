"""How many calls to a cluster the components of Flux cost: by kinds, not by objects."""

from __future__ import annotations

from collections import Counter

from localcloud.kubernetes.world.kinds import BUILT_IN
from localcloud.kubernetes.world.object_store import At, WriteMode
from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record_parts import Phase
from shared.json_tree import Json
from shared.kubernetes.bootstrap_secrets import SECRETS_INVENTORY
from shared.kubernetes.flux_objects import FACTS, INVENTORY
from shared.resource_ids import ObjectRef
from tests.support.calls_inside import Calls, counted
from tests.support.flux_components import RECEIVER, brought, definition, fleet, installed, named
from tests.support.one_cluster import live, world
from tests.support.pipeline_runs import cloud_with, phases

EXTRA = tuple(named("ConfigMap", f"map-{number}", data={"a": "b"}) for number in range(20))
ONCE = (INVENTORY, SECRETS_INVENTORY, FACTS)
"""The objects of their kind that are read by themselves."""
CONTROLLERS = ["source-controller", "kustomize-controller"]
"""The Deployments of the example: the API server stores their CPU of "1000m" as "1"."""


def first_install(*more: Json) -> Calls:
    cloud = MemoryCloud(throttle=False)
    with counted(cloud) as calls:
        brought(cloud, fleet(*more))
    assert {document["metadata"]["name"] for document in more} <= set(calls.applied)
    return calls


def test_a_first_install_reads_as_often_for_twenty_more_objects_as_for_two() -> None:
    few, many = first_install(*EXTRA[:2]), first_install(*EXTRA)
    assert Counter(many.read) == Counter(few.read)
    assert Counter(many.listed) == Counter(few.listed)
    assert len(many.applied) == len(few.applied) + 18
    assert not [ref for ref in many.read if ref.kind in ("ConfigMap", "Deployment") and ref not in ONCE]


def test_a_check_of_equal_components_is_a_list_for_each_kind_and_tries_only_what_cannot_be_seen() -> None:
    cloud = installed(*EXTRA)
    with counted(cloud) as calls:
        brought(cloud, fleet(*EXTRA) | _tagged(cloud))
    assert Counter(calls.listed)["ConfigMap"] == 1
    assert calls.tried == CONTROLLERS
    assert calls.applied == ["flux-system", "flux-system"]
    assert not [ref for ref in calls.read if ref.kind == "ConfigMap" and ref not in ONCE]


def test_an_object_that_somebody_changed_is_the_only_one_that_is_tried_and_applied() -> None:
    cloud = installed(*EXTRA)
    kind = next(kind for kind in BUILT_IN if kind.kind == "ConfigMap")
    at = At(kind, "map-7", "flux-system")
    world(cloud).apply(at, {"data": {"a": "theirs"}}, WriteMode(manager="somebody", force=True))
    with counted(cloud) as calls:
        brought(cloud, fleet(*EXTRA) | _tagged(cloud))
    assert calls.tried == [*CONTROLLERS, "map-7"]
    assert calls.applied == ["map-7", "flux-system", "flux-system"]
    assert live(cloud, ObjectRef("v1", "ConfigMap", "map-7", "flux-system"))["data"] == {"a": "b"}


def test_components_with_objects_of_their_own_definitions_are_installed() -> None:
    cloud = cloud_with(
        fleet(definition("v1", storage="v1"), RECEIVER, {**RECEIVER, "metadata": _other()}), throttle=False
    )
    assert phases(cloud) == {"one": Phase.READY}
    assert live(cloud, ObjectRef("example.org/v1", "Receiver", "b", "default"))


def _other() -> Json:
    return {"name": "b", "namespace": "default"}


def _tagged(cloud: MemoryCloud) -> dict[str, bytes]:
    """Return the manifest with a tag: a job that changes nothing of Flux."""
    path = "clusters/one/cluster.yaml"
    before = cloud.repository.files(cloud.repository.head("main"))[path]
    return {path: before + b"  tags: {team: shop}\n"}
