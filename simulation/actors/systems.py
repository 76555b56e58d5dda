"""People who add, move, break and remove systems of teams, and what may become of their namespaces.

Rules hold at all times, as the clusters show: nothing of a team is outside its namespaces, no namespace of a
system is deleted from a cluster that some commit has not taken from it, and none at all that Azure manages
and that stays by git's delete policy.
"""

from __future__ import annotations

from dataclasses import replace

from localcloud.kubernetes.world.kinds import BUILT_IN, NAMESPACE
from localcloud.kubernetes.world.object_store import At
from shared.cluster.record_parts import Phase
from simulation.actors.kinds import SYSTEMS
from simulation.actors.upkeep import ActorUpkeep, Surroundings
from simulation.rule import RuleViolated
from simulation.team_systems import REACHED, DesiredSystem

ACTS = (4, 9)
NAMES = ("team-x", "team-y")
LABEL = "roadstead.dev/system"
_MAP = next(kind for kind in BUILT_IN if kind.kind == "ConfigMap")


class Systems(ActorUpkeep):
    """They act where there is one fleet."""

    kind = SYSTEMS
    in_one_fleet = True

    def __init__(self, around: Surroundings) -> None:
        super().__init__(around)
        self._retained = NAMES[-1] if around.seed % 2 else ""
        """The system whose namespace Azure manages, and keeps whatever git says of the system later."""
        self._seen: dict[tuple[int, str, str], str] = {}
        """The uid of each namespace of a system that was seen, by its world, cluster and name."""

    def schedule(self, seconds: float) -> None:
        """Let them act at some moments of so many seconds, and let the clusters be looked at all the time."""
        self._at_times(ACTS, seconds, self._act)
        self._all_the_time(self._look, seconds)

    def _act(self) -> None:
        """Push a system that is new, moved, broken, corrected or removed."""
        self.acts += 1
        now, name = self._operators.now, self._chance.choice(NAMES)
        others = tuple(system for system in now.systems if system.name != name)
        found = next((system for system in now.systems if system.name == name), None)
        clusters = frozenset(name for name in self._operators.names if self._chance.random() < 0.6)
        if found is not None and self._chance.random() < 0.4:
            changed: tuple[DesiredSystem, ...] = (replace(found, invalid=not found.invalid),)
        elif found is not None and self._chance.random() < 0.3:
            changed = ()
        else:
            changed = (DesiredSystem(name, clusters, retained=name == self._retained),)
        self._operators.push(replace(now, systems=(*others, *changed)))

    def check(self) -> None:
        """Check that each cluster has the systems that the head asks for.

        One whose manifest, or fleet.yaml, is invalid stays as it was, and so do its systems.
        After restored tables a record may say that a cluster has what a lost commit took, until a check.
        """
        self._look()
        desired = self._operators.now
        clusters = {} if desired.invalid else desired.clusters
        valid = {name for name, cluster in clusters.items() if not cluster.invalid}
        for cluster, world in self._operators.worlds():
            for system in desired.systems:
                wanted = cluster in system.on(valid) and not system.invalid
                missing = wanted and world.find(At(NAMESPACE, system.name)) is None
                if missing and self._ready(cluster) and not self._operators.history.restored:
                    raise RuleViolated("systems", f"{cluster} lacks the namespace of {system.name}")

    def _ready(self, cluster: str) -> bool:
        """Return whether a cluster is as the newest commit has it.

        One whose rebuild waits for an approval is as it was, with the systems that it had.
        """
        if cluster in self._operators.deletes_needing_approval():
            return False
        state, head = self._operators.cloud.state, self._operators.history.head_line[-1]
        record = state.cluster(cluster)
        if record is None or record.phase is not Phase.READY:
            return False
        return record.observed_generation == record.generation and state.fleet().commit == head

    def _look(self) -> None:
        """Check both rules on every cluster that there is."""
        for cluster, world in self._operators.worlds():
            if world.find(At(_MAP, REACHED, "flux-system")) is not None:
                raise RuleViolated("confined", f"a team reached the namespace of Flux on {cluster}")
            live = {
                document["metadata"]["name"]: document["metadata"]["uid"]
                for document in world.list(NAMESPACE, labels=LABEL)[0]
            }
            for name in NAMES:
                key = (id(world), cluster, name)
                before, now = self._seen.get(key), live.get(name)
                if before is not None and now != before and name == self._retained:
                    raise RuleViolated("retained namespace", f"{cluster} lost the namespace {name}")
                if before is not None and now != before and not self._asked(cluster, name):
                    raise RuleViolated("unasked removal", f"{cluster} lost the namespace {name}")
                if now is not None:
                    self._seen[key] = now
                else:
                    self._seen.pop(key, None)

    def _asked(self, cluster: str, name: str) -> bool:
        """Return whether any commit that was ever the head takes the namespace from the cluster."""
        for position, commit in enumerate(self._operators.history.head_line):
            desired = self._operators.history.desired(commit)
            system = next((system for system in desired.systems if system.name == name), None)
            taken = system is None or cluster not in system.on(desired.clusters)
            invalid = system is not None and system.invalid and bool(system.on(desired.clusters))
            if (
                taken
                and not invalid
                and not desired.invalid
                and self._was_wanted_before(position, name, cluster)
            ):
                return True
        return False

    def _was_wanted_before(self, position: int, name: str, cluster: str) -> bool:
        """Return whether an earlier head had given the namespace to the cluster: only then it is taken.

        A commit that is the head again takes what came in between.
        """
        history = self._operators.history
        for earlier in history.head_line[:position]:
            systems = history.desired(earlier).systems
            if any(system.name == name and cluster in system.clusters for system in systems):
                return True
        return False
