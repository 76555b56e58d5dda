"""A team's system that follows its commits by rollout, after the tables came from an older moment."""

from __future__ import annotations

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.cluster import take_over
from tests.support.followed_systems import (
    BOTH,
    CLAIM,
    TWO,
    following,
    hold_of,
    newest,
    on,
    settle,
)
from tests.support.lost_tables import with_epoch
from tests.support.pipeline_runs import status
from tests.support.team_systems import approve

pytestmark = pytest.mark.lives


def ahead_of_its_tables(*, lost: bool) -> tuple[MemoryCloud, str]:
    """Return a cloud whose tables know nothing of a team's newest commit, and that commit.

    The commit brought a claim, which the team takes away again once the tables are back.
    """
    cloud, team = following(cloud=with_epoch(MemoryCloud()))
    team.commit({"apps/shop/web.yaml": TWO})
    settle(cloud)
    older = cloud.state.backup()
    ahead = team.commit({"apps/shop/web.yaml": TWO + CLAIM})
    settle(cloud)
    assert on(cloud, ahead) == {*BOTH}
    cloud.restore(None if lost else older)
    team.commit({"apps/shop/web.yaml": TWO})
    return cloud, ahead


@pytest.mark.parametrize("lost", [False, True])
def test_what_the_next_commit_destroys_is_judged_from_the_commit_that_flux_has(*, lost: bool) -> None:
    cloud, ahead = ahead_of_its_tables(lost=lost)
    settle(cloud)
    waiting = [record.name for record in cloud.state.clusters() if record.contested]
    assert bool(waiting) == lost
    for name in waiting:
        take_over(name, "jo", cloud.ports)
    settle(cloud)
    assert not any(record.recovering for record in cloud.state.clusters())
    assert on(cloud, ahead) == {*BOTH}
    hold = hold_of(cloud, "b1")
    assert hold is not None
    assert "PersistentVolumeClaim shop/orders is deleted" in hold.cause
    approve(cloud, *BOTH)
    settle(cloud)
    assert on(cloud, ahead) == set()
    assert status(cloud, newest(cloud))[0] == "success"
