"""People who ask for rebuilds, take them back, and set an earlier time, which asks for nothing."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from simulation.actors.kinds import REBUILDS
from simulation.actors.upkeep import ActorUpkeep
from simulation.operators import Operators

ACTS = (2, 5)
REGRETTED = (2.0, 5.0, 20.0, 90.0)
"""Seconds after which somebody takes a rebuild back."""


class RebuildActor(ActorUpkeep):
    """They act on every fleet."""

    kind = REBUILDS

    def schedule(self, seconds: float) -> None:
        """Let them act at some moments of so many seconds."""
        self._in_fleets(ACTS, seconds, self._act)

    def _act(self, operators: Operators) -> None:
        """Ask for a rebuild of a cluster, or set a time back to an earlier one, which asks for nothing."""
        clusters = [*operators.now.clusters.values()]
        if not clusters or self._loop.peaceful:
            return
        self.acts += 1
        cluster = self._chance.choice(clusters)
        earlier = cluster.rebuild > 1 and self._chance.random() < 0.3
        number = self._chance.randrange(cluster.rebuild) if earlier else self.acts + 1
        operators.push(operators.now.with_cluster(replace(cluster, rebuild=number)))
        if self._chance.random() < 0.3:
            back = partial(self._regret, operators, cluster.name, number, cluster.rebuild)
            self._loop.schedule(self._chance.choice(REGRETTED), back)

    def _regret(self, operators: Operators, name: str, number: int, before: int) -> None:
        cluster = operators.now.clusters.get(name)
        if cluster is not None and cluster.rebuild == number and not self._loop.peaceful:
            operators.push(operators.now.with_cluster(replace(cluster, rebuild=before)))
