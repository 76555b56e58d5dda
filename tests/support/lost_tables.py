"""A fleet whose app knows its clusters by the id of its settings, and that loses every table."""

from __future__ import annotations

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record import Phase
from shared.ports import FleetConfig
from tests.support.pipeline_runs import phases, push

ID = "5f0c7a52-the-app"
CONFIG = FleetConfig("example", "example/fleet", installation=ID, lease_seconds=20, poll_seconds=5)


def ready(manifests: dict[str, bytes], config: FleetConfig = CONFIG) -> MemoryCloud:
    cloud = MemoryCloud(config=config, throttle=False)
    push(cloud, manifests)
    cloud.run()
    assert set(phases(cloud).values()) == {Phase.READY}
    return cloud


def lose(cloud: MemoryCloud) -> None:
    """Lose every table, and let the timers find that nothing is planned."""
    cloud.state.lose()
    cloud.clock.advance(3600)
    cloud.run(seconds=1800)
