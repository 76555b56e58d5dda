"""``roadstead plans`` and ``approve``: what may still be approved, and what may not any more."""

from __future__ import annotations

from datetime import timedelta

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from tests.support import fleet_files
from tests.support.pipeline_runs import phases, push
from tests.support.roadstead_command import roadstead


@pytest.fixture
def cloud() -> MemoryCloud:
    """A cloud whose last commit has removed two of three clusters, more than the budget."""
    made = MemoryCloud()
    push(made, fleet_files.fleet("one", "two", "three"))
    made.run()
    push(made, fleet_files.fleet("three"))
    made.run()
    return made


def test_deletes_can_be_approved_however_old_their_plan_is(cloud: MemoryCloud, url: str) -> None:
    cloud.clock.advance(timedelta(days=40).total_seconds())
    commit = cloud.state.fleet().commit[:8]
    listed = roadstead("plans", ROADSTEAD_URL=url).stdout
    assert f"2 deletes need approval: roadstead approve {commit}" in listed
    done = roadstead("approve", commit, "--yes", ROADSTEAD_URL=url)
    assert done.returncode == 0, done.stderr
    cloud.run()
    assert set(phases(cloud)) == {"three"}


def test_an_old_plan_is_not_offered_and_refused_before_a_question(cloud: MemoryCloud, url: str) -> None:
    old = cloud.state.fleet().commit[:8]
    push(cloud, fleet_files.fleet("one", "two", "three"))
    cloud.run()
    listed = roadstead("plans", ROADSTEAD_URL=url).stdout
    assert "2 deletes never approved; a newer commit was planned" in listed
    assert f"roadstead approve {old}" not in listed
    refused = roadstead("approve", old, ROADSTEAD_URL=url)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert f"a newer commit than {old} is planned" in refused.stderr
    assert set(phases(cloud)) == {"one", "two", "three"}
