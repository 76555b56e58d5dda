"""A crash before and after every call for policies: nothing twice, nothing left."""

from __future__ import annotations

import pytest

from localcloud.memory.crashes import Counter
from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record_parts import Phase
from tests.support import fleet_files
from tests.support.crash_points import run_with_crashes, wire
from tests.support.one_cluster import files
from tests.support.pipeline_runs import phases, push
from tests.support.policies import ADDON, BASELINE, DENIED, DENY, PRIVILEGED, by_hand, policies

ONE_POLICY = ADDON + "  policies:\n" + DENY


def whole_run(counter: Counter) -> None:
    """Assign a policy, another definition, none, and one again; delete the cluster; the host dies once."""
    cloud = MemoryCloud(throttle=False)
    push(cloud, files(ONE_POLICY))
    wire(cloud, counter, "azure")
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


@pytest.mark.lives
def test_a_crash_at_any_call_assigns_and_removes_exactly_what_git_says() -> None:
    run_with_crashes(whole_run, "steps/companions.py", least=19, most=6)
