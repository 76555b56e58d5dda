"""What an object shows by itself is what a dry run would show: whether an apply changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localcloud.common.clock import ManualClock
from localcloud.kubernetes.world.api_errors import StatusError
from localcloud.kubernetes.world.kubernetes_port import WorldKubernetes
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.kubernetes.world.object_store import At, WriteMode
from localcloud.kubernetes.world.writes.patches import MERGE
from shared.cluster.failures.errors import InvalidManifest
from shared.json_tree import Json
from shared.kubernetes.field_ownership import is_held, same, transferred
from shared.kubernetes.flux_objects import ref_of
from tests.support.hypothesis_settings import GENERATED

CONTAINERS: list[dict[str, Any]] = [
    {
        "name": "manager",
        "image": "x:1",
        "args": ["--a", "--b"],
        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
        "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    },
    {"name": "side", "image": "y:1"},
]
POD = {"containers": CONTAINERS, "volumes": [{"name": "tmp", "emptyDir": {}}]}
LABELS = {"app": "a"}
SPEC = {
    "replicas": 1,
    "selector": {"matchLabels": LABELS},
    "template": {"metadata": {"labels": LABELS}, "spec": POD},
}


def named(api_version: str, kind: str, **content: Any) -> Json:
    metadata = {"name": "one", "namespace": "default", "labels": {"app": "a"}, "annotations": {"ours": "1"}}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}


DEPLOYMENT = named("apps/v1", "Deployment", spec=SPEC)
RULE = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
ROLE = named("rbac.authorization.k8s.io/v1", "Role", rules=[RULE])
PORT = {"name": "http", "port": 80, "protocol": "TCP", "targetPort": "http"}
SERVICE = named("v1", "Service", spec={"ports": [PORT], "selector": LABELS, "type": "ClusterIP"})
CONFIG_MAP = named("v1", "ConfigMap", data={"colour": "blue", "shape": "round"})
MANIFESTS = (DEPLOYMENT, ROLE, SERVICE, CONFIG_MAP)

Change = Mapping[str, Any]
ANY: list[Change] = [
    {"metadata": {"labels": {"app": "b"}}},
    {"metadata": {"labels": {"app": "a"}}},
    {"metadata": {"labels": {"app": None}}},
    {"metadata": {"labels": {"more": "1"}}},
    {"metadata": {"annotations": None}},
]
OWN: Mapping[str, list[Change]] = {
    "Deployment": [
        {"spec": {"replicas": 0}},
        {"spec": {"replicas": 1}},
        {"spec": {"minReadySeconds": 5}},
        {"spec": {"template": {"spec": {"containers": [CONTAINERS[1], CONTAINERS[0]]}}}},
        {"spec": {"template": {"spec": {"containers": [*CONTAINERS, {"name": "z", "image": "z"}]}}}},
        {"spec": {"template": {"spec": {"containers": [{**CONTAINERS[0], "args": ["--b"]}]}}}},
        {"spec": {"template": {"spec": {"containers": [{**CONTAINERS[0], "env": []}, CONTAINERS[1]]}}}},
        {"spec": {"template": {"spec": {"volumes": [{"name": "tmp", "hostPath": {"path": "/"}}]}}}},
    ],
    "Role": [
        {"rules": [{**RULE, "resourceNames": ["a"]}]},
        {"rules": [RULE, RULE]},
        {"rules": []},
        {"rules": [RULE]},
    ],
    "Service": [
        {"spec": {"selector": {"app": "b"}}},
        {"spec": {"ports": [{**PORT, "targetPort": 1}]}},
        {"spec": {"ports": [{**PORT, "nodePort": 30_000}], "type": "NodePort"}},
        {"spec": {"sessionAffinity": "ClientIP"}},
    ],
    "ConfigMap": [
        {"data": {"colour": "red"}},
        {"data": {"colour": "blue"}},
        {"data": {"shape": None}},
        {"data": {"size": "9"}},
        {"data": None},
    ],
}


class Place:
    """A world with an object that Roadstead applied."""

    def __init__(self, manifest: Json) -> None:
        self.world, self.manifest = KubernetesWorld(ManualClock()), manifest
        self.api = WorldKubernetes(self.world)
        self.api.apply(manifest)

    @property
    def live(self) -> Json:
        found = self.api.get(ref_of(self.manifest))
        assert found is not None
        return found

    def changed(self, change: Change, how: str) -> None:
        """Change the object as somebody else does, or as we do: another manifest, or half of a transfer."""
        kind = self.world.kind(self.manifest["apiVersion"], self.manifest["kind"])
        assert kind is not None
        at = At(kind, "one", "default")
        if how == "patch":
            self.world.patch(at, change, MERGE, WriteMode(manager="kubectl-edit"))
        elif how == "apply":
            self.world.apply(at, change, WriteMode(manager="flux", force=True))
        elif how == "ours":
            self.api.apply({**self.manifest, **change, "metadata": self.manifest["metadata"]})
        else:
            self.world.apply(at, change, WriteMode(manager="flux", force=True))
            ours = transferred(self.live, entirely=True)
            if ours is not None:
                self.api.replace(ours)

    def dry_run_differs(self) -> bool:
        return not same(self.live, self.api.apply(self.manifest, dry_run=True))


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda manifest: str(manifest["kind"]))
def test_an_object_that_was_applied_shows_that_another_apply_changes_nothing(manifest: Json) -> None:
    assert is_held(manifest, Place(manifest).live)


def test_what_others_add_beside_our_fields_hides_nothing() -> None:
    place = Place(DEPLOYMENT)
    place.changed({"spec": {"minReadySeconds": 5}}, "patch")
    more = [*CONTAINERS, {"name": "z", "image": "z"}]
    place.changed({"spec": {"template": {"spec": {"containers": more}}}}, "patch")
    assert is_held(DEPLOYMENT, place.live)


def test_a_quantity_that_the_api_server_stores_in_other_words_is_left_to_a_dry_run() -> None:
    limited = [{**CONTAINERS[0], "resources": {"limits": {"cpu": "1000m"}}}]
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": limited}}
    manifest = {**DEPLOYMENT, "spec": {**SPEC, "template": template}}
    place = Place(manifest)
    assert not is_held(manifest, place.live)
    assert not place.dry_run_differs()


def test_an_object_without_managed_fields_or_of_another_version_shows_nothing() -> None:
    live = Place(CONFIG_MAP).live
    bare = {**live, "metadata": {**live["metadata"], "managedFields": []}}
    assert not is_held(CONFIG_MAP, bare)
    assert not is_held({**CONFIG_MAP, "apiVersion": "v2"}, live)


@st.composite
def histories(draw: st.DrawFn) -> tuple[Json, list[tuple[Change, str]]]:
    """Draw a manifest, and what happens to its object after it was applied."""
    manifest = draw(st.sampled_from(MANIFESTS))
    own = OWN[manifest["kind"]]
    changes = st.tuples(st.sampled_from([*ANY, *own]), st.sampled_from(["patch", "apply", "transfer"]))
    ours = st.tuples(st.sampled_from(own), st.just("ours"))
    return manifest, draw(st.lists(st.one_of(changes, changes, ours), min_size=1, max_size=4))


@given(histories())
@GENERATED
def test_an_apply_changes_nothing_of_an_object_that_shows_so(
    history: tuple[Json, list[tuple[Change, str]]],
) -> None:
    manifest, changes = history
    place = Place(manifest)
    for change, how in changes:
        with suppress(StatusError, InvalidManifest):  # it refuses some of them, as a server does
            place.changed(change, how)
        assert not (is_held(manifest, place.live) and place.dry_run_differs())
