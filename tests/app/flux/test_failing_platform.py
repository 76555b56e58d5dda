"""A commit that every check takes, and that Flux cannot make healthy: only the first cluster has it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record_parts import Phase
from shared.language.pin import Pin
from tests.support.pipeline_runs import phases, push, status
from tests.support.scaffolded_fleets import NAMES, NAMESPACES, scaffolded

FIRST = "development-00"
UNREACHABLE = b"""---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata:
  name: nowhere
  namespace: flux-system
spec:
  interval: 1m
  url: https://github.com/example/nowhere
"""
REASON = "Flux: Kustomization flux-system: HealthCheckFailed: health check failed after 1m0s"


def pins(cloud: MemoryCloud) -> dict[str, str]:
    found = {record.name: Pin.of(record.document) for record in cloud.state.clusters()}
    return {name: pin.commit if pin else "" for name, pin in found.items()}


def run(cloud: MemoryCloud, minutes: int) -> None:
    end = cloud.clock() + timedelta(minutes=minutes)
    while cloud.clock() < end:
        if not cloud.step():
            cloud.clock.advance(1)


@pytest.mark.lives
def test_a_platform_that_is_never_healthy_stops_in_the_first_cluster_and_fails_the_commit() -> None:
    files, cloud = scaffolded(), MemoryCloud()
    waits = b"          wait: true "
    files["fleet.yaml"] = files["fleet.yaml"].replace(waits, b"          timeout: 1m\n" + waits)
    good = push(cloud, files)
    cloud.run()
    assert pins(cloud) == dict.fromkeys(NAMES, good)

    bad = push(cloud, files | {NAMESPACES: files[NAMESPACES] + UNREACHABLE})
    run(cloud, minutes=5)
    state, text = status(cloud, bad)
    assert (state, f"{FIRST}: {REASON}" in text) == ("pending", True)
    run(cloud, minutes=15)
    state, text = status(cloud, bad)
    assert (state, text.startswith(f"{FIRST}: Stalled at verify: {REASON}")) == ("failure", True)
    run(cloud, minutes=120)
    assert pins(cloud) == dict.fromkeys(NAMES, good) | {FIRST: bad}

    back = push(cloud, files)
    cloud.run()
    assert status(cloud, back) == ("success", "14 of 14 clusters in sync (1 update, 13 unchanged)")
    assert pins(cloud) == dict.fromkeys(NAMES, good) | {FIRST: back}
    assert set(phases(cloud).values()) == {Phase.READY}
