"""With approvalByOthers, nobody approves a stage who wrote something of what its rollout brings."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts import rollout as acts
from shared.app.api.acts.rollout import act_on_rollout
from shared.app.intake.accept import accept
from shared.rollouts.rollout import RolloutState
from shared.rollouts.rollout_acts import ActKind
from tests.support.pipeline_runs import pushed
from tests.support.staged_fleets import DEV, PROD, act, changed, ready_fleet, rollout_of, staged, tags

pytestmark = pytest.mark.lives

ROLLOUT = """\
  rollout:
    stages:
      - {name: first, select: {environments: [development]}, groups: [{maxConcurrency: "100%"}]}
      - name: second
        approval: true
        approvalByOthers: true
        groups: [{maxConcurrency: "100%"}]
"""
ADA, GRACE, JOAN, LIN = (f"{name}@example.com" for name in ("ada", "grace", "joan", "lin"))


def commit(cloud: MemoryCloud, author: str, tag: str, *, branch: str = "main", message: str = "") -> str:
    """Commit one change of the whole fleet as somebody, without a push; return the commit."""
    git = cloud.repository
    files = {**dict.fromkeys(git.files(git.head(branch))), **staged(ROLLOUT, tags(tag))}
    return git.commit(files, branch=branch, author=author, message=message)


def note(cloud: MemoryCloud, author: str) -> str:
    """Commit something that changes no cluster."""
    return cloud.repository.commit({"README.md": author.encode()}, author=author)


def plan(cloud: MemoryCloud, head: str) -> None:
    accept(pushed(cloud, head), cloud.ports)
    cloud.run()


def approve(cloud: MemoryCloud, head: str, address: str) -> int:
    found = act_on_rollout(
        head, ActKind.APPROVE, "second", address, cloud.ports, addresses=frozenset({address})
    )
    cloud.run(seconds=60)
    return found.status


def assert_approved_without_others(cloud: MemoryCloud) -> None:
    """Take approvalByOthers from the stage, and approve it."""
    without = staged(ROLLOUT.replace("        approvalByOthers: true\n", ""))
    head = cloud.repository.commit({"fleet.yaml": without["fleet.yaml"]}, author=ADA)
    plan(cloud, head)
    assert changed(cloud, "one") == {*DEV}
    assert approve(cloud, head, ADA) == 202
    assert changed(cloud, "one") == {*DEV, *PROD}


def test_who_wrote_a_merged_branch_does_not_approve_what_somebody_else_merged() -> None:
    cloud = ready_fleet(ROLLOUT)
    git = cloud.repository
    git.reset(git.head("main"), "topic")
    commit(cloud, ADA, "one", branch="topic")
    commit(cloud, JOAN, "two", branch="topic", message=f"Two\n\nCo-authored-by: Grace <{GRACE}>")
    git.pulls.open("Topic", "topic", "main")
    merge = git.pulls.merged_into_base(1).merge_commit
    plan(cloud, merge)
    assert changed(cloud, "two") == {*DEV}
    assert [approve(cloud, merge, person) for person in (ADA, GRACE, JOAN)] == [403, 403, 403]
    assert approve(cloud, merge, "operator@example.invalid") == 403
    assert approve(cloud, merge, LIN) == 202
    assert changed(cloud, "two") == {*DEV, *PROD}


def test_who_wrote_an_earlier_commit_of_the_same_push_does_not_approve() -> None:
    cloud = ready_fleet(ROLLOUT)
    commit(cloud, ADA, "one")
    head = note(cloud, JOAN)
    plan(cloud, head)
    assert (approve(cloud, head, ADA), approve(cloud, head, LIN)) == (403, 202)


def test_who_wrote_what_a_superseded_rollout_left_does_not_approve_it_in_the_next_one() -> None:
    cloud = ready_fleet(ROLLOUT)
    base = cloud.state.fleet().commit
    plan(cloud, commit(cloud, ADA, "one"))
    head = note(cloud, JOAN)
    plan(cloud, head)
    assert rollout_of(cloud, head).since == base
    assert changed(cloud, "one") == {*DEV}
    assert (approve(cloud, head, ADA), approve(cloud, head, LIN)) == (403, 202)
    assert changed(cloud, "one") == {*DEV, *PROD}
    later = commit(cloud, GRACE, "two")
    plan(cloud, later)
    assert rollout_of(cloud, later).since == head
    assert (approve(cloud, later, GRACE), approve(cloud, later, ADA)) == (403, 202)


def test_an_abort_frees_nobody_from_what_the_next_rollout_takes_up() -> None:
    cloud = ready_fleet(ROLLOUT)
    first = commit(cloud, ADA, "one")
    plan(cloud, first)
    assert act_on_rollout(first, ActKind.ABORT, "", "ops", cloud.ports).status == 202
    cloud.run()
    head = note(cloud, JOAN)
    plan(cloud, head)
    assert changed(cloud, "one") == {*DEV}
    assert (approve(cloud, head, ADA), approve(cloud, head, LIN)) == (403, 202)
    assert changed(cloud, "one") == {*DEV, *PROD}


def test_the_authors_of_too_many_commits_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acts, "MOST_AUTHORED", 3)
    cloud = ready_fleet(ROLLOUT)
    commit(cloud, ADA, "one")
    for number in range(acts.MOST_AUTHORED):
        head = note(cloud, f"a{number}@example.com")
    plan(cloud, head)
    assert approve(cloud, head, LIN) == 403
    assert_approved_without_others(cloud)


def test_a_rollout_that_begins_after_an_unknown_commit_is_approved_once_anybody_may() -> None:
    cloud = ready_fleet(ROLLOUT)
    head = commit(cloud, ADA, "one")
    plan(cloud, head)
    cloud.state.save_rollout(replace(rollout_of(cloud, head), since="0" * 40))
    assert approve(cloud, head, LIN) == 403
    assert_approved_without_others(cloud)


def test_who_wrote_what_a_cluster_missed_that_was_taken_out_does_not_approve_it_later() -> None:
    cloud = ready_fleet(ROLLOUT)
    first = commit(cloud, ADA, "one")
    plan(cloud, first)
    for name in PROD:
        act(cloud, first, "skip", name)
    cloud.run()
    assert rollout_of(cloud, first).state is RolloutState.COMPLETED
    head = note(cloud, JOAN)
    plan(cloud, head)
    assert changed(cloud, "one") == {*DEV}
    assert (approve(cloud, head, ADA), approve(cloud, head, LIN)) == (403, 202)
    assert changed(cloud, "one") == {*DEV, *PROD}


def test_who_wrote_what_came_with_an_invalid_fleet_file_does_not_approve_it_once_that_is_valid() -> None:
    cloud = ready_fleet(ROLLOUT)
    base, files = cloud.state.fleet().commit, staged(ROLLOUT, tags("one"))
    git, valid = cloud.repository, files["fleet.yaml"]
    plan(cloud, git.commit({**files, "fleet.yaml": valid + b"  nonsense: true\n"}, author=ADA))
    plan(cloud, note(cloud, JOAN))
    head = git.commit({"fleet.yaml": valid}, author=GRACE)
    plan(cloud, head)
    assert rollout_of(cloud, head).since == base
    assert changed(cloud, "one") == {*DEV}
    assert [approve(cloud, head, person) for person in (ADA, JOAN, GRACE, LIN)] == [403, 403, 403, 202]
    plan(cloud, later := commit(cloud, ADA, "two"))
    assert rollout_of(cloud, later).since == head
