"""A change that is too large to be stored is never the first one of its group, and blocks nothing."""

from __future__ import annotations

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.failures.errors import TooLarge
from shared.cluster.record import ClusterRecord
from shared.plan.holds import Hold, HoldKind
from shared.plan.plan import Action, Item, Plan
from shared.rollouts.rollout import RolloutState
from tests.support.pipeline_runs import push, status
from tests.support.replaced_ports import around
from tests.support.staged_fleets import DEV, PROD, changed, ready_fleet, rollout_of, staged, tags

pytestmark = pytest.mark.lives

SIZE = "the record is too large: it has 2000000 bytes"


def refusing(*names: str) -> MemoryCloud:
    """Return a fleet in which new specs of some clusters are too large for an entity."""
    cloud = ready_fleet()
    save = cloud.state.save

    def saved(record: ClusterRecord) -> ClusterRecord:
        before = cloud.state.cluster(record.name)
        if record.name in names and before is not None and record.generation > before.generation:
            raise TooLarge(SIZE)
        return save(record)

    around(cloud, "state", save=saved)
    return cloud


def test_the_next_cluster_is_the_first_where_the_first_one_is_too_large() -> None:
    cloud = refusing("a1")
    commit = push(cloud, staged(extra=tags("one")))
    cloud.run(seconds=20)
    assert len(changed(cloud, "one")) == 1
    rollout = rollout_of(cloud, commit)
    first = [member.cluster for member in rollout.members if (member.stage, member.group) == (0, 0)]
    assert first == ["a2"]
    cloud.run()
    assert changed(cloud, "one") == {*DEV, *PROD} - {"a1"}
    assert rollout_of(cloud, commit).state is RolloutState.COMPLETED
    found = cloud.state.plan(commit)
    assert found is not None
    item = next(item for item in found.plan.items if item.cluster == "a1")
    assert (item.action, SIZE in item.reason) == (Action.INVALID, True)
    assert status(cloud, commit)[0] == "failure"


def test_a_later_group_whose_clusters_are_all_too_large_does_not_keep_the_rollout_open() -> None:
    cloud = refusing("b2", "b3", "b4")
    commit = push(cloud, staged(extra=tags("one")))
    cloud.run()
    assert changed(cloud, "one") == {*DEV, "b1"}
    assert rollout_of(cloud, commit).state is RolloutState.COMPLETED


def test_another_attempt_at_the_commit_does_not_try_it_again_whatever_generation_it_gives() -> None:
    hold = Hold(HoldKind.INVALID_MANIFEST, {"problem": SIZE, "too large": "yes"})
    found = Item("a1", Action.INVALID, 7, "a", hold=hold)
    now = [Item("a1", Action.UPDATE, 99, uid) for uid in ("a", "b")]
    earlier = Plan("one", (found,))
    assert Plan("one", (now[0],)).without_oversized(earlier).items == (found,)
    assert Plan("one", (now[1],)).without_oversized(earlier).items == (now[1],), "of another life"
    assert Plan("two", (now[0],)).without_oversized(earlier).items == (now[0],)


def test_a_newer_commit_tries_it_again() -> None:
    cloud = refusing("a1")
    push(cloud, staged(extra=tags("one")))
    cloud.run()
    around(cloud, "state", save=cloud.state.save)
    push(cloud, staged(extra=tags("two")))
    cloud.run()
    assert changed(cloud, "two") == {*DEV, *PROD}
