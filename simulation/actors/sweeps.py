"""Sweeps, and people who delete, stop and start clusters by hand between them.

When the faults have ended, a sweep runs to its end, and what every record says of Ready is so in Azure.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta

from localcloud.azure.world.arm_errors import ArmError
from localcloud.azure.world.arm_keys import key_of
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.outbox import request_whole_sweep
from shared.azure.changes.writes import is_stopped
from shared.cluster.failures.errors import ClusterMissing, ClusterStopped
from shared.cluster.findings.conditions import is_at_rest
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.language.pin import Pin
from simulation.actors.accepted_drift import AcceptedDrift
from simulation.actors.approved_corrections import ApprovedCorrections
from simulation.actors.drift import DriftActor
from simulation.actors.drift_among_faults import DriftAmongFaults
from simulation.actors.kinds import SWEEPS
from simulation.actors.orphans import Orphans
from simulation.actors.proposals import ProposalActor
from simulation.actors.shown_after_sweep import ShownAfterSweep
from simulation.actors.upkeep import ActorUpkeep, Surroundings
from simulation.history import FleetHistory
from simulation.oracle import is_going
from simulation.rule import RuleViolated

ACTS = (2, 6)
SETTLED = timedelta(minutes=3)
"""A record that was written so recently is left to the next sweep."""
SWEEP = timedelta(hours=1)
COPIES = (0, 2)
"""How many clusters with copied tags are created while the faults last."""


class SweepActor(ActorUpkeep):
    """They sweep each app, and change clusters by hand; ``acts`` counts what was done by hand."""

    kind = SWEEPS

    def __init__(self, around: Surroundings) -> None:
        super().__init__(around)
        histories = {operators.cloud: operators.history for operators in self._everybody}
        self._histories, self._shown = histories, ShownAfterSweep(self._oracle, histories)
        self._copying = self._stream("orphans")
        self._orphans = Orphans(self._copying, self._loop, self._oracle)
        self._among = DriftAmongFaults(
            around.seed, self._everybody, self._loop, self._oracle, self._history, self._sweep
        )

    def schedule(self, seconds: float) -> None:
        """Let people act, and sweeps begin, at some moments of so many seconds."""
        self._at_times(ACTS, seconds, self._act, self._sweep)
        for _ in range(self._copying.randint(*COPIES)):
            self._loop.schedule(self._copying.uniform(0, seconds), self._copy)
        self._among.schedule(seconds)

    def _copy(self) -> None:
        self._orphans.create(self._copying.choice(self._everybody).cloud)

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
        """Let people act, sweep, and check what is said; then let them undo what they can."""
        self._act()
        self._copy()
        since = self._sweep_to_its_end()
        self._all_is_said()
        self._swept(since)
        self._start_again()
        self._among.undo()
        self._orphans.remove()
        since = self._sweep_to_its_end()
        self._all_is_said()
        self._swept(since)

        def sweep() -> None:
            self._swept(self._sweep_to_its_end())

        given = self._chance, self._loop, self._oracle, self._history
        proposals = ProposalActor(self._chance, self._loop, self._everybody, self._replaced, sweep)
        proposals.check(())
        by_hand = (DriftActor(*given, sweep, proposals), ApprovedCorrections(*given, sweep))
        for actor in (*by_hand, AcceptedDrift(*given, sweep)):
            actor.check()
            self.acts += actor.acts
        self.acts += proposals.acts
        self.acts += self._orphans.acts + self._among.acts

    def _start_again(self) -> None:
        """Start every cluster that somebody stopped."""
        for cluster in self._loop.azure.ids():
            live = self._oracle.live(cluster)
            if live is not None and is_stopped(live):
                self._history.disturb(cluster)
                with suppress(ArmError):
                    self._loop.azure.interventions.start(cluster)

    def _all_is_said(self) -> None:
        """Check every record and the status of each fleet's newest commit."""
        for cloud in self._loop.clouds:
            for record in cloud.state.clusters():
                self._says_what_is_so(cloud, record)
            if not any(
                other.repository is cloud.repository for other in self._loop.clouds if other is not cloud
            ):
                self._status_is_so(cloud)

    def _sweep_to_its_end(self) -> datetime:
        """Sweep, and return when the sweep began."""
        self._loop.run_until(self._loop.clock() + SETTLED)
        since = self._loop.clock()
        self._sweep()
        self._loop.run_until(self._loop.clock() + SWEEP, done=lambda: self._loop.idle)
        return since

    def _swept(self, since: datetime) -> None:
        """Check what is shown after a sweep: of a second app by the rules of contests."""
        for operators in self._everybody:
            if operators.cloud in self._loop.clouds:
                self._shown.compare(operators.cloud, since)
                self._orphans.check(operators.cloud)

    def _status_is_so(self, cloud: MemoryCloud) -> None:
        """Check the newest commit: a success unless something is found, and then when it is over."""
        commit = cloud.state.fleet().commit
        found = [record.name for record in cloud.state.clusters() if record.finding]
        for record in cloud.repository.statuses.latest(commit):
            success = record.status.state == "success"
            what = f"{cloud.ports.config.fleet}: {commit[:8]} is a {record.status.state}"
            if success and found:
                raise RuleViolated(
                    "stale ready", f"{what}, and a sweep has found that {found[0]} is not Ready"
                )
            if not success and self._all_is_well(cloud, commit):
                raise RuleViolated("stale ready", f"{what}, and all is well: {record.status.description}")

    def _all_is_well(self, cloud: MemoryCloud, commit: str) -> bool:
        """Return whether git asks for what is in Azure, and every job has ended well.

        A cluster that a commit has rebuilt, and that a guard keeps as it is, is not what git asks for. Nor is
        one on which a guard keeps what Flux applies. A rollout that waits behind its last stage has not
        ended. Nor has one in which a change waits that Azure does not show, as an older version of Kubernetes
        than the one that runs.
        """
        fleet, history = cloud.state.fleet(), self._histories.get(cloud)
        records = {record.name: record for record in cloud.state.clusters()}
        if history is None or not commit or fleet.planning or fleet.problem is not None:
            return False
        asked = history.desired(commit)
        if not all(_pulls(record, history, commit) for record in records.values()):
            return False
        if asked != asked.corrected or asked.clusters.keys() != records.keys():
            return False
        if asked.final_in_force is not None and fleet.rollout:
            return False
        planned = cloud.state.plan(commit) if fleet.rollout else None
        items = planned.plan.items if planned is not None else ()
        if any(
            item.cluster in records and item.generation > records[item.cluster].generation for item in items
        ):
            return False
        return all(
            record.phase is Phase.READY
            and not record.job.active
            and not record.divergence.drift
            and asked.clusters[name].asked <= self._history.created_for.get(key_of(record.desired.id), 0)
            and not self._oracle.differences(
                cloud.ports.config.fleet, asked.clusters[name], key_of(record.desired.id)
            )
            for name, record in records.items()
        )

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
        others = self._oracle.belongs_to_others(key_of(record.desired.id), fleet)
        if _is_missing(record) and not absent and not others:
            raise RuleViolated("stale ready", f"{fleet}: {record.name} is missing after a sweep, and exists")
        if record.finding == ClusterStopped.__name__ and not stopped:
            raise RuleViolated("stale ready", f"{fleet}: {record.name} is stopped after a sweep, and runs")


def _pulls(record: ClusterRecord, history: FleetHistory, commit: str) -> bool:
    """Return whether Flux pulls what a commit has, or the newest one of the source of a cluster."""
    pin, line = Pin.of(record.document), history.line(record.name)
    newest = commit if line is history else line.head_line[-1]
    return pin is None or (
        pin.commit in line.head_line and line.platform(pin.commit) == line.platform(newest)
    )


def _is_missing(record: ClusterRecord) -> bool:
    return record.finding == ClusterMissing.__name__
