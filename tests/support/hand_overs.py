"""Hand-overs in parts, and a planner that runs alone."""

from __future__ import annotations

from dataclasses import replace

from localcloud.memory.memory_cloud import MemoryCloud
from shared.ports import FleetConfig

CONFIG = FleetConfig("example", "example/fleet", lease_seconds=20, poll_seconds=5)
CUT = replace(CONFIG, handover_clusters=3, handover_seconds=0)
"""Every invocation hands three clusters over."""


def plan_step(cloud: MemoryCloud) -> bool:
    """Deliver the next message of the planner, and none of a worker or a report."""
    session = cloud.ports.config.fleet
    if all(message.scheduled for message in cloud.broker.peek("plans", session=session)):
        return False
    lock = cloud.broker.accept_session("plans", session)
    assert lock is not None
    cloud.deliver("plans", lock, cloud.ports)
    return True


def plan_steps(cloud: MemoryCloud) -> int:
    """Deliver what the planner has now; return how many messages that were."""
    number = 0
    while plan_step(cloud):
        number += 1
    return number
