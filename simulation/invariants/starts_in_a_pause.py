"""The rule of a pause: nothing starts by itself in it."""

from __future__ import annotations

from datetime import timedelta

from localcloud.memory.memory_cloud import JOB_QUEUES, MemoryCloud
from shared.cluster.record import ClusterRecord
from simulation.invariants.context import CLOCKS, Context
from simulation.rule import RuleViolated

NOTICED = timedelta(seconds=10) + CLOCKS
"""How late an instance may notice a pause."""


class PauseRule:
    """Checks what begins in a fleet that somebody has paused."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def wrote(self, what: str) -> None:
        """Check a write to Azure."""
        actor = self._context.loop.actor
        if actor.cloud is not None and actor.queue in JOB_QUEUES:
            self._starts(actor.cloud, what)

    def saved(self, cloud: MemoryCloud, before: ClusterRecord | None, after: ClusterRecord) -> None:
        """Check a record: the planner gives no new generation."""
        generation = before.generation if before is not None and before.uid == after.uid else 0
        if after.generation > generation and self._context.loop.actor.queue == "plans":
            self._starts(cloud, f"{after.name} gets the generation {after.generation}")

    def _starts(self, cloud: MemoryCloud, what: str) -> None:
        loop, paused = self._context.loop, self._context.history(cloud).paused
        if paused is None:
            return
        since, until = paused
        if loop.actor.since > since + NOTICED and (until is None or loop.clock() < until - CLOCKS):
            raise RuleViolated("paused", f"{what} in a pause since {since}")
