"""Server-side apply and the owners of fields, in the Kubernetes world."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.kubernetes.world.object_store import Write
from localcloud.kubernetes.world.writes.field_paths import from_wire, to_wire
from localcloud.kubernetes.world.writes.patches import MERGE
from tests.support.kubernetes_worlds import (
    ALICE,
    BOB,
    MAP,
    WEB,
    a_world,
    deployment,
    images,
    refusal,
    with_widgets,
)


@pytest.fixture
def world() -> KubernetesWorld:
    return a_world()[0]


def test_a_conflict_names_the_other_manager_and_the_field(world: KubernetesWorld) -> None:
    world.apply(WEB, deployment(("web", "web:1"), ("log", "log:1")), ALICE)
    with refusal(409, "Conflict") as refused:
        world.apply(WEB, deployment(("web", "web:2")), BOB)
    field = '.spec.template.spec.containers[name="web"].image'
    assert refused.value.message == f'Apply failed with 1 conflict: conflict with "alice": {field}'
    assert refused.value.details["causes"][0]["field"] == field
    world.apply(WEB, deployment(("web", "web:2")), Write(manager="bob", force=True))
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
