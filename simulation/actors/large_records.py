"""Operators who commit manifests that are valid, and whose records would be larger than an entity.

The limit of a record is that of Table Storage; here it is smaller, so that some long tags exceed it.
"""

from __future__ import annotations

import random
from dataclasses import replace

from simulation.actors.kinds import LARGE_RECORDS
from simulation.desired_state import DesiredCluster
from simulation.operators import Operators

ENTITY_BYTES = 4 << 10
"""More than twice the largest record of the others, and less than that of a large one."""
ACTS = (2, 6)


class LargeRecords:
    """They change one fleet, in one seed of some, from a random stream of their own."""

    def __init__(self, seed: int, operators: Operators) -> None:
        self._chance = random.Random(f"{seed} {LARGE_RECORDS}")  # noqa: S311
        self._operators = operators
        self.acts = 0

    def schedule(self, seconds: float) -> None:
        """Let them act at some moments of so many seconds."""
        for _ in range(self._chance.randint(*ACTS)):
            self._operators.loop.schedule(self._chance.uniform(0, seconds), self._act)

    def _act(self) -> None:
        """Push a cluster that is too large, or no longer is, and a change of another one with it."""
        self.acts += 1
        desired, name = self._operators.now, self._chance.choice(self._operators.names)
        cluster = desired.clusters.get(name, DesiredCluster(name))
        large = not cluster.large or self._chance.random() < 0.3
        others = [cluster for cluster in desired.clusters.values() if cluster.name != name]
        desired = desired.with_cluster(replace(cluster, large=large, tag=self._chance.choice("uvw")))
        if others:
            other = self._chance.choice(others)
            desired = desired.with_cluster(replace(other, tag=self._chance.choice("uvw")))
        self._operators.push(desired)
