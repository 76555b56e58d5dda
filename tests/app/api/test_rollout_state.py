"""The state of a rollout is that of its clusters now, also before the planner has stored it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from shared.app.api.views.rollouts import rollout_view, rollouts_view
from shared.cluster.record_parts import Phase
from shared.rollouts.rollout import RolloutState
from tests.support.pipeline_runs import phases, push, step_until
from tests.support.replaced_ports import Noted
from tests.support.staged_fleets import DEV, PROD, changed, ready_fleet, rollout_of, staged, tags

STAGES = '  rollout:\n    stages: [{name: all, groups: [{maxConcurrency: "100%"}]}]\n'


@pytest.mark.lives
def test_a_rollout_is_completed_once_its_last_cluster_is_ready() -> None:
    cloud = ready_fleet(STAGES)
    commit = push(cloud, staged(STAGES, tags("one")))
    step_until(
        cloud, lambda: changed(cloud, "one") == {*DEV, *PROD} and set(phases(cloud).values()) == {Phase.READY}
    )
    assert rollout_of(cloud, commit).state is RolloutState.ACTIVE
    view = rollout_view(commit, cloud.ports)
    assert view is not None
    assert (view["state"], view["endedAt"] is not None) == ("Completed", True)
    assert rollouts_view(cloud.ports)["rollouts"][0]["state"] == "Completed"


@pytest.mark.lives
def test_the_list_reads_the_clusters_once_however_many_rollouts_there_are() -> None:
    cloud = ready_fleet(STAGES)
    for tag in ("one", "two", "three"):
        push(cloud, staged(STAGES, tags(tag)))
        cloud.run(seconds=600)
    calls = list[str]()
    noted: Any = Noted(cloud.ports.state, calls.append)
    ports = replace(cloud.ports, state=noted)
    assert len(rollouts_view(ports)["rollouts"]) == 3
    assert calls.count("summaries") == 1
