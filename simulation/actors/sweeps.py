"""Sweeps, and people who delete, stop and start clusters by hand between them.

When the faults have ended, a sweep runs to its end, and what every record says of Ready is so in Azure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta

from localcloud.azure.world.azure_engine import key_of
from localcloud.memory.memory_cloud import MemoryCloud
from shared.fleet.aks.writes import is_stopped
from shared.jobs.at_rest import is_at_rest
from shared.jobs.failures.errors import ClusterMissing, ClusterStopped
from shared.jobs.record import ClusterRecord, Phase
from shared.pipeline.outbox import request_whole_sweep
from simulation.actors.approved_corrections import ApprovedCorrections
from simulation.actors.drift import Drift
from simulation.actors.kinds import SWEEPS
from simulation.actors.proposals import Proposals
from simulation.actors.upkeep import Upkeep
from simulation.event_loop import EventLoop
from simulation.history import AzureHistory
from simulation.operators import Operators
from simulation.oracle import Oracle, is_going
from simulation.rule import RuleViolated

ACTS = (2, 6)
SETTLED = timedelta(minutes=3)
"""A record that was written so recently is left to the next sweep."""
SWEEP = timedelta(hours=1)


class Sweeps(Upkeep):
    """They sweep each app, and change clusters by hand; ``acts`` counts what was done by hand."""

    def __init__(
        self,
        seed: int,
        everybody: Iterable[Operators],
        loop: EventLoop,
        oracle: Oracle,
        history: AzureHistory,
        replaced: Mapping[str, int],
    ) -> None:
        super().__init__(SWEEPS, seed, everybody, loop)
        self._oracle, self._history, self._replaced = oracle, history, replaced

    def schedule(self, seconds: float) -> None:
        """Let people act, and sweeps begin, at some moments of so many seconds."""
        for _ in range(self._chance.randint(*ACTS)):
            self._loop.schedule(self._chance.uniform(0, seconds), self._act)
            self._loop.schedule(self._chance.uniform(0, seconds), self._sweep)

    def _act(self) -> None:
        """Delete, stop or start a cluster by hand, mostly one that is Ready."""
        operators = self._chance.choice(self._everybody)
        ready = [record for record in operators.cloud.state.clusters() if record.phase is Phase.READY]
        if not ready:
            return
        self.acts += 1
        cluster = key_of(self._chance.choice(ready).desired.id)
        if self._chance.random() < 0.5:
            self._loop.log("%s: somebody deletes %s by hand", operators.fleet, cluster.name)
            operators.remove(cluster)
        else:
            operators.stop(cluster)

    def _sweep(self) -> None:
        for cloud in self._loop.clouds:
            self._loop.run_function(cloud, request_whole_sweep)

    def check(self) -> None:
        """Let people act once more, sweep, and check what the records say."""
        self._act()
        self._sweep_to_its_end()
        for cloud in self._loop.clouds:
            for record in cloud.state.clusters():
                self._says_what_is_so(cloud, record)
            if not any(
                other.repository is cloud.repository for other in self._loop.clouds if other is not cloud
            ):
                self._status_is_so(cloud)
        sweep, given = self._sweep_to_its_end, (self._chance, self._loop, self._oracle, self._history)
        proposals = Proposals(self._chance, self._loop, self._everybody, self._replaced, sweep)
        proposals.check(())
        for actor in (Drift(*given, sweep, proposals), ApprovedCorrections(*given, sweep)):
            actor.check()
            self.acts += actor.acts
        self.acts += proposals.acts

    def _sweep_to_its_end(self) -> None:
        self._loop.run_until(self._loop.clock() + SETTLED)
        self._sweep()
        self._loop.run_until(self._loop.clock() + SWEEP, done=lambda: self._loop.idle)

    def _status_is_so(self, cloud: MemoryCloud) -> None:
        """Check the status of the newest commit: no success while a cluster is not as it was verified."""
        commit = cloud.state.fleet().commit
        found = [record.name for record in cloud.state.clusters() if record.finding]
        for record in cloud.repository.statuses.latest(commit) if found else ():
            if record.status.state == "success":
                what = f"{commit[:8]} is a success, and a sweep has found that {found[0]} is not Ready"
                raise RuleViolated("stale ready", f"{cloud.ports.config.fleet}: {what}")

    def _says_what_is_so(self, cloud: MemoryCloud, record: ClusterRecord) -> None:
        """Check a record that no job works on: what it says of its cluster holds in Azure."""
        live, fleet = self._oracle.live(key_of(record.desired.id)), cloud.ports.config.fleet
        absent = live is None or is_going(live)
        stopped = live is not None and is_stopped(live)
        if record.phase is Phase.READY and (absent or stopped):
            what = "does not exist" if absent else "is stopped"
            raise RuleViolated("stale ready", f"{fleet}: {record.name} is Ready after a sweep, and {what}")
        if record.phase is Phase.FAILED and is_at_rest(record) and absent and not _is_missing(record):
            what = "has failed and does not exist, and a sweep does not say so"
            raise RuleViolated("stale ready", f"{fleet}: {record.name} {what}")
        if _is_missing(record) and not absent:
            raise RuleViolated("stale ready", f"{fleet}: {record.name} is missing after a sweep, and exists")
        if record.finding == ClusterStopped.__name__ and not stopped:
            raise RuleViolated("stale ready", f"{fleet}: {record.name} is stopped after a sweep, and runs")


def _is_missing(record: ClusterRecord) -> bool:
    return record.finding == ClusterMissing.__name__
