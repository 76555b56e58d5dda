"""People who change clusters in Azure by hand, wait for Azure, and look at what a sweep makes of it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

from localcloud.azure.world.arm_errors import ArmError
from localcloud.azure.world.arm_keys import key_of
from localcloud.azure.world.interventions import SOMEBODY
from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record import ClusterRecord
from shared.json_tree import Json
from shared.resource_ids import ClusterId
from simulation.event_loop import ActingFunction, EventLoop
from simulation.history import AzureHistory
from simulation.oracle import Oracle, is_going

OPERATION = timedelta(minutes=20)
"""By then an operation of Azure has ended."""


class ByHand:
    """What they have in common; ``sweep`` sweeps to its end, and ``acts`` counts what was done by hand."""

    def __init__(
        self,
        chance: random.Random,
        loop: EventLoop,
        oracle: Oracle,
        history: AzureHistory,
        sweep: Callable[[], None],
    ) -> None:
        self._chance, self._loop, self._oracle = chance, loop, oracle
        self._history, self._sweep = history, sweep
        self.acts = 0

    def _owned(self, cloud: MemoryCloud, record: ClusterRecord) -> Json | None:
        """Return the cluster of a record as it is in Azure, None unless it exists with the fleet's tags.

        None for one that sleeps by a schedule: the first sweep that finds it awake compares it.
        """
        if record.desired.spec.sleep is not None:
            return None
        live = self._oracle.live(key_of(record.desired.id))
        if live is None or is_going(live) or live["tags"].get("roadstead-fleet") != cloud.ports.config.fleet:
            return None
        return live

    @contextmanager
    def _changing(self, cluster: ClusterId) -> Iterator[None]:
        """Change a cluster as a person does; what Azure does not allow now does not happen."""
        self._history.disturb(cluster)
        somebody = self._loop.azure.called_by(SOMEBODY)
        with suppress(ArmError), self._loop.as_actor(ActingFunction(self._loop.clock())), somebody:
            yield

    def _after_operations(self) -> None:
        """Let Azure's operations end, and a sweep after them."""
        self._loop.run_until(self._loop.clock() + OPERATION)
        self._sweep()
