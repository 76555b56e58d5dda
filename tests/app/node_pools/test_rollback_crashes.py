"""A crash before and after every call of the step of a rollback: it is carried out once all the same."""

from __future__ import annotations

import pytest

from localcloud.memory.crashes import Counter
from shared.cluster.record_parts import Phase
from tests.support.crash_points import run_with_crashes, wire
from tests.support.pipeline_runs import accepted, phases
from tests.support.rollbacks import OLD, ask, merge, runs, upgraded


def whole_run(counter: Counter) -> None:
    """Roll a pool back; the host dies once."""
    cloud = upgraded()
    ask(cloud)
    before = accepted(cloud)
    wire(cloud, counter, "azure")
    merge(cloud)
    assert (runs(cloud), phases(cloud)) == (OLD, {"one": Phase.READY})
    writes = {key: count for key, count in (accepted(cloud) - before).items() if "pool" in key[0]}
    assert writes == {("update-pool", "apps"): 1}


@pytest.mark.lives
def test_a_crash_at_any_call_rolls_the_pool_back_once() -> None:
    run_with_crashes(whole_run, "steps/node_pools", least=4)
