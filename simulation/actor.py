"""Who acts in a simulation, and what it is when a rule does not hold."""

from __future__ import annotations

from dataclasses import dataclass

from localcloud.memory.memory_cloud import MemoryCloud
from localcloud.servicebus.world.broker_values import SessionLock
from shared.jobs.record import Lease


class Violated(BaseException):
    """A rule did not hold; ``rule`` is its short name. Not an Exception, so that nothing swallows it."""

    def __init__(self, rule: str, words: str) -> None:
        super().__init__(f"{rule}: {words}")
        self.rule = rule


@dataclass
class Actor:
    """Who acts now: a function of a fleet with its message's lock, and the claim that it took.

    Without a cloud: a person.
    """

    cloud: MemoryCloud | None = None
    queue: str = ""
    lock: SessionLock | None = None
    lease: Lease | None = None
