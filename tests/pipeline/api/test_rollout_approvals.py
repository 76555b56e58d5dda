"""Approvals of stages: by several people, and by none who wrote the commit."""

from __future__ import annotations

from localcloud.memory.memory_cloud import MemoryCloud
from shared.pipeline.api.acts.rollout import act_on_rollout
from shared.pipeline.api.views.rollouts import rollout_view
from shared.rollouts.rollout import ActKind
from tests.support.pipeline_runs import push
from tests.support.staged_fleets import DEV, PROD, changed, ready_fleet, staged, tags

OTHER = "other@example.com"
STAGES = """\
  rollout:
    stages:
      - {{name: first, select: {{environments: [development]}}, groups: [{{maxConcurrency: "100%"}}]}}
      - {{name: second, approval: true, {asks}, groups: [{{maxConcurrency: "100%"}}]}}
"""


def waiting(asks: str) -> tuple[MemoryCloud, str]:
    """Return a fleet whose second stage waits for approvals, and the commit."""
    rollout = STAGES.format(asks=asks)
    cloud = ready_fleet(rollout)
    commit = push(cloud, staged(rollout, tags("one")))
    cloud.run()
    assert changed(cloud, "one") == {*DEV}
    return cloud, commit


def approve(cloud: MemoryCloud, commit: str, by: str, *addresses: str) -> int:
    """Let somebody approve, and return the status of the answer."""
    addressed = frozenset(addresses)
    found = act_on_rollout(commit, ActKind.APPROVE, "second", by, cloud.ports, addresses=addressed)
    cloud.run(seconds=60)
    return found.status


def missing(cloud: MemoryCloud, commit: str) -> int:
    view = rollout_view(commit, cloud.ports)
    assert view is not None
    return view["stages"][1]["approvalsMissing"]


def test_two_different_people_approve_and_one_of_them_twice_does_not_count() -> None:
    cloud, commit = waiting("approvers: 2")
    assert (approve(cloud, commit, "one"), missing(cloud, commit)) == (202, 1)
    assert (approve(cloud, commit, "one"), missing(cloud, commit)) == (409, 1)
    assert changed(cloud, "one") == {*DEV}
    assert approve(cloud, commit, "two") == 202
    assert changed(cloud, "one") == {*DEV, *PROD}


def test_an_author_of_the_commit_does_not_approve_it_where_somebody_else_has_to() -> None:
    cloud, commit = waiting("approvalByOthers: true")
    (change,) = cloud.repository.changes(commit, "", 1)
    assert approve(cloud, commit, "author", change.author) == 403
    assert approve(cloud, commit, "a key") == 403
    assert changed(cloud, "one") == {*DEV}
    assert approve(cloud, commit, "other", OTHER) == 202
    assert changed(cloud, "one") == {*DEV, *PROD}


def test_an_approval_expires_if_its_stage_does_not_begin() -> None:
    cloud, commit = waiting("approvers: 2, approvalExpires: 1h")
    assert approve(cloud, commit, "one") == 202
    cloud.clock.advance(3600)
    assert missing(cloud, commit) == 2
    assert approve(cloud, commit, "two") == 202
    assert changed(cloud, "one") == {*DEV}
    assert approve(cloud, commit, "one") == 202
    assert changed(cloud, "one") == {*DEV, *PROD}
