"""An aborted rollout whose pins go back: the clusters that it has changed get what they had."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.rollout import act_on_rollout
from shared.app.api.views.plans import plan_view
from shared.app.api.views.why import why_view
from shared.cluster.record_parts import Phase
from shared.rollouts.rollout import RolloutState
from shared.rollouts.rollout_acts import ActKind
from tests.support.pipeline_runs import cloud_with, phases, push, record_of, status
from tests.support.staged_fleets import (
    DEV,
    NAMESPACE,
    PROD,
    act,
    on,
    pin,
    ready_fleet,
    rollout_of,
    staged,
    tags,
    with_file,
)

pytestmark = pytest.mark.lives

UNKNOWN = b"apiVersion: example.org/v1\nkind: Unknown\nmetadata: {name: a, namespace: default}\n"
APPROVED = """\
  rollout:
    stages:
      - {name: development, select: {environments: [development]}, groups: [{maxConcurrency: "100%"}]}
      - {name: production, select: {environments: [production]}, approval: true}
"""

SOAKS = """\
  rollout:
    stages:
      - {name: all, select: {environments: [development, production]}, groups: [{soak: 1h}]}
"""


def half_way(content: bytes = NAMESPACE, **files: bytes) -> tuple[MemoryCloud, str, str]:
    """Return a fleet whose development has a commit, the commit before it, and that one."""
    cloud = ready_fleet(APPROVED)
    first = pin(cloud, DEV[0]).commit
    commit = push(cloud, with_file("monitoring.yaml", content, staged(APPROVED) | files))
    cloud.run(seconds=3600, until=lambda: False)
    assert on(cloud, commit) == {*DEV}
    return cloud, first, commit


def test_the_clusters_that_have_the_commit_go_back_and_the_others_stay() -> None:
    cloud, first, commit = half_way()
    act(cloud, commit, "back")
    cloud.run(seconds=1800, until=lambda: False)
    assert on(cloud, first) == {*DEV, *PROD}
    assert phases(cloud) == dict.fromkeys((*DEV, *PROD), Phase.READY)
    assert rollout_of(cloud, commit).state is RolloutState.ABORTED
    state, text = status(cloud, commit)
    assert (state, text.endswith(f"; 3 pins go back from {commit[:8]}")) == ("failure", True), text


def test_why_says_who_had_a_cluster_go_back() -> None:
    cloud, first, commit = half_way()
    act(cloud, commit, "back")
    cloud.run(seconds=1800, until=lambda: False)
    found = [why_view(name, cloud.ports) for name in ("a1", "b1")]
    waits = [why["rollout"]["waits"] for why in found if why and why["rollout"]]
    assert waits == [
        f"goes back to {first[:8]}, because ops (because) aborted the rollout of {commit[:8]}",
        f"is left as it is, because ops (because) aborted the rollout of {commit[:8]}",
    ]
    (event,) = [event for event in cloud.state.events("a1", 50) if event.reason == "PinBack"]
    assert event.message == (
        f"its pin goes back from {commit[:8]} to {first[:8]}: the rollout was aborted by ops: because"
    )


def test_a_cluster_that_fails_with_the_commit_goes_back() -> None:
    cloud = ready_fleet()
    first = pin(cloud, DEV[0]).commit
    commit = push(cloud, with_file("unknown.yaml", UNKNOWN))
    cloud.run(seconds=3600, until=lambda: False)
    assert pin(cloud, "a1").commit == commit
    act(cloud, commit, "back")
    cloud.run(seconds=1800, until=lambda: False)
    assert on(cloud, first) == {*DEV, *PROD}
    assert phases(cloud) == dict.fromkeys((*DEV, *PROD), Phase.READY)


def test_an_act_that_comes_twice_and_the_timers_move_no_pin_again() -> None:
    cloud, _, commit = half_way()
    act(cloud, commit, "back")
    cloud.run(seconds=1800, until=lambda: False)
    generations = {record.name: record.generation for record in cloud.state.clusters()}
    refused = act_on_rollout(commit, ActKind.BACK, "", "ops", cloud.ports)
    assert refused.status == 409
    cloud.run(seconds=8 * 3600, until=lambda: False)
    assert {record.name: record.generation for record in cloud.state.clusters()} == generations


def test_the_pins_of_a_rollout_that_was_aborted_before_go_back() -> None:
    cloud, first, commit = half_way()
    act(cloud, commit, "abort")
    cloud.run(seconds=600, until=lambda: False)
    assert on(cloud, commit) == {*DEV}
    act(cloud, commit, "back")
    cloud.run(seconds=1800, until=lambda: False)
    assert on(cloud, first) == {*DEV, *PROD}


def test_only_the_pin_goes_back_and_the_manifest_stays() -> None:
    cloud = ready_fleet(APPROVED)
    first = pin(cloud, DEV[0]).commit
    commit = push(cloud, with_file("monitoring.yaml", NAMESPACE, staged(APPROVED, tags("one"))))
    cloud.run(seconds=3600, until=lambda: False)
    act(cloud, commit, "back")
    cloud.run(seconds=1800, until=lambda: False)
    record = record_of(cloud, "a1")
    assert record.document["spec"]["tags"]["change"] == "one"
    assert on(cloud, first) == {*DEV, *PROD}


def test_the_revert_afterwards_changes_nothing_and_succeeds() -> None:
    cloud, first, commit = half_way()
    act(cloud, commit, "back")
    cloud.run(seconds=1800, until=lambda: False)
    revert = push(cloud, staged(APPROVED))
    cloud.run()
    assert status(cloud, revert)[0] == "success"
    assert on(cloud, first) == {*DEV, *PROD}


def test_the_next_commit_takes_all_clusters_along() -> None:
    cloud, _, commit = half_way()
    act(cloud, commit, "back")
    cloud.run(seconds=1800, until=lambda: False)
    fixed = push(cloud, with_file("monitoring.yaml", NAMESPACE.replace(b"}", b", labels: {a: b}}"), staged()))
    cloud.run()
    assert on(cloud, fixed) == {*DEV, *PROD}
    assert status(cloud, fixed)[0] == "success"


def test_a_cluster_that_followed_the_branch_cannot_go_back_and_is_named() -> None:
    following = staged(APPROVED, "  flux: {follow: branch}\n", only=("a1",))
    cloud = cloud_with(following)
    first = pin(cloud, "a2").commit
    commit = push(cloud, with_file("monitoring.yaml", NAMESPACE, staged(APPROVED)))
    cloud.run(seconds=3600, until=lambda: False)
    act(cloud, commit, "back")
    cloud.run(seconds=1800, until=lambda: False)
    assert (pin(cloud, "a1").commit, pin(cloud, "a2").commit) == (commit, first)
    state, text = status(cloud, commit)
    assert state == "failure"
    assert "a1 cannot go back" in text
    why = why_view("a1", cloud.ports)
    assert why is not None
    assert "move-a-pin" in why["suggestedAction"]


def test_a_branch_that_somebody_deleted_is_written_again_first() -> None:
    cloud, first, commit = half_way()
    cloud.git_host.delete_branch(f"roadstead/pin/example/{first}")
    act(cloud, commit, "back")
    cloud.run(seconds=1800, until=lambda: False)
    assert cloud.git_host.tip(f"roadstead/pin/example/{first}") == first
    assert phases(cloud) == dict.fromkeys((*DEV, *PROD), Phase.READY)


def test_a_cluster_that_is_recovering_goes_back_once_it_has_recovered_and_no_message_waits_for_it() -> None:
    cloud, first, commit = half_way()
    record = record_of(cloud, "a1")
    cloud.state.save(replace(record, ownership=replace(record.ownership, recovering=True)))
    act(cloud, commit, "back")
    cloud.run(seconds=1800, until=lambda: False)
    assert on(cloud, first) == {*DEV, *PROD} - {"a1"}
    record = record_of(cloud, "a1")
    cloud.state.save(replace(record, ownership=replace(record.ownership, recovering=False)))
    cloud.run(seconds=1800, until=lambda: False)
    assert on(cloud, first) == {*DEV, *PROD}


def test_a_cluster_that_went_back_does_not_go_once_more_with_the_rollout_of_a_later_commit() -> None:
    cloud, first, commit = half_way()
    act(cloud, commit, "back")
    cloud.run(seconds=1800, until=lambda: on(cloud, first) == {*DEV, *PROD})
    generations = {name: generation_of(cloud, name) for name in DEV}
    later = push(cloud, staged(APPROVED, tags("one"), only=("b1",)))
    cloud.run(seconds=600, until=lambda: False)
    act(cloud, later, "back")
    cloud.run(seconds=1800, until=lambda: False)
    assert {name: generation_of(cloud, name) for name in DEV} == generations
    assert on(cloud, first) == {*DEV, *PROD}


def test_a_success_ends_before_a_cluster_goes_back() -> None:
    cloud = ready_fleet(SOAKS)
    commit = push(cloud, with_file("monitoring.yaml", NAMESPACE, staged(SOAKS)))
    cloud.run(seconds=3600, until=lambda: status(cloud, commit)[0] == "success")
    before = generation_of(cloud, "a1")
    act(cloud, commit, "back")
    cloud.run(seconds=60, until=lambda: generation_of(cloud, "a1") > before)
    plan = plan_view(commit, cloud.ports)
    assert plan is not None
    assert plan["status"] == ""


def generation_of(cloud: MemoryCloud, name: str) -> int:
    record = record_of(cloud, name)
    return record.generation
