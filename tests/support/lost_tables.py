"""A fleet whose app knows its clusters by the id of its settings, and that loses every table."""

from __future__ import annotations

from dataclasses import replace

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.recovery.missed_work import resend_overdue
from shared.cluster.record_parts import Phase
from shared.ports import FleetConfig, Timing
from shared.resource_ids import GroupId
from tests.support.one_cluster import ONE
from tests.support.pipeline_runs import deliver_due, phases, push

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


def recovered(cloud: MemoryCloud) -> bool:
    """Let the recovery go on for a while; return whether it has ended."""
    cloud.run(seconds=1800, until=lambda: False)
    return cloud.state.fleet().tables.recovery is None


def go_on_without_a_plan(cloud: MemoryCloud) -> None:
    """Let the restored jobs go on before the planner has read the branch."""
    resend_overdue(cloud.ports)
    for _ in range(20):
        for queue in ("jobs", "changes", "deletes"):
            deliver_due(cloud, queue)
        cloud.clock.advance(2)
