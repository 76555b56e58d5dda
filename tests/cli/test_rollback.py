"""``roadstead rollback``: the pull request, or each condition that is not met."""

from __future__ import annotations

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from tests.support.roadstead_command import roadstead
from tests.support.rollbacks import NEW, OLD, ask, open_pulls, upgraded


@pytest.fixture
def cloud() -> MemoryCloud:
    return upgraded()


def test_a_rollback_is_proposed_and_shown(url: str, cloud: MemoryCloud) -> None:
    asked = roadstead("rollback", "one/apps", "--reason", "pods crash", ROADSTEAD_URL=url)
    (pull,) = open_pulls(cloud)
    lines = asked.stdout.splitlines()
    assert lines[:3] == [
        "one/apps: a pull request is open",
        f"  Kubernetes: {NEW[0]} to {OLD[0]}",
        f"  node image: {NEW[1]} to {OLD[1]}",
    ], asked.stderr
    assert lines[4].endswith(f"/pull/{pull.number}")
    (act, *_) = cloud.state.acts(1, None)
    assert (act.action, act.target, act.reason, act.result) == (
        "rollback",
        "one/apps",
        "pods crash",
        "accepted",
    )


def test_what_prevents_it_is_an_error(url: str, cloud: MemoryCloud) -> None:
    cloud.azure.interventions.stop(cloud.azure.ids()[0])
    cloud.run(seconds=60, until=lambda: False)
    refused = roadstead("rollback", "one/apps", ROADSTEAD_URL=url)
    assert "the cluster is stopped: start it first" in " ".join(refused.stderr.split())
    assert refused.returncode == 1
    assert ask(cloud).status == 409


def test_a_cluster_without_a_pool_is_a_mistake(url: str) -> None:
    for place in ("one", "one/", "one/apps/more"):
        assert (
            "give a cluster and one of its node pools"
            in roadstead("rollback", place, ROADSTEAD_URL=url).stderr
        )
