"""Hand-overs in parts, what they cost, and a planner that runs alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.queues.messages import QueueRequest, ToPlan, message_of
from shared.cluster.record import ClusterRecord
from shared.ports import FleetConfig, Message, Timing
from tests.support.replaced_ports import around

CONFIG = FleetConfig("example", "example/fleet", timing=Timing(lease_seconds=20, poll_seconds=5))
CUT = replace(CONFIG, limits=replace(CONFIG.limits, handover_clusters=3, handover_seconds=0))
"""Every invocation hands three clusters over."""
ONE_BY_ONE = replace(CUT, limits=replace(CUT.limits, handover_clusters=1))
NAMES = [f"c{number:02}" for number in range(12)]


class Counts:
    """What a hand-over reads, saves and sends, counted by cluster."""

    def __init__(self, cloud: MemoryCloud) -> None:
        self.read, self.saved, self.sent = Counter[str](), Counter[str](), Counter[str]()
        self.events, self.batches = Counter[str](), list[int]()
        state, changes = cloud.ports.state, cloud.ports.changes

        def read(name: str) -> ClusterRecord | None:
            self.read[name] += 1
            return state.cluster(name)

        def save(record: ClusterRecord) -> ClusterRecord:
            self.saved[record.name] += 1
            self.events[record.name] += len(record.recent_events)
            return state.save(record)

        def send(*messages: Message) -> None:
            self.batches.append(len(messages))
            self.sent.update(message.session for message in messages)
            changes.send(*messages)

        around(cloud, "state", cluster=read, save=save)
        around(cloud, "changes", send=send)


def waiting_plans(cloud: MemoryCloud) -> list[ToPlan]:
    """Return what the planner is to do next."""
    messages = cloud.broker.peek("plans", session=cloud.ports.config.fleet)
    read = (message_of(message.draft.body, QueueRequest) for message in messages)
    return [request for request in read if isinstance(request, ToPlan)]


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
