"""The Kubernetes world keeps the rules that clients of a real API server rely on, and owners of fields."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localcloud.kubernetes.world.kinds import CRD, NAMESPACE
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.kubernetes.world.object_store import At, Deletion, WriteMode
from localcloud.kubernetes.world.writes.field_paths import from_wire, to_wire
from localcloud.kubernetes.world.writes.patches import JSON, MERGE, STRATEGIC
from tests.support.kubernetes_worlds import (
    ALICE,
    BOB,
    KINDS,
    MAP,
    WEB,
    a_world,
    deployment,
    images,
    refusal,
    widgets,
    with_widgets,
)


@pytest.fixture
def world() -> KubernetesWorld:
    return a_world()[0]


def test_a_dry_run_answers_and_changes_nothing(world: KubernetesWorld) -> None:
    before = world.version
    shown = world.apply(MAP, {"data": {"a": "1"}}, WriteMode(manager="alice", dry_run=True))
    assert shown["data"] == {"a": "1"}
    assert world.find(MAP) is None
    assert world.version == before


def test_a_replace_over_an_older_version_is_a_conflict(world: KubernetesWorld) -> None:
    read = world.create(MAP.kind, "default", {"metadata": {"name": "settings"}})
    world.patch(MAP, {"data": {"a": "1"}}, MERGE)
    with refusal(409, "Conflict"):
        world.replace(MAP, read)
    without = {key: value for key, value in read["metadata"].items() if key != "resourceVersion"}
    assert "data" not in world.replace(MAP, {**read, "metadata": without})


def test_a_generation_counts_changes_of_the_spec_only(world: KubernetesWorld) -> None:
    def generation() -> int:
        return int(world.get(WEB)["metadata"]["generation"])

    world.apply(WEB, deployment(("web", "web:1")), ALICE)
    world.patch(WEB, {"metadata": {"labels": {"a": "b"}}}, MERGE)
    world.patch(WEB, {"status": {"replicas": 7}}, MERGE, WriteMode(subresource="status"))
    assert generation() == 1
    world.patch(WEB, {"spec": {"replicas": 3}, "status": {"replicas": 9}}, MERGE)
    assert generation() == 2
    assert world.get(WEB)["status"]["replicas"] == 3


def test_a_deployment_is_available_after_its_delay() -> None:
    world, clock = a_world(rollout=5)
    world.apply(WEB, deployment(("web", "web:1")), ALICE)
    clock.advance(4)
    assert "status" not in world.get(WEB)
    clock.advance(1)
    assert world.get(WEB)["status"]["observedGeneration"] == 1


def test_an_object_with_finalizers_stays_until_they_are_removed(world: KubernetesWorld) -> None:
    world.apply(MAP, {"metadata": {"finalizers": ["example.org/hold"]}}, ALICE)
    world.delete(MAP)
    assert world.get(MAP)["metadata"]["deletionTimestamp"]
    world.patch(MAP, {"metadata": {"finalizers": []}}, MERGE)
    assert world.find(MAP) is None


def test_a_namespace_is_deleted_with_its_content_and_waits_for_finalizers(world: KubernetesWorld) -> None:
    team = At(NAMESPACE, "team")
    world.create(NAMESPACE, "", {"metadata": {"name": "team"}})
    world.create(MAP.kind, "team", {"metadata": {"name": "plain"}})
    held = At(MAP.kind, "held", "team")
    world.apply(held, {"metadata": {"finalizers": ["example.org/hold"]}}, ALICE)
    world.delete(team)
    assert [item["metadata"]["name"] for item in world.list(MAP.kind, "team")[0]] == ["held"]
    assert world.get(team)["status"]["phase"] == "Terminating"
    with refusal(403, "Forbidden"):
        world.create(MAP.kind, "team", {"metadata": {"name": "late"}})
    world.patch(held, {"metadata": {"finalizers": None}}, MERGE)
    assert world.find(team) is None


def test_a_kind_is_unknown_before_its_definition_is_established_and_after_it_is_deleted() -> None:
    world, clock = a_world(crd=3)
    world.create(CRD, "", widgets())
    clock.advance(2)
    assert world.kind("example.org/v1", "Widget") is None
    clock.advance(1)
    kind = world.kind("example.org/v1", "Widget")
    assert kind is not None
    world.create(kind, "default", {"metadata": {"name": "one"}, "spec": {}})
    world.delete(At(CRD, "widgets.example.org"))
    assert world.kind("example.org/v1", "Widget") is None
    assert world.find(At(kind, "one", "default")) is None


def test_the_status_of_a_custom_kind_is_written_through_its_subresource_only() -> None:
    world, clock = a_world()
    one = with_widgets(world, clock, subresources={"status": {}})
    world.apply(one, {"spec": {}, "status": {"phase": "forged"}}, ALICE)
    assert "status" not in world.get(one)
    world.set_status(one, {"phase": "real"}, manager="controller")
    world.apply(one, {"spec": {"size": 1}}, ALICE)
    assert world.get(one)["status"] == {"phase": "real"}


@pytest.mark.parametrize(
    ("kind", "at", "body", "code", "reason"),
    [
        ("ConfigMap", ("settings", "nowhere"), {}, 404, "NotFound"),
        ("ConfigMap", ("Bad_Name", "default"), {}, 422, "Invalid"),
        ("ConfigMap", ("settings", "default"), {"kind": "Secret"}, 400, "BadRequest"),
        ("ConfigMap", ("settings", "default"), {"metadata": {"name": "other"}}, 400, "BadRequest"),
        ("ConfigMap", ("settings", "default"), {"metadata": {"namespace": "x"}}, 400, "BadRequest"),
    ],
)
def test_an_invalid_request_is_refused(
    world: KubernetesWorld, kind: str, at: tuple[str, str], body: dict[str, Any], code: int, reason: str
) -> None:
    with refusal(code, reason):
        world.apply(At(KINDS[kind], *at), body, ALICE)


def test_a_selector_and_a_role_reference_cannot_be_changed(world: KubernetesWorld) -> None:
    world.apply(WEB, deployment(("web", "web:1")), ALICE)
    with refusal(422, "Invalid") as refused:
        world.patch(WEB, {"spec": {"selector": {"matchLabels": {"app": "other"}}}}, MERGE)
    assert "immutable" in refused.value.message


def test_create_of_what_is_there_and_delete_of_what_is_not_are_refused(world: KubernetesWorld) -> None:
    body = {"metadata": {"name": "settings"}}
    world.create(MAP.kind, "default", body)
    with refusal(409, "AlreadyExists"):
        world.create(MAP.kind, "default", body)
    with refusal(409, "Conflict"):
        world.delete(MAP, Deletion(uid="another"))
    with refusal(409, "Conflict"):
        world.delete(MAP, Deletion(version="1"))
    world.delete(MAP)
    with refusal(404, "NotFound"):
        world.delete(MAP)
    with refusal(403, "Forbidden"):
        world.delete(At(NAMESPACE, "kube-system"))


@pytest.mark.parametrize(
    ("labels", "fields", "found"),
    [
        ("app=web", "", ["a"]),
        ("app!=web", "", ["b", "c"]),
        ("app", "", ["a", "b"]),
        ("!app", "", ["c"]),
        ("app in (web, db),tier=1", "", ["a"]),
        ("app notin (web)", "", ["b", "c"]),
        ("", "metadata.name=b", ["b"]),
        ("app=web", "metadata.name!=a", []),
    ],
)
def test_lists_obey_selectors(world: KubernetesWorld, labels: str, fields: str, found: list[str]) -> None:
    for name, marks in {"a": {"app": "web", "tier": "1"}, "b": {"app": "db"}, "c": {}}.items():
        world.create(MAP.kind, "default", {"metadata": {"name": name, "labels": marks}})
    listed = world.list(MAP.kind, "default", labels=labels, fields=fields)[0]
    assert [item["metadata"]["name"] for item in listed] == found


def test_patches_of_all_kinds_reach_the_same_object(world: KubernetesWorld) -> None:
    world.apply(WEB, deployment(("web", "web:1"), ("log", "log:1")), ALICE)
    path = "/spec/template/spec/containers/1"
    world.patch(WEB, [{"op": "replace", "path": f"{path}/image", "value": "log:2"}], JSON)
    assert images(world) == {"web": "web:1", "log": "log:2"}
    containers = [{"name": "log", "$patch": "delete"}, {"name": "web", "image": "web:3"}]
    change = {"$setElementOrder/containers": [{"name": "web"}], "containers": containers}
    world.patch(WEB, {"spec": {"template": {"spec": change}}}, STRATEGIC)
    assert images(world) == {"web": "web:3"}
    with refusal(422, "Invalid"):
        world.patch(WEB, [{"op": "test", "path": "/spec/replicas", "value": 9}], JSON)


@pytest.mark.lives
def test_watchers_see_changes_in_order_and_learn_when_they_came_too_late(world: KubernetesWorld) -> None:
    start = world.version
    world.apply(MAP, {"data": {"a": "1"}}, ALICE)
    world.patch(MAP, {"data": {"a": "2"}}, MERGE)
    world.delete(MAP)
    assert [change.type for change in world.changes(start)] == ["ADDED", "MODIFIED", "DELETED"]
    for number in range(3000):
        world.patch(At(NAMESPACE, "default"), {"metadata": {"labels": {"n": str(number)}}}, MERGE)
    with refusal(410, "Expired"):
        world.changes(start)


def test_the_text_of_a_secret_is_stored_as_data(world: KubernetesWorld) -> None:
    body = {"metadata": {"name": "login"}, "stringData": {"password": "x"}}
    stored = world.create(KINDS["Secret"], "default", body)
    assert stored["data"] == {"password": "eA=="}
    assert "stringData" not in stored


def test_a_conflict_names_the_other_manager_and_the_field(world: KubernetesWorld) -> None:
    world.apply(WEB, deployment(("web", "web:1"), ("log", "log:1")), ALICE)
    with refusal(409, "Conflict") as refused:
        world.apply(WEB, deployment(("web", "web:2")), BOB)
    field = '.spec.template.spec.containers[name="web"].image'
    assert refused.value.message == f'Apply failed with 1 conflict: conflict with "alice": {field}'
    assert refused.value.details["causes"][0]["field"] == field
    world.apply(WEB, deployment(("web", "web:2")), WriteMode(manager="bob", force=True))
    assert images(world) == {"web": "web:2", "log": "log:1"}


def test_the_same_value_from_two_managers_is_shared_until_both_drop_it(world: KubernetesWorld) -> None:
    world.apply(MAP, {"data": {"colour": "blue"}}, ALICE)
    world.apply(MAP, {"data": {"colour": "blue"}}, BOB)
    assert world.apply(MAP, {}, ALICE)["data"] == {"colour": "blue"}
    assert "data" not in world.apply(MAP, {}, BOB)


def test_a_container_that_is_no_longer_applied_is_removed_with_all_its_fields(world: KubernetesWorld) -> None:
    world.apply(WEB, deployment(("web", "web:1"), ("log", "log:1")), ALICE)
    world.apply(WEB, deployment(("web", "web:1")), ALICE)
    assert images(world) == {"web": "web:1"}


def test_a_plain_write_takes_the_fields_it_changes_from_an_applier(world: KubernetesWorld) -> None:
    world.apply(MAP, {"data": {"colour": "blue", "size": "1"}}, ALICE)
    world.patch(MAP, {"data": {"colour": "red"}}, MERGE, BOB)
    owners = {entry["manager"]: entry["fieldsV1"] for entry in world.get(MAP)["metadata"]["managedFields"]}
    assert owners == {
        "alice": {"f:data": {"f:size": {}}},
        "bob": {"f:data": {"f:colour": {}}},
    }


def test_lists_of_custom_kinds_are_replaced_as_a_whole() -> None:
    world, clock = a_world()
    one = with_widgets(world, clock)
    world.apply(one, {"spec": {"containers": [{"name": "a"}, {"name": "b"}]}}, ALICE)
    with refusal(409, "Conflict"):
        world.apply(one, {"spec": {"containers": [{"name": "a"}]}}, BOB)


names = st.text("abc", min_size=1, max_size=2)
data = st.dictionaries(names, names, max_size=4)


@given(first=data, second=data, foreign=data)
def test_what_an_applier_owns_is_what_it_last_applied(
    first: dict[str, str], second: dict[str, str], foreign: dict[str, str]
) -> None:
    world, _ = a_world()
    theirs = {f"x-{key}": value for key, value in foreign.items()}
    world.apply(MAP, {"data": theirs}, BOB)
    world.apply(MAP, {"data": first}, ALICE)
    after = world.apply(MAP, {"data": second}, ALICE)
    assert after.get("data", {}) == {**theirs, **second}
    assert world.apply(MAP, {"data": second}, ALICE) == after


paths = st.sets(
    st.lists(st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"']), min_size=1, max_size=4).map(tuple)
)


@given(paths)
def test_field_sets_survive_the_wire(fields: set[tuple[str, ...]]) -> None:
    assert from_wire(to_wire(frozenset(fields))) == fields
