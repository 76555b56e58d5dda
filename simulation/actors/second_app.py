"""A second app of a fleet, with tables of its own, on another branch: it comes up in the middle of a run.

Operators may take clusters over with either app. When the faults have ended, they stop one of the two, and
take over with the other one.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from localcloud.memory.memory_cloud import MemoryCloud
from simulation.actors.kinds import SECOND_APP
from simulation.desired_state import DesiredCluster, RequestedFleet
from simulation.operators import Operators

BRANCH = "staging"
ACTS = (1, 4)


class SecondApp:
    """The app and its operators, None before it comes up; ``start`` lets an app run, with its operators."""

    def __init__(
        self,
        seed: int,
        first: Operators,
        operators_of: Callable[[MemoryCloud], Operators],
        start: Callable[[Operators], None],
    ) -> None:
        self._chance = random.Random(f"{seed} {SECOND_APP}")  # noqa: S311
        self._first, self._operators_of, self._start = first, operators_of, start
        self.operators: Operators | None = None
        self.acts = 0

    def schedule(self, seconds: float) -> None:
        """Let it come up at a moment of so many seconds, and its operators act after that."""
        arrival = self._chance.uniform(0, seconds)
        self._first.loop.schedule(arrival, self._come_up)
        for _ in range(self._chance.randint(*ACTS)):
            self._first.loop.schedule(self._chance.uniform(arrival, seconds + 100), self._act)

    def both(self) -> tuple[Operators, ...]:
        """Return the operators of both apps, first those of the one that remains; none before it is up."""
        if self.operators is None:
            return ()
        both = [self._first, self.operators]
        self._chance.shuffle(both)
        return tuple(both)

    def _come_up(self) -> None:
        first = self._first.cloud
        cloud = MemoryCloud(
            seed=self._chance.getrandbits(32),
            config=replace(first.ports.config, branch=BRANCH, installation=self._id(first)),
            peer=first,
            repository=first.repository,
            lock_seconds=60,
        )
        first.repository.reset(first.repository.head("main"), BRANCH)
        self._first.loop.log("%s: a second app comes up, on the branch %s", self._first.fleet, BRANCH)
        self.operators = self._operators_of(cloud)
        self._start(self.operators)
        self.operators.push(self._other(self._first.now.corrected))

    @staticmethod
    def _id(first: MemoryCloud) -> str:
        """Return the id of the second app: another one, where the first one has any."""
        return first.ports.config.installation and f"{first.ports.config.installation}-2"

    def _other(self, fleet: RequestedFleet) -> RequestedFleet:
        """Return what the other branch asks for: most clusters with a difference, one less or one more.

        None sleeps there: who lets clusters sleep ends that on the branch of the first app alone.
        """
        for cluster in fleet.clusters.values():
            tag = self._chance.choice("pqr") if self._chance.random() < 0.7 else cluster.tag
            fleet = fleet.with_cluster(replace(cluster, tag=tag, sleeps=""))
        name = self._chance.choice(self._first.names)
        if name not in fleet.clusters:
            return fleet.with_cluster(DesiredCluster(name))
        return fleet.without(name) if self._chance.random() < 0.3 else fleet

    def _act(self) -> None:
        self.acts += 1
        if self.operators is None:
            return
        act = self._chance.choice(("change", "change", "remove", "take over", "take over"))
        if act == "take over":
            self._chance.choice((self._first, self.operators)).take_over()
        elif act == "remove" and self.operators.now.clusters:
            name = self._chance.choice(list(self.operators.now.clusters))
            self.operators.push(self.operators.now.without(name))
        elif act == "change":
            self.operators.change(lambda cluster: replace(cluster, tag=self._chance.choice("pqr")))
