"""A crash before and after every call to the outside: the fleet converges, and nothing happens twice."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localcloud.memory.memory_cloud import Counter, MemoryCloud, tripwired
from shared.jobs.record import Phase
from tests import fleetfiles
from tests.pipeline.test_main_job import accepted, phases, push, status


def whole_life(counter: Counter) -> None:
    """Create two clusters, change one and remove the other, while the host dies at some points."""
    cloud = MemoryCloud()
    push(cloud, fleetfiles.fleet("one", "two"))
    cloud.with_ports(lambda ports: tripwired(ports, counter))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    files = fleetfiles.fleet("one")
    files["clusters/one/cluster.yaml"] = fleetfiles.cluster("one", count=2)
    commit = cloud.repository.push(files)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert status(cloud, commit)[0] == "success"
    writes = accepted(cloud)
    assert writes["create", "one"] == writes["create", "two"] == writes["delete", "two"] == 1
    assert writes["update-pool", "system"] == 1
    assert cloud.buried == []


@cache
def points() -> int:
    """Return how many points a whole life has to crash at."""
    counter = Counter()
    whole_life(counter)
    return 2 * counter.calls


@pytest.mark.parametrize("tenth", range(10))
def test_a_crash_at_any_point_loses_nothing_and_doubles_nothing(tenth: int) -> None:
    for point in range(tenth, points(), 10):
        whole_life(Counter(point))


@settings(max_examples=40)
@given(first=st.integers(0, 9999), later=st.one_of(st.integers(1, 30), st.integers(1, 9999)))
def test_two_crashes_lose_nothing_and_double_nothing(first: int, later: int) -> None:
    whole_life(Counter(first % points(), first % points() + later % points()))
