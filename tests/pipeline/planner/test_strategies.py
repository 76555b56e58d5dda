"""Strategies in the pipeline: a commit goes through the stages that its kind of change has."""

from __future__ import annotations

from shared.rollouts.rollout import State
from tests.support.pipeline_runs import push
from tests.support.staged_fleets import DEV, PROD, act, changed, ready_fleet, rollout_of, staged, tags

BY_KIND = """\
  rollout:
    strategies:
      - name: pools
        changes: [nodePools]
        stages: [{name: everywhere, approval: true}]
      - name: others
        changes: [any]
        stages: [{name: everywhere, groups: [{maxConcurrency: "100%"}]}]
"""


def test_a_commit_goes_through_the_stages_of_its_kind_of_change() -> None:
    cloud = ready_fleet(BY_KIND)
    labels = push(cloud, staged(BY_KIND, tags("one")))
    cloud.run()
    assert changed(cloud, "one") == {*DEV, *PROD}
    assert (rollout_of(cloud, labels).strategy, rollout_of(cloud, labels).state) == (
        "others",
        State.COMPLETED,
    )
    files = staged(BY_KIND, tags("two"))
    files["clusters/a1/cluster.yaml"] = files["clusters/a1/cluster.yaml"].replace(b"count: 1", b"count: 2")
    pools = push(cloud, files)
    cloud.run(seconds=600)
    assert changed(cloud, "two") == set()
    assert rollout_of(cloud, pools).strategy == "pools"
    act(cloud, pools, "approve", "everywhere")
    cloud.run()
    assert changed(cloud, "two") == {*DEV, *PROD}


def test_a_rollout_keeps_its_strategy_when_its_commit_is_planned_again() -> None:
    cloud = ready_fleet(BY_KIND)
    files = staged(BY_KIND, tags("one"))
    files["clusters/a1/cluster.yaml"] = files["clusters/a1/cluster.yaml"].replace(b"count: 1", b"count: 2")
    commit = push(cloud, files)
    cloud.run(seconds=60)
    push(cloud, files | {"README.md": b"another one"})
    cloud.run(seconds=60)
    assert rollout_of(cloud, commit).state is State.SUPERSEDED
    newest = rollout_of(cloud, cloud.state.fleet().rollout)
    assert (newest.strategy, changed(cloud, "one")) == ("pools", set())
