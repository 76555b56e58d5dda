"""A crash before and after every call for what identities may do: nothing twice, nothing left."""

from __future__ import annotations

from functools import cache

import pytest

from localcloud.memory.crashes import Counter
from shared.azure.companions.identity_access import credential_name
from shared.cluster.record_parts import Phase
from tests.support import fleet_files
from tests.support.crash_points import crash_points, wire
from tests.support.identity_access import ACCESS, ISSUER, assignments, credentials, with_identity
from tests.support.one_cluster import ONE, files
from tests.support.pipeline_runs import accepted, phases, push
from tests.support.sample import DEEP, sample

PARTS = 3 if DEEP else 1

CHANGED = ACCESS.replace("name: shop, identity", "name: renamed, identity").replace("AcrPull", "Reader")
RENAMED = CHANGED.replace("name: pull", "name: images")


def whole_run(counter: Counter) -> None:
    """Create a cluster with both, change both, rename one, and delete the cluster; the host dies once."""
    cloud = with_identity()
    push(cloud, files(ACCESS))
    wire(cloud, counter, "azure")
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert list(credentials(cloud)) == [credential_name(ONE, "shop")]
    (first,) = assignments(cloud)
    push(cloud, files(CHANGED))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert list(credentials(cloud)) == [credential_name(ONE, "renamed")]
    (second,) = assignments(cloud)
    assert first != second
    push(cloud, files(RENAMED))
    cloud.run()
    (third,) = assignments(cloud)
    assert second != third
    push(cloud, files(ISSUER))
    cloud.run()
    assert (credentials(cloud), assignments(cloud)) == ({}, {})
    push(cloud, files(ACCESS))
    cloud.run()
    push(cloud, fleet_files.fleet())
    cloud.run()
    assert phases(cloud) == {}
    assert (credentials(cloud), assignments(cloud)) == ({}, {})
    assert accepted(cloud)["create", "one"] == accepted(cloud)["delete", "one"] == 1


@cache
def points() -> list[int]:
    return crash_points(whole_run, "steps/companions.py")


def test_a_run_has_places_to_crash_at_in_each_part() -> None:
    assert len(points()) > 38


@pytest.mark.lives
@pytest.mark.parametrize("part", range(PARTS))
def test_a_crash_at_any_call_grants_and_removes_exactly_what_git_says(part: int) -> None:
    for point in sample("identities", points(), 12)[part::PARTS]:
        whole_run(Counter(point))
