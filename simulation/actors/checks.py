"""Checks of the clusters from inside, and people who delete a controller of Flux between them.

When the faults have ended, a check runs to its end, and what every record says of Flux is so in its cluster.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from localcloud.azure.world.azure_engine import key_of
from localcloud.memory.memory_cloud import MemoryCloud
from shared.fleet.resource_ids import ClusterId, ObjectRef
from shared.jobs.record import ClusterRecord, Phase
from shared.pipeline.checks.changed_paths import check_changed_paths
from shared.pipeline.outbox import request_whole_check
from simulation.actors.kinds import CHECKS
from simulation.actors.shown_after_sweep import conditions_of
from simulation.actors.upkeep import Upkeep
from simulation.event_loop import EventLoop
from simulation.operators import Operators
from simulation.rule import RuleViolated

ACTS = (2, 6)
CHECK = timedelta(hours=1)
"""More than the patience, after which an unhealthy cluster is checked again."""
CONTROLLER = ObjectRef("apps/v1", "Deployment", "source-controller", "flux-system")
FLUX_HEALTHY = "FluxHealthy"


class Checks(Upkeep):
    """They check each app's clusters, and break Flux; ``acts`` counts what was done by hand."""

    def __init__(self, seed: int, everybody: Iterable[Operators], loop: EventLoop) -> None:
        super().__init__(CHECKS, seed, everybody, loop)

    def schedule(self, seconds: float) -> None:
        """Let people act, and checks begin, at some moments of so many seconds."""
        for _ in range(self._chance.randint(*ACTS)):
            self._loop.schedule(self._chance.uniform(0, seconds), self._act)
            self._loop.schedule(self._chance.uniform(0, seconds), self._check)
            self._loop.schedule(self._chance.uniform(0, seconds), self._compare)

    def _act(self) -> None:
        """Delete a controller of Flux from a cluster that is Ready."""
        operators = self._chance.choice(self._everybody)
        ready = [record for record in operators.cloud.state.clusters() if record.phase is Phase.READY]
        if not ready:
            return
        cluster = key_of(self._chance.choice(ready).desired.id)
        if not self._is_up(cluster) or not self._runs(cluster):
            return
        self.acts += 1
        self._loop.log("%s: somebody deletes the %s from %s", operators.fleet, CONTROLLER, cluster.name)
        api = self._loop.clouds[0].kubernetes.connect(cluster)
        api.delete(api.get(CONTROLLER) or {})

    def _is_up(self, cluster: ClusterId) -> bool:
        kubernetes = self._loop.clouds[0].kubernetes
        return kubernetes.world(cluster) is not None and kubernetes.is_on(cluster)

    def _runs(self, cluster: ClusterId) -> bool:
        """Return whether a cluster that is up has the controller."""
        return self._loop.clouds[0].kubernetes.connect(cluster).get(CONTROLLER) is not None

    def _check(self) -> None:
        for cloud in self._loop.clouds:
            self._loop.run_function(cloud, request_whole_check)

    def _compare(self) -> None:
        """Let the timer look for commits that change what Flux applies."""
        for cloud in self._loop.clouds:
            self._loop.run_function(cloud, check_changed_paths)

    def check(self) -> None:
        """Let people act once more, check the clusters, and compare the records with them."""
        self._act()
        self._check()
        self._loop.run_until(self._loop.clock() + CHECK, done=lambda: self._loop.idle)
        for cloud in self._loop.clouds:
            for record in cloud.state.clusters():
                self._says_what_is_so(cloud, record)

    def _says_what_is_so(self, cloud: MemoryCloud, record: ClusterRecord) -> None:
        """Check a record that no job works on: what it says of Flux holds in its cluster."""
        cluster, fleet = key_of(record.desired.id), cloud.ports.config.fleet
        condition = record.condition(FLUX_HEALTHY)
        if record.job.active or condition is None or not self._is_up(cluster):
            return
        if ((self._loop.azure.peek(cluster) or {}).get("tags") or {}).get("roadstead-fleet") != fleet:
            return  # no check looks inside the cluster of somebody else
        runs, what = self._runs(cluster), f"{fleet}: {record.name}: {CONTROLLER}"
        shown = conditions_of(cloud, record.name).get(FLUX_HEALTHY)
        if not runs and (shown != "False" or record.phase is Phase.READY):
            raise RuleViolated(
                "stale health", f"{what} does not exist, and {record.phase}, {FLUX_HEALTHY} {shown}"
            )
        if runs and condition.status is False and CONTROLLER.name in condition.message:
            raise RuleViolated("stale health", f"{what} exists: {condition.message}")
        if not runs:
            self._status_is_so(cloud, what)

    def _status_is_so(self, cloud: MemoryCloud, what: str) -> None:
        commit = cloud.state.fleet().commit
        for shown in cloud.repository.statuses.latest(commit):
            if shown.status.state == "success":
                raise RuleViolated("stale health", f"{commit[:8]} is a success, and {what} does not exist")
