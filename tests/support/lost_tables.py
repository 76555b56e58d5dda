"""A fleet whose app knows its clusters by the id of its settings, and that loses every table."""

from __future__ import annotations

from dataclasses import replace

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record_parts import Phase
from shared.ports import FleetConfig, Timing
from shared.resource_ids import GroupId
from tests.support.one_cluster import ONE
from tests.support.pipeline_runs import phases, push

ID = "5f0c7a52-the-app"
APP_GROUP = GroupId(ONE.subscription, "rg-roadstead")
CONFIG = FleetConfig(
    "example",
    "example/fleet",
    installation=ID,
    app_group=APP_GROUP,
    timing=Timing(lease_seconds=20, poll_seconds=5),
)


def with_epoch(cloud: MemoryCloud) -> MemoryCloud:
    """Give the tables an epoch that stands outside them, before the first push."""
    cloud.azure.engine.app_group(APP_GROUP.subscription, APP_GROUP.name)
    config = replace(cloud.ports.config, app_group=APP_GROUP)
    cloud.with_ports(lambda ports: replace(ports, config=config))
    return cloud


def ready(manifests: dict[str, bytes], config: FleetConfig = CONFIG) -> MemoryCloud:
    cloud = MemoryCloud(config=config, throttle=False)
    push(cloud, manifests)
    cloud.run()
    assert set(phases(cloud).values()) == {Phase.READY}
    return cloud


def lose(cloud: MemoryCloud) -> None:
    """Lose every table, and let the timers find that nothing is planned."""
    cloud.restore()
    cloud.clock.advance(3600)
    cloud.run(seconds=1800)
