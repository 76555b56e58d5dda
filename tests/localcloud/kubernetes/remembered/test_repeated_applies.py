"""An apply that is repeated changes nothing; it has its effect where anything is another one since."""

from __future__ import annotations

from dataclasses import replace

from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.kubernetes.world.object_store import WriteMode
from localcloud.kubernetes.world.writes.patches import MERGE
from tests.support.kubernetes_worlds import ALICE, BOB, MAP, a_world, refusal


def _applied() -> KubernetesWorld:
    world = a_world()[0]
    for _ in range(3):
        world.apply(MAP, {"data": {"colour": "blue"}}, ALICE)
    return world


def test_a_repeated_apply_writes_nothing() -> None:
    world = _applied()
    before = world.get(MAP)
    assert world.apply(MAP, {"data": {"colour": "blue"}}, replace(ALICE, dry_run=True)) is before
    assert world.apply(MAP, {"data": {"colour": "blue"}}, ALICE) is before
    assert world.get(MAP) is before


def test_a_repeated_apply_undoes_what_was_written_since() -> None:
    world = _applied()
    world.patch(MAP, {"data": {"colour": "red"}}, MERGE, BOB)
    with refusal(409, "Conflict"):
        world.apply(MAP, {"data": {"colour": "blue"}}, ALICE)
    after = world.apply(MAP, {"data": {"colour": "blue"}}, WriteMode(manager="alice", force=True))
    assert after["data"] == {"colour": "blue"}


def test_a_repeated_apply_creates_an_object_again_that_was_deleted_since() -> None:
    world = _applied()
    before = world.get(MAP)["metadata"]["uid"]
    world.delete(MAP)
    assert world.apply(MAP, {"data": {"colour": "blue"}}, ALICE)["metadata"]["uid"] != before


def test_another_manager_and_another_content_have_their_effect() -> None:
    world = _applied()
    shared = world.apply(MAP, {"data": {"colour": "blue"}}, BOB)
    assert {entry["manager"] for entry in shared["metadata"]["managedFields"]} == {"alice", "bob"}
    assert world.apply(MAP, {"data": {"colour": "blue", "size": "1"}}, ALICE)["data"]["size"] == "1"
