"""A gate after the last stage: the rollout is completed once it has opened, and not before."""

from __future__ import annotations

from datetime import timedelta

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.rollouts import rollout_view
from shared.rollouts.rollout import RolloutState
from shared.rollouts.rollout_acts import ActKind
from tests.support.pipeline_runs import push, status
from tests.support.staged_fleets import DEV, PROD, act, changed, ready_fleet, rollout_of, staged, tags

pytestmark = pytest.mark.lives

SHOP = "https://shop.example.com/healthz"
STAGES = """\
  rollout:
    stages:
      - {{name: all, groups: [{{maxConcurrency: "100%"}}]}}
    finalGate: {{owner: qa, reason: the shop sells, {waits}}}
"""
HTTP = STAGES.format(waits=f"httpChecks: [{{name: shop, url: {SHOP}, failureLimit: 1}}]")
LATER = STAGES.format(waits="after: 1h")
RUN = STAGES.format(waits="commitChecks: [end-to-end]")
SOAKED = RUN.replace('"100%"', '"100%", minSuccess: "50%", soak: 1h')


def changing(rollout: str) -> tuple[MemoryCloud, str]:
    """Return a fleet whose clusters have all got a change, and the commit."""
    cloud = ready_fleet(rollout)
    cloud.endpoints.hosts.add("shop.example.com")
    commit = push(cloud, staged(rollout, tags("one")))
    cloud.run(seconds=300)
    assert changed(cloud, "one") == {*DEV, *PROD}
    return cloud, commit


def shown(cloud: MemoryCloud, commit: str) -> tuple[str, str]:
    view = rollout_view(commit, cloud.ports)
    assert view is not None
    return view["state"], view["progress"]


def test_a_rollout_waits_for_the_check_after_its_last_stage_and_says_so() -> None:
    cloud, commit = changing(RUN)
    text = "7 of 7 clusters ready; it waits for checks after the last stage: end-to-end missing"
    assert shown(cloud, commit) == (
        "Waiting for a check",
        f"rollout waiting for a check, {text} (qa: the shop sells)",
    )
    assert rollout_of(cloud, commit).state is RolloutState.ACTIVE
    assert status(cloud, commit)[0] == "pending"
    assert "after the last stage" in status(cloud, commit)[1]
    body = {"name": "end-to-end", "status": "completed", "conclusion": "success"}
    cloud.repository.pulls.write_check(commit, body)
    cloud.run()
    assert shown(cloud, commit)[0] == "Completed"
    assert status(cloud, commit)[0] == "success"


def test_a_check_that_failed_too_often_never_completes_the_rollout() -> None:
    cloud = ready_fleet(HTTP)
    cloud.endpoints.hosts.add("shop.example.com")
    cloud.endpoints.statuses[SHOP] = 500
    commit = push(cloud, staged(HTTP, tags("one")))
    cloud.run(seconds=3600)
    state, progress = shown(cloud, commit)
    assert state == "Stopped: a check failed too often"
    assert "shop failed too often" in progress
    assert status(cloud, commit)[0] == "failure"
    assert "shop failed too often" in status(cloud, commit)[1]
    cloud.endpoints.statuses[SHOP] = 200
    cloud.run(seconds=3600)
    assert rollout_of(cloud, commit).state is RolloutState.ACTIVE
    later = push(cloud, staged(HTTP, tags("two")))
    cloud.run()
    assert (shown(cloud, later)[0], status(cloud, later)[0]) == ("Completed", "success")
    assert rollout_of(cloud, commit).state is RolloutState.SUPERSEDED


def test_an_override_completes_a_rollout_whose_check_failed_too_often() -> None:
    cloud = ready_fleet(HTTP)
    cloud.endpoints.hosts.add("shop.example.com")
    cloud.endpoints.statuses[SHOP] = 500
    commit = push(cloud, staged(HTTP, tags("one")))
    cloud.run(seconds=3600)
    act(cloud, commit, ActKind.OVERRIDE)
    cloud.run()
    assert (shown(cloud, commit)[0], status(cloud, commit)[0]) == ("Completed", "success")


def test_the_time_after_the_last_stage_counts_from_its_end() -> None:
    cloud, commit = changing(LATER)
    begun = cloud.clock()
    assert shown(cloud, commit)[0] == "Waiting for the time of a stage"
    assert "when the rollout may end" in shown(cloud, commit)[1]
    cloud.run()
    ended = rollout_of(cloud, commit).ended
    assert ended is not None
    assert timedelta(minutes=50) < ended - begun < timedelta(minutes=61)
    assert status(cloud, commit)[0] == "success"


def test_the_commit_status_is_no_success_while_the_last_group_is_watched_before_the_final_gate() -> None:
    cloud, commit = changing(SOAKED)
    text = "7 of 7 clusters ready; it waits until 2026-01-01 01:"
    assert shown(cloud, commit)[1].startswith(f"rollout waiting, {text}")
    assert status(cloud, commit)[0] == "pending"
    cloud.run(seconds=4000)
    assert status(cloud, commit)[0] == "pending"
    assert "checks after the last stage" in status(cloud, commit)[1]


def test_a_failure_that_a_group_allows_ends_neither_its_soak_nor_the_wait_for_the_final_gate() -> None:
    cloud = ready_fleet(SOAKED)
    cloud.azure.interventions.fail_next("a1", "InvalidParameter", "no vCPUs are left")
    commit = push(cloud, staged(SOAKED, tags("one")))
    cloud.run(seconds=300)
    assert shown(cloud, commit)[0] == "Waiting"
    cloud.run(seconds=4000)
    assert shown(cloud, commit)[0] == "Waiting for a check"
    cloud.repository.pulls.write_check(
        commit, {"name": "end-to-end", "status": "completed", "conclusion": "success"}
    )
    cloud.run(seconds=1800)
    assert shown(cloud, commit)[0] == "Completed with 1 failure"
