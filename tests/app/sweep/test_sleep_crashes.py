"""A night, while the host dies at any call: the cluster is stopped once, started once, and Ready after it."""

from __future__ import annotations

import pytest

from localcloud.memory.crashes import Counter
from shared.cluster.record_parts import Phase
from shared.ports.azure import StartCluster, StopCluster
from tests.support.crash_points import run_with_crashes, wire
from tests.support.pipeline_runs import phases
from tests.support.replaced_ports import calls_of
from tests.support.sleepers import on_monday, runs, until


def a_night(counter: Counter) -> None:
    """Let a cluster sleep from 19:00 to 07:00 of Helsinki, while the host dies once."""
    cloud = on_monday()
    calls = calls_of(cloud, "azure", "call")
    wire(cloud, counter, "azure", "kubernetes", "state", "jobs")
    until(cloud, 18)
    assert (phases(cloud), runs(cloud)) == ({"one": Phase.SLEEPING}, False)
    until(cloud, 5, 1, 45)
    assert (phases(cloud), runs(cloud)) == ({"one": Phase.READY}, True)
    for kind in (StopCluster, StartCluster):
        assert 1 <= sum(isinstance(call, kind) for call in calls) <= 2


@pytest.mark.lives
def test_a_crash_at_any_call_of_a_night_leaves_the_cluster_neither_asleep_nor_awake_at_the_wrong_time() -> (
    None
):
    """At the calls of the worker and each save: the timers of a night make thousands, which are alike."""
    run_with_crashes(a_night, "app/worker/", "app/records.py", least=50)
