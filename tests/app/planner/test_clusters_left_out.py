"""A cluster that somebody took out before it started: the rollout ends without it, and everybody sees why."""

from __future__ import annotations

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.clusters import fleet_view
from shared.app.api.views.plans import plan_view
from shared.app.api.views.rollouts import rollout_view
from shared.app.api.views.why import why_view
from shared.rollouts.rollout import RolloutState
from tests.support.pipeline_runs import push, status
from tests.support.staged_fleets import (
    APPROVED_STAGES,
    DEV,
    PROD,
    act,
    changed,
    ready_fleet,
    rollout_of,
    staged,
    tags,
)

pytestmark = pytest.mark.lives

GATED = APPROVED_STAGES + "    finalGate: {owner: qa, reason: the shop sells, commitChecks: [end-to-end]}\n"
WHY = "is left as it is, because ops (because) took it out of the rollout of "


def without_b2(rollout: str) -> tuple[MemoryCloud, str]:
    """Return a fleet in which all but b2 has got a change, and the commit."""
    cloud = ready_fleet(rollout)
    commit = push(cloud, staged(rollout, tags("one")))
    cloud.run(seconds=300)
    act(cloud, commit, "skip", "b2")
    act(cloud, commit, "approve", "production")
    cloud.run(seconds=600)
    assert changed(cloud, "one") == {*DEV, *PROD} - {"b2"}
    return cloud, commit


def test_the_rollout_is_completed_and_says_who_left_the_cluster_out() -> None:
    cloud, commit = without_b2(APPROVED_STAGES)
    assert rollout_of(cloud, commit).state is RolloutState.COMPLETED
    assert cloud.state.fleet().rollout == ""
    assert cloud.state.fleet().durations
    shown, plan, why = (
        rollout_view(commit, cloud.ports),
        plan_view(commit, cloud.ports),
        why_view("b2", cloud.ports),
    )
    assert shown is not None
    assert plan is not None
    assert why is not None
    assert why["rollout"] is not None
    said = f"{WHY}{commit[:8]}"
    assert shown["state"] == "Completed"
    assert shown["progress"] == f"rollout completed, 6 of 6 clusters ready; 1 {said}"
    assert fleet_view(cloud.ports)["rollout"] == f"{commit[:8]}: {shown['progress']}"
    assert {item["cluster"]: item["waits"] for item in plan["items"] if item["waits"]} == {"b2": said}
    assert why["rollout"]["waits"] == said


def test_the_commit_status_ends_and_the_next_commit_takes_the_cluster_along() -> None:
    cloud, commit = without_b2(APPROVED_STAGES)
    state, description = status(cloud, commit)
    assert (state, description.startswith("6 of 7 clusters in sync; rollout completed")) == ("error", True)
    later = push(cloud, {**staged(APPROVED_STAGES, tags("one")), "README.md": b"more"})
    cloud.run(seconds=300)
    act(cloud, later, "approve", "production")
    cloud.run()
    assert changed(cloud, "one") == {*DEV, *PROD}
    assert status(cloud, later)[0] == "success"


def test_it_keeps_neither_the_final_gate_from_being_named_nor_the_rollout_from_its_end() -> None:
    cloud, commit = without_b2(GATED)
    state, description = status(cloud, commit)
    assert (state, "it waits for checks after the last stage" in description) == ("pending", True)
    run = {"name": "end-to-end", "status": "completed", "conclusion": "success"}
    cloud.repository.pulls.write_check(commit, run)
    cloud.run()
    assert rollout_of(cloud, commit).state is RolloutState.COMPLETED
