"""A crash before and after every call for a bootstrap secret: applied, renewed and removed all the same."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from localcloud.memory.memory_cloud import Counter, MemoryCloud, Tripwire
from shared.app.outbox import request_whole_check
from shared.cluster.record import Phase
from tests.support.bootstrap_secrets import AGE, NEXT, SOPS, VALUE, value_of, with_value
from tests.support.crash_points import crash_points
from tests.support.one_cluster import api, files
from tests.support.pipeline_runs import phases, push
from tests.support.sample import sample


def whole_run(counter: Counter) -> None:
    """Create a cluster with a secret, replace the value and remove the entry, while the host dies once."""
    cloud = with_value()
    push(cloud, files(AGE))
    names = ("vaults", "kubernetes", "state")
    wires: dict[str, Any] = {name: Tripwire(getattr(cloud.ports, name), counter) for name in names}
    cloud.with_ports(lambda ports: replace(ports, **wires))
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


@cache
def points() -> list[int]:
    return crash_points(whole_run, "steps/bootstrap_secrets.py", "check/secrets.py")


def test_a_run_has_places_to_crash_at_in_each_part() -> None:
    assert len(points()) > 20


@pytest.mark.parametrize("third", range(3))
def test_a_crash_at_any_call_for_a_secret_loses_nothing_and_removes_nothing_else(third: int) -> None:
    for point in sample("secrets", points(), 24)[third::3]:
        whole_run(Counter(point))
