"""A crash before and after every call for policies: nothing twice, nothing left."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from localcloud.memory.crashes import Counter, Tripwire
from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record_parts import Phase
from tests.support import fleet_files
from tests.support.crash_points import crash_points
from tests.support.one_cluster import files
from tests.support.pipeline_runs import phases, push
from tests.support.policies import ADDON, BASELINE, DENIED, DENY, PRIVILEGED, by_hand, policies
from tests.support.sample import sample

ONE_POLICY = ADDON + "  policies:\n" + DENY


def whole_run(counter: Counter) -> None:
    """Assign a policy, another definition, none, and one again; delete the cluster; the host dies once."""
    cloud = MemoryCloud(throttle=False)
    push(cloud, files(ONE_POLICY))
    wire: object = Tripwire(cloud.ports.azure, counter)
    cloud.with_ports(lambda ports: replace(ports, azure=wire))  # type: ignore[arg-type]
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert list(policies(cloud)) == [DENIED]
    by_hand(cloud)
    push(cloud, files(ONE_POLICY.replace(PRIVILEGED, BASELINE)))
    cloud.run()
    assert len(policies(cloud)) == 2
    assert DENIED not in policies(cloud)
    push(cloud, files())
    cloud.run()
    assert list(policies(cloud)) == ["of-a-person"]
    push(cloud, files(ONE_POLICY))
    cloud.run()
    push(cloud, fleet_files.fleet())
    cloud.run()
    assert phases(cloud) == {}
    assert list(policies(cloud)) == ["of-a-person"]


@cache
def points() -> list[int]:
    return crash_points(whole_run, "steps/companions.py")


@pytest.mark.lives
def test_a_crash_at_any_call_assigns_and_removes_exactly_what_git_says() -> None:
    assert len(points()) > 19
    for point in sample("policies", points(), 6):
        whole_run(Counter(point))
