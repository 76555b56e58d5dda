"""People who replace a cluster by another one, and who change their minds before that one is Ready."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from simulation.actors.kinds import REPLACEMENTS
from simulation.actors.upkeep import ActorUpkeep
from simulation.desired_state import RequestedFleet
from simulation.operators import Operators

ACTS = (2, 5)
REGRETTED = (5.0, 60.0, 200.0, 600.0)
"""Seconds after which somebody thinks again: a creation takes about as long."""


class Replacements(ActorUpkeep):
    """They act on every fleet."""

    kind = REPLACEMENTS

    def schedule(self, seconds: float) -> None:
        """Let them act at some moments of so many seconds."""
        self._in_fleets(ACTS, seconds, self._act)

    def _act(self, operators: Operators) -> None:
        """Replace a cluster by one that the fleet does not have; git keeps the old one now and then."""
        before = operators.now
        free = [name for name in operators.names if name not in before.clusters]
        if not (before.clusters and free) or self._loop.peaceful:
            return
        self.acts += 1
        old, new = self._chance.choice([*before.clusters.values()]), self._chance.choice(free)
        successor = replace(old, name=new, replaces=old.name, adopt="", rebuild=0)
        keeps = self._chance.random() < 0.2
        after = before.with_cluster(successor)
        operators.push(after if keeps else after.without(old.name))
        if self._chance.random() < 0.5:
            later = partial(self._change_mind, operators, old.name, new, before)
            self._loop.schedule(self._chance.choice(REGRETTED), later)

    def _change_mind(self, operators: Operators, old: str, new: str, before: RequestedFleet) -> None:
        """Remove the new cluster, restore the old one, take the annotation back, or remove the old one."""
        now = operators.now
        successor = now.clusters.get(new)
        if successor is None or successor.replaces != old or self._loop.peaceful:
            return
        if old in now.clusters:
            operators.push(now.without(old))
            return
        choices = (
            now.without(new),
            now.with_cluster(before.clusters[old]),
            now.with_cluster(replace(successor, replaces="")),
        )
        operators.push(self._chance.choice(choices))
