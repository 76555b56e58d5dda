"""People who let pods and identities of clusters use Azure, and take that back; what Azure has of it.

At all times, nothing is removed that no commit took back, and what a person created stays. At the end, every
cluster has exactly what git grants, and a cluster that no longer exists has left nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from shared.jobs.record import Phase
from simulation.actors.kinds import IDENTITY_ACCESS
from simulation.actors.upkeep import Upkeep
from simulation.event_loop import EventLoop
from simulation.granted import OF_PERSONS, Granted, create_by_hand, granted_in
from simulation.operators import Operators
from simulation.rule import RuleViolated

ACTS = (4, 9)
NAMES = ("api", "web")
_SEEN_EVERY = 10.0


class Grants(Upkeep):
    """They act on the first fleet, where there is only one. ``replaced`` counts lost tables by fleet."""

    def __init__(
        self, seed: int, everybody: Iterable[Operators], loop: EventLoop, replaced: Mapping[str, int]
    ) -> None:
        super().__init__(IDENTITY_ACCESS, seed, everybody, loop)
        self._operators, self._replaced = self._everybody[0], replaced
        self._seen: set[Granted] = set()

    def schedule(self, seconds: float) -> None:
        """Let them act at some moments of so many seconds, and let Azure be looked at all the time."""
        if len(self._everybody) > 1:
            return
        create_by_hand(self._loop.azure)
        for _ in range(self._chance.randint(*ACTS)):
            self._loop.schedule(self._chance.uniform(0, seconds), self._act)
        at = 0.0
        while at < seconds + 600:
            self._loop.schedule(at, self._look)
            at += _SEEN_EVERY

    def _act(self) -> None:
        """Push a cluster that grants more, less or something else."""
        self.acts += 1
        clusters = self._operators.now.clusters
        if not clusters:
            return
        changed = clusters[self._chance.choice(sorted(clusters))]
        names = tuple(name for name in NAMES if self._chance.random() < 0.6)
        self._operators.push(self._operators.now.with_cluster(replace(changed, grants=names)))

    def check(self) -> None:
        """Check that Azure has what the head grants, and nothing more."""
        if len(self._everybody) > 1:
            return
        self._look()
        desired, state = self._operators.now, self._operators.cloud.state
        live = self._live() - OF_PERSONS
        lost = self._replaced.get(self._operators.fleet, 0)
        for name in self._operators.names:
            record, cluster = state.cluster(name), desired.clusters.get(name)
            of_it = {one for one in live if one[1] == name}
            if record is None and cluster is None and of_it and not lost:
                raise RuleViolated("left behind", f"{name} no longer exists, and {sorted(of_it)} do")
            if record is None or cluster is None or record.phase is not Phase.READY:
                continue
            invalid = desired.invalid or cluster.invalid or cluster.large
            if record.observed_generation != record.generation or invalid:
                continue
            kinds = ("credential", "assignment", "policy")
            wanted = {(kind, name, entry) for kind in kinds for entry in cluster.grants}
            if not of_it >= wanted or (of_it != wanted and not lost):
                raise RuleViolated("grants", f"{name} has {sorted(of_it)}, and git grants {sorted(wanted)}")

    def _look(self) -> None:
        """Check that nothing has been removed that no commit took back."""
        live = self._live()
        if not live >= OF_PERSONS:
            raise RuleViolated("unasked removal", f"what a person created is removed: {sorted(live)}")
        for one in self._seen - live:
            _, cluster, entry = one
            if not self._operators.history.took_back(cluster, lambda each: each.grants, entry):
                raise RuleViolated("unasked removal", f"{one} is removed, and git has it")
        self._seen = live

    def _live(self) -> set[Granted]:
        """Return what exists, and check that nothing exists twice."""
        found = granted_in(self._loop.azure)
        if len(found) > len(set(found)):
            raise RuleViolated("granted twice", f"{sorted(found)}")
        return set(found)
