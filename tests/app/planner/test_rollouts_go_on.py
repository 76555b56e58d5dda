"""What a rollout has started stays in the count of the next one, and of itself when it is planned again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.recovery.missed_work import plan_missed_head
from shared.ports.state.clusters import CLUSTERS
from shared.rollouts.rollout import RolloutState
from simulation.newer_forms import NewerTable
from tests.support.pipeline_runs import push, status, step_until
from tests.support.staged_fleets import DEV, PROD, act, changed, ready_fleet, rollout_of, staged, tags

pytestmark = pytest.mark.lives

TWO_AT_A_TIME = """\
  rollout:
    stages: [{name: all, groups: [{maxConcurrency: "2"}]}]
"""
FINAL = """\
  rollout:
    stages: [{name: all, groups: [{maxConcurrency: "100%"}]}]
    finalGate: {owner: qa, reason: the shop sells, commitChecks: [end-to-end]}
"""
WATCHED = """\
  rollout:
    stages: [{name: all, groups: [{clusters: "1", soak: 10m}, {maxConcurrency: "100%"}]}]
"""
EXPIRING = """\
  rollout:
    stages:
      - {name: development, select: {environments: [development]}, groups: [{maxConcurrency: "100%"}]}
      - name: production
        select: {environments: [production]}
        approval: true
        approvalExpires: 1h
        gate: {owner: ops, reason: a night, after: 2h}
        groups: [{clusters: "1", soak: 2h}, {}]
"""


def test_a_commit_that_changes_no_cluster_frees_no_room_in_a_group() -> None:
    cloud = ready_fleet(TWO_AT_A_TIME)
    for name in ("a1", "a2"):
        cloud.azure.interventions.stick_next(name)
    first = staged(TWO_AT_A_TIME, tags("one"), only=("a1", "a2"))
    push(cloud, first)
    step_until(cloud, lambda: changed(cloud, "one") == {"a1", "a2"})
    cloud.run(seconds=30)
    push(cloud, {**first, "README.md": b"more"})
    cloud.run(seconds=60)
    later = staged(TWO_AT_A_TIME, tags("two"), only=("b1", "b2"))
    commit = push(cloud, later | {path: text for path, text in first.items() if "/a" in path})
    cloud.run(seconds=120)
    assert {member.cluster for member in rollout_of(cloud, commit).members} == {"a1", "a2", "b1", "b2"}
    assert changed(cloud, "two") == set()


def test_a_commit_that_changes_no_cluster_waits_for_the_final_gate_of_what_the_one_before_changed() -> None:
    cloud = ready_fleet(FINAL)
    first = push(cloud, staged(FINAL, tags("one")))
    cloud.run(seconds=300)
    assert status(cloud, first)[0] == "pending"
    commit = push(cloud, {**staged(FINAL, tags("one")), "README.md": b"more"})
    cloud.run(seconds=300)
    assert rollout_of(cloud, first).superseded_by == commit
    assert status(cloud, commit)[0] == "pending"
    cloud.repository.pulls.write_check(
        commit, {"name": "end-to-end", "status": "completed", "conclusion": "success"}
    )
    cloud.run()
    assert rollout_of(cloud, commit).state is RolloutState.COMPLETED
    last = push(cloud, {**staged(FINAL, tags("one")), "README.md": b"most"})
    cloud.run()
    assert cloud.state.rollout(last) is None


def without_one(rollout: str) -> tuple[MemoryCloud, str, Callable[[], None]]:
    """Push a change while the record of one cluster cannot be read; return what puts it right.

    Then the commit is planned again, with one cluster more.
    """
    cloud = ready_fleet(rollout)
    table = cloud.state.tables[CLUSTERS]
    hidden = next(entity for entity in table.query("", until="~") if entity["RowKey"] == "b2")
    NewerTable(table).put(hidden.place[0], {"b2": hidden.properties})
    commit = push(cloud, staged(rollout, tags("one")))
    return cloud, commit, lambda: table.put(hidden.place[0], {"b2": hidden.properties})


def test_a_stage_that_has_begun_asks_for_no_approval_again_where_its_plan_is_made_again() -> None:
    cloud, commit, put_right = without_one(EXPIRING)
    cloud.run(seconds=2 * 3600 - 1800)
    act(cloud, commit, "approve", "production")
    cloud.run(seconds=3600)
    assert changed(cloud, "one") == {*DEV, "b1"}
    put_right()
    cloud.run(seconds=3 * 3600)
    rollout = rollout_of(cloud, commit)
    assert "b2" in {member.cluster for member in rollout.members}
    assert changed(cloud, "one") == {*DEV, *PROD}
    assert rollout.state is RolloutState.COMPLETED


def test_a_revert_goes_first_to_the_clusters_that_have_the_change_although_its_plan_was_made_again() -> None:
    cloud, first, put_right = without_one("")
    step_until(cloud, lambda: changed(cloud, "one") == {*DEV, "b1"})
    put_right()
    assert plan_missed_head(cloud.ports)
    step_until(cloud, lambda: "b2" in {member.cluster for member in rollout_of(cloud, first).members})
    have = changed(cloud, "one")
    assert (have & {*DEV}, rollout_of(cloud, first).state) == ({*DEV}, RolloutState.ACTIVE)
    commit = push(cloud, staged())
    cloud.run()
    rollout = rollout_of(cloud, commit)
    back = {member.cluster for member in rollout.members if rollout.stages[member.stage].back}
    assert back == have


def test_a_cluster_that_a_commit_leaves_as_it_is_is_not_the_one_that_tries_it() -> None:
    cloud = ready_fleet(WATCHED)
    first = staged(WATCHED, tags("one"), only=("a1",))
    push(cloud, first)
    cloud.run(seconds=300)
    later = staged(WATCHED, tags("two"), only=PROD)
    commit = push(cloud, later | {path: text for path, text in first.items() if "/a1/" in path})
    cloud.run(seconds=600)
    assert changed(cloud, "two") == {"b1"}
    first_group = {member.cluster for member in rollout_of(cloud, commit).members if member.group == 0}
    assert first_group == {"a1", "b1"}
    cloud.run()
    assert changed(cloud, "two") == {*PROD}
    assert rollout_of(cloud, commit).state is RolloutState.COMPLETED


def test_a_commit_that_adds_nothing_to_a_rollout_repeats_no_soak() -> None:
    cloud = ready_fleet(WATCHED)
    push(cloud, staged(WATCHED, tags("one")))
    cloud.run(seconds=300)
    assert changed(cloud, "one") == {"a1"}
    commit = push(cloud, {**staged(WATCHED, tags("one")), "README.md": b"more"})
    cloud.run(seconds=480)
    assert changed(cloud, "one") == {*DEV, *PROD}
    first_group = {member.cluster for member in rollout_of(cloud, commit).members if member.group == 0}
    assert first_group == {"a1"}
