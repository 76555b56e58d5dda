"""Strategies in the pipeline: a commit goes through the stages that its kind of change has."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.rollouts import rollout_view
from shared.app.api.views.why import why_view
from shared.app.intake.accept import accept
from shared.rollouts.rollout import RolloutState
from tests.support.console_pages import shown
from tests.support.pipeline_runs import push, status
from tests.support.pipeline_runs import pushed as delivery
from tests.support.staged_fleets import DEV, PROD, act, changed, ready_fleet, rollout_of, staged, tags

pytestmark = pytest.mark.lives

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
    assert (rollout_of(cloud, labels).choice.name, rollout_of(cloud, labels).state) == (
        "others",
        RolloutState.COMPLETED,
    )
    files = staged(BY_KIND, tags("two"))
    files["clusters/a1/cluster.yaml"] = files["clusters/a1/cluster.yaml"].replace(b"count: 1", b"count: 2")
    pools = push(cloud, files)
    cloud.run(seconds=600)
    assert changed(cloud, "two") == set()
    assert rollout_of(cloud, pools).choice.name == "pools"
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
    assert rollout_of(cloud, commit).state is RolloutState.SUPERSEDED
    newest = rollout_of(cloud, cloud.state.fleet().rollout)
    assert (newest.choice.name, changed(cloud, "one")) == ("pools", set())


SELECTABLE = (
    BY_KIND
    + """\
      - name: emergency
        selectable: true
        pullRequestLabel: fix now
        stages: [{name: at-once, groups: [{maxConcurrency: "100%"}]}]
"""
)


def pushed(cloud: MemoryCloud, value: str, message: str) -> str:
    """Push a change of the pools, which waits for an approval unless the commit says something else."""
    files = staged(SELECTABLE, tags(value))
    files["clusters/a1/cluster.yaml"] = files["clusters/a1/cluster.yaml"].replace(b"count: 1", b"count: 2")
    commit = cloud.repository.push(files, message=message)
    assert accept(delivery(cloud, commit), cloud.ports).status == 202
    cloud.run(seconds=900)
    return commit


def test_a_commit_selects_a_strategy_with_a_trailer_whatever_it_changes() -> None:
    cloud = ready_fleet(SELECTABLE)
    commit = pushed(cloud, "one", "Renew the certificate\n\nRollout: emergency\n")
    assert changed(cloud, "one") == {*DEV, *PROD}
    view = rollout_view(commit, cloud.ports)
    assert view is not None
    assert (view["strategy"], view["selected"]) == ("emergency", True)


def test_a_label_of_the_merged_pull_request_selects_a_strategy_too() -> None:
    cloud = ready_fleet(SELECTABLE)
    repository = cloud.repository
    repository.reset(repository.head("main"), "next")
    files = staged(SELECTABLE, tags("one"))
    files["clusters/a1/cluster.yaml"] = files["clusters/a1/cluster.yaml"].replace(b"count: 1", b"count: 2")
    repository.commit(files, branch="next")
    pull = repository.pulls.open("Renew the certificate", "next", "main")
    repository.pulls.change(pull.number, labels=("fix now",))
    commit = repository.pulls.merged_into_base(pull.number, squash=True).merge_commit
    assert accept(delivery(cloud, commit), cloud.ports).status == 202
    cloud.run(seconds=900)
    assert (rollout_of(cloud, commit).choice.name, changed(cloud, "one")) == ("emergency", {*DEV, *PROD})


def test_a_strategy_that_a_commit_may_not_select_starts_nothing_until_somebody_resumes() -> None:
    cloud = ready_fleet(SELECTABLE)
    commit = pushed(cloud, "one", "Renew the certificate\n\nRollout: emergancy\n")
    assert changed(cloud, "one") == set()
    why = why_view("b1", cloud.ports)
    assert why is not None
    assert why["rollout"] is not None
    assert why["rollout"]["reason"] == "strategy"
    assert "names the strategy emergancy; it may select emergency" in why["rollout"]["waits"]
    assert "roadstead rollout resume" in why["suggestedAction"]
    state, description = status(cloud, commit)
    assert (state, "the commit names another strategy" in description) == ("pending", True)
    assert "/acts/rollout_resume" in shown(cloud.ports, f"/rollouts/{commit}").actions, "not to pause it"
    act(cloud, commit, "resume")
    cloud.run(seconds=900)
    assert changed(cloud, "one") == set()
    act(cloud, commit, "approve", "everywhere")
    cloud.run()
    assert changed(cloud, "one") == {*DEV, *PROD}


def test_a_newer_commit_selects_for_itself() -> None:
    cloud = ready_fleet(SELECTABLE)
    refused = pushed(cloud, "one", "Renew the certificate\n\nRollout: emergancy\n")
    pushed(cloud, "two", "Renew the certificate\n\nRollout: emergency\n")
    assert rollout_of(cloud, refused).state is RolloutState.SUPERSEDED
    assert changed(cloud, "two") == {*DEV, *PROD}
    third = rollout_of(cloud, pushed(cloud, "three", "Another one\n"))
    assert (third.choice.name, third.choice.selected) == ("others", False)


class Calls:
    """A host that records the names of the calls to it."""

    def __init__(self, inner: object) -> None:
        self._inner, self.names = inner, list[str]()

    def __getattr__(self, name: str) -> Any:
        self.names.append(name)
        return getattr(self._inner, name)


@pytest.mark.parametrize(("rollout", "reads"), [(BY_KIND, 0), (SELECTABLE, 1)])
def test_a_message_is_read_once_for_a_rollout_and_only_where_it_may_select(rollout: str, reads: int) -> None:
    cloud = ready_fleet(rollout)
    calls = Calls(cloud.git_host)
    cloud.with_ports(lambda ports: replace(ports, git_host=calls))
    push(cloud, staged(rollout, tags("one")))
    cloud.run()
    assert changed(cloud, "one") == {*DEV, *PROD}
    assert calls.names.count("changes") == reads
