"""A crash before and after every call for a bootstrap secret: applied, renewed and removed all the same."""

from __future__ import annotations

import pytest

from localcloud.memory.crashes import Counter
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.outbox import request_whole_check
from shared.cluster.record_parts import Phase
from tests.support.bootstrap_secrets import AGE, NEXT, SOPS, VALUE, value_of, with_value
from tests.support.crash_points import run_with_crashes, wire
from tests.support.one_cluster import api, files
from tests.support.pipeline_runs import phases, push


def whole_run(counter: Counter) -> None:
    """Create a cluster with a secret, replace the value and remove the entry, while the host dies once."""
    cloud = with_value()
    push(cloud, files(AGE))
    wire(cloud, counter, "vaults", "kubernetes", "state")
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert value_of(cloud) == VALUE
    cloud.vault.set("fleet-age", NEXT)
    cloud.sleep(700)
    _check(cloud)
    assert value_of(cloud) == NEXT
    assert phases(cloud) == {"one": Phase.READY}
    push(cloud, files())
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert api(cloud).get(SOPS) is None


def _check(cloud: MemoryCloud) -> None:
    """Have the cluster checked; a message whose host died is delivered again after its lock."""
    request_whole_check(cloud.ports)
    cloud.run(seconds=600, until=lambda: value_of(cloud) == NEXT)
    cloud.run(seconds=120)


@pytest.mark.lives
def test_a_crash_at_any_call_for_a_secret_loses_nothing_and_removes_nothing_else() -> None:
    run_with_crashes(whole_run, "steps/bootstrap_secrets.py", "check/secrets.py", least=20)
