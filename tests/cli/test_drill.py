"""``roadstead drill``, run against the functions over HTTP."""

from __future__ import annotations

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from tests.support.lost_tables import ready
from tests.support.one_cluster import ONE, files
from tests.support.roadstead_command import roadstead
from tests.support.sweeps import tag_by_hand


@pytest.fixture
def cloud() -> MemoryCloud:
    """Return a cloud with one cluster, whose app has an id."""
    return ready(files())


def test_a_fleet_that_would_come_back_by_itself_is_a_success(url: str) -> None:
    shown = roadstead("drill", "--url", url)
    assert shown.returncode == 0, shown.stderr
    assert "1 of 1 cluster would be rebuilt without a write" in " ".join(shown.stdout.split())


def test_a_cluster_that_would_wait_is_named_with_its_fields(cloud: MemoryCloud, url: str) -> None:
    tag_by_hand(cloud, ONE, **{"managed-by": "somebody"})
    shown = roadstead("drill", "--url", url)
    assert shown.returncode == 0, shown.stderr
    assert "would wait for a person, because it differs from git" in shown.stdout
    assert "tags.managed-by" in shown.stdout
    assert roadstead("drill", "-o", "name", "--url", url).stdout == "cluster/one\n"
