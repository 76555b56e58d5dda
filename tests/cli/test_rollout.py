"""``roadstead rollout``: what waits and why, and what an operator can do about it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.rollouts.rollout import State
from tests.support.pipeline_runs import push
from tests.support.roadstead_command import roadstead
from tests.support.staged_fleets import DEV, PROD, changed, ready_fleet, rollout_of, staged, tags

APPROVED = """\
  rollout:
    stages:
      - {name: first, select: {environments: [development]}, groups: [{maxConcurrency: "100%"}]}
      - {name: second, approval: true, groups: [{maxConcurrency: "100%"}]}
"""


@pytest.fixture
def cloud() -> MemoryCloud:
    """A cloud in which a rollout waits for the approval of its second stage."""
    made = ready_fleet(APPROVED)
    push(made, staged(APPROVED, tags("one")))
    made.run()
    assert changed(made, "one") == {*DEV}
    return made


def run(url: str, *arguments: str) -> str:
    done = roadstead("rollout", *arguments, ROADSTEAD_URL=url)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_rollout_is_shown_with_its_stages_and_what_its_clusters_wait_for(
    cloud: MemoryCloud, url: str
) -> None:
    assert "Waiting for approval" in run(url, "list")
    shown = run(url, "show")
    assert "stage first" in shown
    assert "group 1: 3 of 3 ready, 0 changing (3 at a time, budget 3)" in shown
    assert "stage second  approval needed" in shown
    assert "4 clusters (b1, b2, b3, b4): waits for an approval of stage second" in shown
    assert "roadstead rollout approve second" in shown
    why = json.loads(roadstead("why", "b1", "-o", "json", ROADSTEAD_URL=url).stdout)
    assert (why["rollout"]["reason"], why["rollout"]["stage"]) == ("approval", "second")
    assert "roadstead rollout approve second" in why["suggestedAction"]
    assert "waits for an approval of stage second" in roadstead("why", "b1", ROADSTEAD_URL=url).stdout
    assert "rollout waiting for approval" in roadstead("status", ROADSTEAD_URL=url).stdout


def test_an_approval_lets_the_stage_begin_and_is_recorded(cloud: MemoryCloud, url: str) -> None:
    commit = cloud.state.fleet().commit
    assert "approve second is queued" in run(url, "approve", "second", "--reason", "tested")
    cloud.run()
    assert changed(cloud, "one") == {*DEV, *PROD}
    rollout = rollout_of(cloud, commit)
    assert rollout.state is State.COMPLETED
    assert [(each.subject, each.reason) for each in rollout.approved] == [("second", "tested")]
    assert [act.action for act in cloud.state.acts(5)] == ["rollout-approve"]
    assert "Completed" in run(url, "list")


def test_a_stage_without_a_need_cannot_be_approved(cloud: MemoryCloud, url: str) -> None:
    refused = roadstead("rollout", "approve", "first", ROADSTEAD_URL=url)
    assert refused.returncode == 1
    assert "an approval is of a stage that waits for one, and second does" in refused.stderr


def test_a_pause_a_resume_and_an_abort(cloud: MemoryCloud, url: str) -> None:
    commit = cloud.state.fleet().commit
    run(url, "pause", "--reason", "lunch")
    cloud.run()
    assert "Paused" in run(url, "show", commit[:8])
    assert "pause" in run(url, "show")
    run(url, "resume")
    cloud.run()
    assert "Waiting for approval" in run(url, "show")
    run(url, "abort", "--yes")
    cloud.run()
    assert rollout_of(cloud, commit).state is State.ABORTED
    assert changed(cloud, "one") == {*DEV}
    refused = roadstead("rollout", "pause", ROADSTEAD_URL=url)
    assert "is not under way: aborted" in refused.stderr


def test_a_cluster_is_taken_out(cloud: MemoryCloud, url: str) -> None:
    run(url, "skip", "b1")
    run(url, "approve", "second")
    cloud.run()
    assert changed(cloud, "one") == {*DEV, *PROD} - {"b1"}
    unknown = roadstead("rollout", "skip", "other", ROADSTEAD_URL=url)
    assert unknown.returncode == 1


def test_without_a_rollout_the_command_says_so(url: str, cloud: MemoryCloud) -> None:
    push(cloud, staged("", tags("one")))
    cloud.run()
    nothing = roadstead("rollout", "pause", ROADSTEAD_URL=url)
    assert nothing.returncode == 1
    assert "no rollout is under way" in nothing.stderr


def test_a_plan_of_the_files_shows_the_stages_and_where_approvals_are_asked(
    cloud: MemoryCloud, url: str, tmp_path: Path
) -> None:
    for path, content in staged(APPROVED, tags("two")).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content)
    shown = roadstead("plan", str(tmp_path), ROADSTEAD_URL=url).stdout
    assert "  stage first\n    group 1 (3 at a time, failure budget 3): a1, a2, a3" in shown
    assert (
        "  stage second  waits for an approval\n    group 1 (4 at a time, failure budget 4): b1, b2" in shown
    )
    found = json.loads(roadstead("plan", str(tmp_path), "-o", "json", ROADSTEAD_URL=url).stdout)["rollout"]
    assert [(each["stage"], each["approval"], each["clusters"]) for each in found["groups"]] == [
        ("first", False, [*DEV]),
        ("second", True, [*PROD]),
    ]
