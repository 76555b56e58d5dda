"""A paused rollout holds its own change back, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from localcloud.memory.crashes import Crash
from localcloud.memory.memory_cloud import MemoryCloud
from localcloud.tables.memory_state import MemoryState
from shared.cluster.record_parts import Phase
from shared.ports import State as StatePort
from shared.rollouts.rollout import Rollout, RolloutState
from tests.support.pipeline_runs import phases, push
from tests.support.staged_fleets import (
    DEFAULT,
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

ALL = (*DEV, *PROD)


def with_tag(files: dict[str, bytes], name: str, value: str) -> dict[str, bytes]:
    """Return the files with a change of one cluster's own spec, over that of the rollout."""
    path = f"clusters/{name}/cluster.yaml"
    text = files[path].replace(tags("one").encode(), b"")
    return {**files, path: text.replace(b"spec:\n", b"spec:\n" + tags(value).encode())}


def paused(names: tuple[str, ...] = ALL) -> tuple[MemoryCloud, str]:
    """Return a fleet of which a1 has a change, and whose rollout somebody paused then."""
    cloud = ready_fleet()
    commit = push(cloud, staged(extra=tags("one"), only=names))
    cloud.run(seconds=3)
    act(cloud, commit, "pause")
    cloud.run(seconds=3600)
    assert changed(cloud, "one") == {"a1"}
    return cloud, commit


def test_a_cluster_that_the_paused_rollout_does_not_change_gets_its_fix() -> None:
    cloud, _ = paused(DEV)
    commit = push(cloud, with_tag(staged(extra=tags("one"), only=DEV), "b2", "fix"))
    cloud.run(seconds=3600)
    assert changed(cloud, "fix") == {"b2"}
    assert changed(cloud, "one") == {"a1"}
    rollout = rollout_of(cloud, commit)
    assert [stage.name for stage in rollout.stages] == ["fix:production", "development"]
    assert rollout.people.inherited
    act(cloud, commit, "resume")
    cloud.run()
    assert changed(cloud, "one") == {*DEV}
    assert rollout_of(cloud, commit).state is RolloutState.COMPLETED


def test_a_cluster_that_has_the_change_already_gets_a_fix_and_the_others_wait() -> None:
    cloud, _ = paused()
    push(cloud, staged(extra=tags("two")))
    cloud.run(seconds=3600)
    assert changed(cloud, "two") == {"a1"}
    assert changed(cloud, "one") == set()
    act(cloud, cloud.state.fleet().rollout, "resume")
    cloud.run()
    assert changed(cloud, "two") == {*ALL}


def test_a_fix_of_a_failed_clusters_own_spec_reaches_it_while_the_rollout_is_paused() -> None:
    cloud = ready_fleet()
    cloud.azure.interventions.fail_next("a1", "InvalidParameter", "no vCPUs are left")
    commit = push(cloud, staged(extra=tags("one")))
    cloud.run(seconds=1800)
    act(cloud, commit, "pause")
    cloud.run(seconds=60)
    push(cloud, with_tag(staged(extra=tags("one")), "a1", "fix"))
    cloud.run(seconds=3600)
    assert phases(cloud)["a1"] is Phase.READY
    assert (changed(cloud, "fix"), changed(cloud, "one")) == ({"a1"}, set())


def test_a_spent_budget_holds_no_cluster_back_that_the_rollout_does_not_change() -> None:
    cloud = ready_fleet()
    cloud.azure.interventions.fail_next("a1", "InvalidParameter", "no vCPUs are left")
    push(cloud, staged(extra=tags("one"), only=DEV))
    cloud.run(seconds=1800)
    push(cloud, with_tag(staged(extra=tags("one"), only=DEV), "b1", "fix"))
    cloud.run(seconds=3600)
    assert changed(cloud, "fix") == {"b1"}
    assert phases(cloud)["a1"] is Phase.FAILED
    assert changed(cloud, "one") == {"a1"}


def test_fixes_past_a_pause_keep_to_the_stages_and_stop_at_their_own_failure() -> None:
    cloud, _ = paused(("a1", "b4"))
    cloud.azure.interventions.fail_next("a2", "InvalidParameter", "no vCPUs are left")
    files = with_tag(staged(extra=tags("fix"), only=("a2", "a3", "b1")), "a1", "one")
    commit = push(cloud, with_tag(files, "b4", "one"))
    cloud.run(seconds=3600)
    assert changed(cloud, "fix") == {"a2"}
    names = [stage.name for stage in rollout_of(cloud, commit).stages]
    assert names == ["fix:development", "fix:production", "development", "production"]


def test_a_commit_after_the_fix_holds_what_was_held_and_lets_pass_what_passed() -> None:
    cloud, _ = paused(DEV)
    push(cloud, with_tag(staged(extra=tags("one"), only=DEV), "b2", "fix"))
    cloud.run(seconds=3600)
    push(cloud, with_tag(with_tag(staged(extra=tags("one"), only=DEV), "b2", "fix"), "b3", "more"))
    cloud.run(seconds=3600)
    assert (changed(cloud, "more"), changed(cloud, "one")) == ({"b3"}, {"a1"})


def test_what_the_paused_rollout_could_not_plan_is_held_too() -> None:
    cloud = ready_fleet()
    files = staged(extra=tags("one"))
    path = "clusters/b2/cluster.yaml"
    commit = push(cloud, {**files, path: files[path].replace(b"location", b"locaton")})
    cloud.run(seconds=3)
    act(cloud, commit, "pause")
    cloud.run(seconds=600)
    push(cloud, files)
    cloud.run(seconds=3600)
    assert changed(cloud, "one") == {"a1"}


def test_a_pause_of_the_newer_rollout_holds_the_fixes_as_well() -> None:
    cloud, _ = paused(DEV)
    commit = push(cloud, with_tag(with_tag(staged(extra=tags("one"), only=DEV), "b2", "fix"), "b3", "fix"))
    cloud.run(seconds=3)
    act(cloud, commit, "pause")
    cloud.run(seconds=3600)
    assert changed(cloud, "fix") == {"b2"}


def test_a_rollout_that_is_not_paused_has_no_stages_of_fixes() -> None:
    cloud = ready_fleet(DEFAULT)
    push(cloud, staged(extra=tags("one"), only=DEV))
    cloud.run(seconds=3)
    commit = push(cloud, with_tag(staged(extra=tags("one"), only=DEV), "b2", "fix"))
    cloud.run()
    assert not any(stage.ahead for stage in rollout_of(cloud, commit).stages)


class EndsOnce:
    """A state whose process ends right after the paused rollout was saved as superseded."""

    def __init__(self, inner: MemoryState) -> None:
        self._inner, self.ended = inner, False

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def save_rollout(self, rollout: Rollout) -> Rollout:
        saved = self._inner.save_rollout(rollout)
        if rollout.state is RolloutState.SUPERSEDED and not self.ended:
            self.ended = True
            raise Crash
        return saved


def test_a_pause_outlives_a_planner_that_ends_between_two_rollouts() -> None:
    cloud, first = paused()
    state = EndsOnce(cloud.state)
    cloud.with_ports(lambda ports: replace(ports, state=cast(StatePort, state)))
    second = push(cloud, staged(extra=tags("two")))
    cloud.run(seconds=3600)
    assert (state.ended, rollout_of(cloud, first).state) == (True, RolloutState.SUPERSEDED)
    assert rollout_of(cloud, second).people.inherited
    assert changed(cloud, "two") == {"a1"}
