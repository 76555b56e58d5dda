"""The state of a rollout is that of its clusters now, also before the planner has stored it."""

from __future__ import annotations

from shared.jobs.record import Phase
from shared.pipeline.api.views.rollouts import rollout_view, rollouts_view
from shared.rollouts.rollout import State
from tests.support.pipeline_runs import phases, push, step_until
from tests.support.staged_fleets import DEV, PROD, changed, ready_fleet, rollout_of, staged, tags

STAGES = '  rollout:\n    stages: [{name: all, groups: [{maxConcurrency: "100%"}]}]\n'


def test_a_rollout_is_completed_once_its_last_cluster_is_ready() -> None:
    cloud = ready_fleet(STAGES)
    commit = push(cloud, staged(STAGES, tags("one")))
    step_until(
        cloud, lambda: changed(cloud, "one") == {*DEV, *PROD} and set(phases(cloud).values()) == {Phase.READY}
    )
    assert rollout_of(cloud, commit).state is State.ACTIVE
    view = rollout_view(commit, cloud.ports)
    assert view is not None
    assert (view["state"], view["endedAt"] is not None) == ("Completed", True)
    assert rollouts_view(cloud.ports)["rollouts"][0]["state"] == "Completed"
