"""People who change what git owns of clusters by hand while faults happen, jobs run and commits come.

The rules of sweeps, of records and of the end hold as without them: a change by hand excuses nothing but that
its cluster differs until a sweep, a job or its author has undone it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from localcloud.azure.world.azure_engine import key_of
from localcloud.memory.memory_cloud import MemoryCloud
from shared.fleet.json_tree import Json
from shared.fleet.resource_ids import ClusterId
from shared.jobs.record import Phase
from simulation.actors.by_hand import ByHand
from simulation.actors.drift import first_pool, value_of
from simulation.event_loop import EventLoop
from simulation.history import AzureHistory
from simulation.operators import Operators
from simulation.oracle import Oracle, is_going

ACTS = (0, 3)
COST, COUNT = "tags.cost", "count"


class DriftAmongFaults(ByHand):
    """They change a tag or a count of a Ready cluster; ``acts`` counts the changes."""

    def __init__(
        self,
        seed: int,
        everybody: Sequence[Operators],
        loop: EventLoop,
        oracle: Oracle,
        history: AzureHistory,
    ) -> None:
        chance = random.Random(f"{seed} drift among faults")  # noqa: S311
        super().__init__(chance, loop, oracle, history, lambda: None)
        self._everybody = everybody
        self._changed: dict[tuple[MemoryCloud, ClusterId, str], tuple[object, object]] = {}
        """Of each field what it was, and what it became."""

    def schedule(self, seconds: float) -> None:
        """Let them act at some moments of so many seconds."""
        for _ in range(self._chance.randint(*ACTS)):
            self._loop.schedule(self._chance.uniform(0, seconds), self._act)

    def _act(self) -> None:
        cloud = self._chance.choice(self._everybody).cloud
        ready = [record for record in cloud.state.clusters() if record.phase is Phase.READY]
        if not ready:
            return
        record, field = self._chance.choice(ready), self._chance.choice((COST, COUNT))
        cluster, live = key_of(record.desired.id), self._owned(cloud, record)
        if live is None or (field == COST and not live["tags"].get("cost")):
            return
        before = value_of(live, field)
        after: object = before + 1 if isinstance(before, int) else f"{before}y"
        self.acts += 1
        self._loop.log("somebody changes %s of %s by hand, among the faults", field, record.name)
        self._changed.setdefault((cloud, cluster, field), (before, after))
        self._write(cloud, cluster, live, field, after)

    def undo(self) -> None:
        """Undo what is still as they left it: nobody has corrected it, and no commit has asked for more."""
        for (cloud, cluster, field), (before, after) in self._changed.items():
            live = self._oracle.live(cluster)
            if live is not None and not is_going(live) and value_of(live, field) == after:
                self._write(cloud, cluster, live, field, before)
        self._changed.clear()

    def _write(self, cloud: MemoryCloud, cluster: ClusterId, live: Json, field: str, value: object) -> None:
        with self._changing(cluster):
            if field == COUNT:
                cloud.azure.interventions.scale(cluster, first_pool(live)["name"], int(str(value)))
            else:
                cloud.azure.patch_cluster(cluster, {"tags": {**live["tags"], "cost": str(value)}})
