"""What somebody adds to a cluster by hand: it stays reported until git has it or somebody takes it away."""

from __future__ import annotations

from datetime import timedelta

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from tests.support.one_cluster import (
    ONE,
    cluster,
    files,
    pool,
    ready,
    record,
)
from tests.support.pipeline_runs import push
from tests.support.sweeps import LATER, change_pool_by_hand, drifted, in_sync, sweep, tag_by_hand

pytestmark = pytest.mark.lives


def add_by_hand(cloud: MemoryCloud) -> set[str]:
    """Add a tag, a label, a taint and a pool to a cluster; return the paths of what was added."""
    tag_by_hand(cloud, ONE, owner="ann")
    change_pool_by_hand(cloud, ONE, "apps", nodeLabels={"own": "x"}, nodeTaints=["k=v:NoSchedule"])
    extra = {"properties": {"vmSize": "Standard_D2s_v5", "count": 1, "mode": "User"}}
    cloud.azure.put_pool(ONE, "extra", extra)
    return {"tags.owner", "nodePools[apps].nodeLabels.own", "nodePools[apps].nodeTaints", "nodePools[extra]"}


def test_what_somebody_added_and_a_sweep_reported_stays_reported_after_commits_with_its_time() -> None:
    cloud = ready(pool())
    added = add_by_hand(cloud)
    sweep(cloud)
    assert {*drifted(record(cloud))} == added
    since = {field.path: field.since for field in record(cloud).divergence.drift.fields}  # type: ignore[union-attr]
    for cost in ("a", "b"):
        push(cloud, files(pool() + f"  tags: {{cost: {cost}}}\n"))
        cloud.run()
        assert cluster(cloud)["tags"]["cost"] == cost
        assert in_sync(record(cloud)) == (False, "Drifted")
        sweep(cloud)
        found = record(cloud).divergence.drift
        assert found is not None
        assert {field.path: field.since for field in found.fields} == since


def test_what_somebody_added_is_reported_no_more_once_git_has_it_also_after_git_drops_it_again() -> None:
    cloud = ready(pool())
    tag_by_hand(cloud, ONE, owner="ann", other="x")
    sweep(cloud)
    push(cloud, files(pool() + "  tags: {owner: ann}\n"))
    cloud.run()
    assert [*drifted(record(cloud))] == ["tags.other"]
    push(cloud, files(pool()))
    cloud.run()
    sweep(cloud)
    assert [*drifted(record(cloud))] == ["tags.other"], "the other one was never in git"


def test_what_somebody_added_and_took_away_during_a_commit_is_over_and_new_when_it_comes_again() -> None:
    cloud = ready(pool())
    add_by_hand(cloud)
    sweep(cloud)
    cloud.azure.delete_pool(ONE, "extra")
    cloud.clock.advance(LATER)
    cloud.azure.complete_due()
    change_pool_by_hand(cloud, ONE, "apps", nodeLabels={}, nodeTaints=[])
    push(cloud, files(pool() + "  tags: {cost: a}\n"))
    cloud.run()
    assert [*drifted(record(cloud))] == ["tags.owner"]
    change_pool_by_hand(cloud, ONE, "apps", nodeLabels={"own": "x"})
    sweep(cloud)
    assert [*drifted(record(cloud))] == ["tags.owner", "nodePools[apps].nodeLabels.own"]


def test_what_an_exemption_ignores_is_reported_after_its_end_whatever_was_committed_meanwhile() -> None:
    cloud = ready(pool())
    tag_by_hand(cloud, ONE, owner="ann")
    sweep(cloud)
    last = (cloud.clock() + timedelta(days=2)).date()
    rule = f"{{name: r, fields: [tags.owner], action: ignore, owner: o, reason: r, expires: '{last}'}}"
    push(cloud, files(pool() + f"  drift: {{rules: [{rule}]}}\n"))
    cloud.run()
    sweep(cloud)
    assert drifted(record(cloud)) == {}, "somebody accepts it"
    push(cloud, files(pool() + f"  tags: {{cost: a}}\n  drift: {{rules: [{rule}]}}\n"))
    cloud.run()
    cloud.clock.advance(timedelta(days=3).total_seconds())
    sweep(cloud)
    assert [*drifted(record(cloud))] == ["tags.owner"]


def test_more_than_is_stored_of_what_somebody_added_stays_reported_after_a_commit() -> None:
    cloud = ready(pool())
    tag_by_hand(cloud, ONE, **{f"t{index:02}": "x" for index in range(30)})
    sweep(cloud)
    push(cloud, files(pool() + "  tags: {cost: a}\n"))
    cloud.run()
    sweep(cloud)
    drift = record(cloud).divergence.drift
    assert drift is not None
    assert drift.count == 30
