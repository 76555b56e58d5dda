"""The commit status: it fails when a cluster differs from git for long, and succeeds when that is over."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.cluster import replay
from shared.app.api.views.plans import plan_view
from shared.app.outbox import request_whole_sweep
from shared.app.sweep import sweep as sweeps
from tests.support.one_cluster import ONE, files, pool, ready
from tests.support.pipeline_runs import push, status
from tests.support.sweeps import LATER, several, tag_by_hand

pytestmark = pytest.mark.lives

HALF = 900
PATIENCE = 1800
"""Seconds of the default of UNHEALTHY_MINUTES, and half of them."""


@pytest.fixture
def cloud() -> MemoryCloud:
    """A cloud whose cluster has a pool that somebody scales."""
    made = ready(pool(count=2))
    made.azure.interventions.scale(ONE, "apps", 5)
    return made


def sweep(cloud: MemoryCloud) -> None:
    """Let a sweep run to its end, and nothing that comes much later."""
    cloud.clock.advance(LATER)
    cloud.azure.complete_due()
    request_whole_sweep(cloud.ports)
    cloud.run(seconds=60)


def head(cloud: MemoryCloud) -> str:
    return cloud.state.fleet().commit


def state(cloud: MemoryCloud) -> str:
    return status(cloud, head(cloud))[0]


def written(cloud: MemoryCloud) -> int:
    plan_record = cloud.state.plan(head(cloud))
    assert plan_record is not None
    return plan_record.reports


def test_a_difference_that_lasts_fails_the_commit_and_its_end_is_a_success_again(cloud: MemoryCloud) -> None:
    before = written(cloud)
    sweep(cloud)
    cloud.run(seconds=HALF)
    assert (state(cloud), written(cloud)) == ("success", before + 1), "it has not lasted yet"
    assert status(cloud, head(cloud))[1] == "0 of 1 clusters in sync, 1 with drift (1 create)"
    cloud.run(seconds=HALF)
    failed, description = status(cloud, head(cloud))
    assert failed == "failure"
    assert description.startswith("one: differs from git in 1 field since 2026-")
    assert "roadstead drift one" in description
    view = plan_view(head(cloud), cloud.ports)
    assert view is not None
    assert view["progress"]["failed"] == 1
    cloud.run(seconds=4 * PATIENCE)
    sweep(cloud)
    assert (state(cloud), written(cloud)) == ("failure", before + 2), "it is said once"
    cloud.azure.interventions.scale(ONE, "apps", 2)
    sweep(cloud)
    assert status(cloud, head(cloud)) == ("success", "1 of 1 clusters in sync (1 create)")
    assert written(cloud) == before + 3
    assert cloud.state.open_plans() == []


def test_a_difference_that_is_over_soon_fails_no_commit(cloud: MemoryCloud) -> None:
    before = written(cloud)
    sweep(cloud)
    cloud.azure.interventions.scale(ONE, "apps", 2)
    sweep(cloud)
    cloud.run(seconds=2 * PATIENCE)
    assert (state(cloud), written(cloud)) == ("success", before + 2)
    assert "with drift" not in status(cloud, head(cloud))[1]
    assert cloud.state.open_plans() == []


def test_a_replay_that_writes_the_value_of_git_is_a_success_again(cloud: MemoryCloud) -> None:
    sweep(cloud)
    cloud.run(seconds=PATIENCE)
    assert state(cloud) == "failure"
    assert replay("one", "ann", cloud.ports).status == 202
    cloud.run()
    assert state(cloud) == "success"


def test_a_later_commit_that_leaves_the_cluster_as_it_is_fails_as_well(cloud: MemoryCloud) -> None:
    sweep(cloud)
    cloud.run(seconds=HALF)
    first = head(cloud)
    push(cloud, files(pool(count=2)) | {"README.md": b"a note"})
    cloud.run(seconds=60)
    assert (head(cloud) != first, state(cloud)) == (True, "success")
    cloud.run(seconds=HALF)
    assert state(cloud) == "failure"
    assert status(cloud, first)[0] == "success", "an earlier commit keeps what it ended with"


def test_an_exempt_difference_and_one_that_is_corrected_fail_no_commit() -> None:
    exempt = "{name: a, fields: [tags], action: ignore, owner: a, reason: b, expires: '2030-01-01'}"
    cloud = ready(pool(count=2) + f"  tags: {{cost: a}}\n  drift: {{action: correct, rules: [{exempt}]}}\n")
    cloud.azure.interventions.scale(ONE, "apps", 5)
    tag_by_hand(cloud, ONE, cost="b")
    sweep(cloud)
    cloud.run(seconds=2 * PATIENCE)
    assert state(cloud) == "success"


def test_a_crash_before_the_status_is_asked_for_is_made_up_by_the_next_sweep(
    cloud: MemoryCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sweeps, "reopen", lambda *_: None)
        sweep(cloud)
    cloud.clock.advance(2 * PATIENCE)
    assert state(cloud) == "success"
    sweep(cloud)
    cloud.run(seconds=60)
    assert state(cloud) == "failure"


def test_without_patience_a_sweep_fails_the_commit_at_once(cloud: MemoryCloud) -> None:
    cloud.ports = replace(
        cloud.ports,
        config=replace(cloud.ports.config, timing=replace(cloud.ports.config.timing, unhealthy_seconds=0)),
    )
    sweep(cloud)
    assert state(cloud) == "failure"


def test_the_differences_of_many_clusters_are_one_status_at_first_and_one_when_they_have_lasted() -> None:
    cloud = several("  tags: {cost: a}\n")
    before = written(cloud)
    for record in cloud.state.clusters():
        tag_by_hand(cloud, record.desired.id, cost="b")
    sweep(cloud)
    cloud.run(seconds=PATIENCE)
    assert (state(cloud), written(cloud)) == ("failure", before + 2)
