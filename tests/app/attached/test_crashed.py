"""A crash before and after every call with which a cluster outside Azure is marked and released."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from localcloud.memory.memory_cloud import Counter, Tripwire
from shared.cluster.record import Phase
from tests.support.clusters_elsewhere import cloud_with_harbour, files, owner, record
from tests.support.crash_points import crash_points
from tests.support.fleet_files import fleet
from tests.support.pipeline_runs import phases, push
from tests.support.sample import sample


def whole_run(counter: Counter) -> None:
    """Attach the cluster, change it, and release it, while the host dies once."""
    cloud = cloud_with_harbour()
    wires: dict[str, Any] = {
        name: Tripwire(getattr(cloud.ports, name), counter) for name in ("kubernetes", "vaults", "state")
    }
    cloud.with_ports(lambda ports: replace(ports, **wires))
    push(cloud, files())
    cloud.run()
    assert phases(cloud) == {"harbour": Phase.READY}
    assert owner(cloud)["roadstead-life"] == record(cloud).uid
    push(cloud, files(extra="  deletionProtection: false\n  drift: {fluxObjects: correct}\n"))
    cloud.run()
    assert phases(cloud) == {"harbour": Phase.READY}
    push(cloud, fleet())
    cloud.run()
    assert phases(cloud) == {}
    assert owner(cloud) == {}


@cache
def points() -> list[int]:
    return crash_points(whole_run, "steps/attached.py")


def test_a_run_has_places_to_crash_at() -> None:
    assert len(points()) > 10


@pytest.mark.parametrize("half", range(2))
def test_a_crash_at_any_call_leaves_nothing_marked_twice_or_for_ever(half: int) -> None:
    for point in sample("existing", points(), 12)[half::2]:
        whole_run(Counter(point))
