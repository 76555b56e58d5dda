"""What changes took is stored when their rollout completes, and estimates of the next one come from it."""

from __future__ import annotations

import pytest

from shared.app.api.views.rollouts import rollout_view
from tests.support.pipeline_runs import push, step_until
from tests.support.proposals import Repo
from tests.support.staged_fleets import DEV, PROD, changed, ready_fleet, rollout_of, staged, tags

pytestmark = pytest.mark.lives


def test_a_completed_rollout_stores_what_its_clusters_took() -> None:
    cloud = ready_fleet()
    assert cloud.state.fleet().durations == {}
    push(cloud, staged(extra=tags("one")))
    cloud.run()
    (found,) = cloud.state.fleet().durations.values()
    assert len(found) == len(DEV + PROD)
    assert all(0 < seconds < 120 for seconds in found)


def test_what_an_older_rollout_started_is_of_the_kind_of_that_and_adds_nothing_to_the_newer_one() -> None:
    watched = '  rollout: {stages: [{name: all, groups: [{clusters: "1", soak: 30m}, {}]}]}\n'
    cloud = ready_fleet(watched)
    path = "clusters/a1/cluster.yaml"
    larger = {path: staged()[path].replace(b"count: 1", b"count: 2")}
    first = push(cloud, staged(watched) | larger)
    cloud.run(seconds=300)
    assert rollout_of(cloud, first).choice.kind == "nodePools"
    commit = push(cloud, staged(watched, tags("one"), only=PROD) | larger)
    cloud.run()
    assert "a1" in {member.cluster for member in rollout_of(cloud, commit).members}
    assert {kind: len(took) for kind, took in cloud.state.fleet().durations.items()} == {"any": len(PROD)}


def test_the_next_rollout_shows_how_long_what_is_left_takes_by_them() -> None:
    cloud = ready_fleet()
    push(cloud, staged(extra=tags("one")))
    cloud.run()
    commit = push(cloud, staged(extra=tags("two")))
    step_until(cloud, lambda: changed(cloud, "two") == {"a1"})
    first = rollout_view(commit, cloud.ports)
    step_until(cloud, lambda: changed(cloud, "two") >= {*DEV, "b1"})
    later = rollout_view(commit, cloud.ports)
    cloud.run()
    ended = rollout_view(commit, cloud.ports)
    assert first is not None
    assert later is not None
    assert ended is not None
    assert first["estimate"] is not None
    assert later["estimate"] is not None
    assert (first["estimate"]["kind"], first["estimate"]["samples"]) == ("any", 7)
    assert "by the last 7 other changes in this fleet" in first["estimate"]["text"]
    assert later["estimate"]["likelySeconds"] < first["estimate"]["likelySeconds"]
    assert ended["estimate"] is None


def test_a_soak_that_is_under_way_counts_with_what_is_left_of_it() -> None:
    watched = '  rollout: {stages: [{name: all, groups: [{clusters: "1", soak: 30m}, {}]}]}\n'
    cloud = ready_fleet(watched)
    commit = push(cloud, staged(watched, tags("one")))
    cloud.run(seconds=300)
    first, began = rollout_view(commit, cloud.ports), cloud.ports.clock()
    cloud.run(seconds=900)
    later, passed = rollout_view(commit, cloud.ports), cloud.ports.clock() - began
    assert first is not None
    assert later is not None
    assert first["estimate"] is not None
    assert later["estimate"] is not None
    assert changed(cloud, "one") == {"a1"}
    less = first["estimate"]["likelySeconds"] - later["estimate"]["likelySeconds"]
    assert abs(less - passed.total_seconds()) <= 1
    assert passed.total_seconds() >= 600


def test_the_comment_on_a_pull_request_has_the_duration() -> None:
    repo = Repo(ready_fleet())
    (assumed,) = repo.comments(repo.propose(staged(extra=tags("one"))))
    assert "Duration: about 35m, 14m to 1h 45m (assumed, because fewer than 5 other changes" in assumed
    repo = Repo(ready_fleet())
    repo.push(staged(extra=tags("one")))
    (known,) = repo.comments(repo.propose(staged(extra=tags("two"))))
    assert "(by the last 7 other changes in this fleet)" in known
