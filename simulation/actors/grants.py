"""People who let pods and identities of clusters use Azure, and take that back; what Azure has of it.

At all times, nothing is removed that no commit took back, unless its cluster was deleted for a rebuild that a
commit asked for, and what a person created stays. At the end, every cluster has exactly what git grants, and
a cluster that no longer exists has left nothing.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import NamedTuple

from shared.app.outbox import request_whole_check
from shared.cluster.record import READY, ClusterRecord
from shared.cluster.record_parts import Phase
from simulation.actors.kinds import IDENTITY_ACCESS
from simulation.actors.upkeep import ActorUpkeep, Surroundings
from simulation.granted import OF_PERSONS, Granted, create_by_hand, granted_in
from simulation.operators import cluster_id
from simulation.oracle import is_going
from simulation.rule import RuleViolated

ACTS = (4, 9)
CHECK = timedelta(hours=1)
FIELDS = {"credential": "federatedCredentials", "assignment": "roleAssignments", "policy": "policies"}
NAMES = ("api", "web")


class _Life(NamedTuple):
    """A life of a cluster: its number, and the number of the rebuild for which it was created."""

    number: int
    created_for: int


class Grants(ActorUpkeep):
    """They act where there is one fleet."""

    kind = IDENTITY_ACCESS
    in_one_fleet = True

    def __init__(self, around: Surroundings) -> None:
        super().__init__(around)
        self._seen: dict[Granted, _Life] = {}

    def schedule(self, seconds: float) -> None:
        """Let them act at some moments of so many seconds, and let Azure be looked at all the time."""
        create_by_hand(self._loop.azure)
        self._at_times(ACTS, seconds, self._act)
        self._all_the_time(self._look, seconds)

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
        self._look()
        desired, state = self._operators.now, self._operators.cloud.state
        live = self._live() - OF_PERSONS
        lost = self._replaced.get(self._operators.fleet, 0)
        as_it_was = self._operators.deletes_needing_approval()  # those whose rebuild is on hold
        for name in self._operators.names:
            record, cluster = state.cluster(name), desired.clusters.get(name)
            of_it = {grant for grant in live if grant[1] == name}
            if record is None and cluster is None and of_it and not lost:
                raise RuleViolated("left behind", f"{name} no longer exists, and {sorted(of_it)} do")
            if record is None or cluster is None or record.phase is not Phase.READY:
                continue
            invalid = desired.invalid or cluster.invalid
            if record.observed_generation != record.generation or invalid or name in as_it_was:
                continue
            wanted = {(kind, name, entry) for kind in FIELDS for entry in cluster.grants}
            right = of_it >= wanted if lost else of_it == wanted
            if not (right or self._is_said(record, wanted)):
                raise RuleViolated("grants", f"{name} has {sorted(of_it)}, and git grants {sorted(wanted)}")

    def _is_said(self, record: ClusterRecord, wanted: set[Granted]) -> bool:
        """Return whether a record says which grants it lacks, once a check has read them.

        Restored tables may have a record that was Ready before a lost commit took what git has again. A job
        that ended since has read that itself: docs/limits.md.
        """
        restored_at, ready = self._operators.history.restored_at, record.condition(READY)
        if restored_at is None or ready is None or ready.since > restored_at:
            return False
        self._loop.run_function(self._operators.cloud, request_whole_check)
        self._loop.run_until(self._loop.clock() + CHECK, done=lambda: self._loop.idle)
        checked = self._operators.cloud.state.cluster(record.name)
        drift = checked.divergence.drift if checked is not None else None
        shown = {field.path for field in drift.fields} if drift else set[str]()
        lacks = wanted - self._live()
        return {f"{FIELDS[kind]}[{entry}]" for kind, _, entry in lacks} <= shown

    def _look(self) -> None:
        """Check that nothing has been removed that no commit took back."""
        live = self._live()
        if not live >= OF_PERSONS:
            raise RuleViolated("unasked removal", f"what a person created is removed: {sorted(live)}")
        for grant in self._seen.keys() - live:
            _, cluster, entry = grant
            took_back = self._operators.history.took_back(cluster, lambda desired: desired.grants, entry)
            if not took_back and not self._was_rebuilt(cluster, self._seen[grant]):
                raise RuleViolated("unasked removal", f"{grant} is removed, and git has it")
        self._seen = {grant: self._life(grant[1]) for grant in live}

    def _life(self, name: str) -> _Life:
        key = cluster_id(name)
        return _Life(self._history.lives[key], self._history.created_for.get(key, 0))

    def _was_rebuilt(self, name: str, seen: _Life) -> bool:
        """Return whether a life of a cluster has ended in whose place a commit asks for another one.

        The next one is granted the same again, by its own issuer and identity.
        """
        found = self._operators.oracle.live(cluster_id(name))
        ended = found is None or is_going(found) or self._life(name).number > seen.number
        return ended and self._operators.history.asked_for_rebuild(name, seen.created_for)

    def _live(self) -> set[Granted]:
        """Return what exists, and check that nothing exists twice."""
        found = granted_in(self._loop.azure)
        if len(found) > len(set(found)):
            raise RuleViolated("granted twice", f"{sorted(found)}")
        return set(found)
