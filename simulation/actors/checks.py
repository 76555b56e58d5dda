"""Checks of the clusters from inside, and people who break Flux between them: each object in several ways.

When the faults have ended, a check runs to its end, and what every record says of Flux is so in its cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta

from localcloud.azure.world.arm_keys import key_of
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.outbox import request_whole_check, request_whole_sweep
from shared.cluster.failures.errors import FluxUnhealthy
from shared.cluster.findings.conditions import is_at_rest, is_unfinished
from shared.cluster.findings.health import FLUX
from shared.cluster.recipes import Step
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.json_tree import Json
from shared.ports import Ports
from shared.resource_ids import ClusterId, ObjectRef
from simulation.actors.kinds import CHECKS
from simulation.actors.shown_after_sweep import conditions_of
from simulation.actors.upkeep import ActorUpkeep
from simulation.desired_state import RECREATED
from simulation.rule import RuleViolated

ACTS = (2, 6)
CHECK = timedelta(hours=1)
"""More than the patience, after which an unhealthy cluster is checked again."""
CONTROLLER = ObjectRef("apps/v1", "Deployment", "source-controller", "flux-system")
APPLIES = ObjectRef("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "flux-system", "flux-system")
FETCHES = ObjectRef("source.toolkit.fluxcd.io/v1", "GitRepository", "flux-system", "flux-system")
DELETED, SUSPENDED, CHANGED = "deleted", "suspended", "changed"
BREAKS = (
    *((CONTROLLER, DELETED), (CONTROLLER, DELETED), (APPLIES, DELETED)),
    *((APPLIES, SUSPENDED), (FETCHES, SUSPENDED), (APPLIES, CHANGED)),
)
"""What people do to Flux: to which object, and what becomes of it."""
ELSEWHERE = "./elsewhere"
MOST = 3
"""How often it is applied again at most where the policy says so."""
FLUX_HEALTHY, RULE = "FluxHealthy", "stale health"


class Checks(ActorUpkeep):
    """They check each app's clusters, and break Flux; ``acts`` counts what was done by hand."""

    kind = CHECKS

    def schedule(self, seconds: float) -> None:
        """Let people act, and checks begin, at some moments of so many seconds."""
        self._at_times(ACTS, seconds, self._act, self._check)

    def _act(self) -> None:
        """Break Flux on a cluster that is Ready, or was and whose later job has failed or is suspended."""
        operators = self._chance.choice(self._everybody)
        known = operators.cloud.state.clusters()
        choice = [
            record
            for record in known
            if record.phase is Phase.READY or (is_at_rest(record) and is_unfinished(record))
        ]
        if not choice:
            return
        cluster = key_of(self._chance.choice(choice).desired.id)
        ref, how = self._chance.choice(BREAKS)
        live = self._object(cluster, ref) if self._is_up(cluster) else None
        if live is None:
            return
        self.acts += 1
        self._loop.log("%s: by hand, the %s of %s is %s", operators.fleet, ref, cluster.name, how)
        self._history.disturb(cluster)
        api = self._loop.clouds[0].kubernetes.connect(cluster)
        if how == DELETED:
            api.delete(live)
        else:
            changed = {"suspend": True} if how == SUSPENDED else {"path": ELSEWHERE}
            api.replace({**live, "spec": {**live["spec"], **changed}})

    def _is_up(self, cluster: ClusterId) -> bool:
        kubernetes = self._loop.clouds[0].kubernetes
        return kubernetes.world(cluster) is not None and kubernetes.is_on(cluster)

    def _object(self, cluster: ClusterId, ref: ObjectRef) -> Json | None:
        """Return an object of a cluster that is up, None where it has none."""
        return self._loop.clouds[0].kubernetes.connect(cluster).get(ref)

    def _broken(self, cluster: ClusterId) -> Iterator[ObjectRef]:
        """Yield the objects of Flux that a cluster that is up lacks, or that are not as they were applied."""
        for ref in (CONTROLLER, APPLIES, FETCHES):
            live = self._object(cluster, ref)
            spec = live["spec"] if live is not None else {}
            if live is None or spec.get("suspend") or spec.get("path") == ELSEWHERE:
                yield ref

    def _check(self) -> None:
        self._request(request_whole_check)

    def _request(self, begin: Callable[[Ports], None]) -> None:
        for cloud in self._loop.clouds:
            self._loop.run_function(cloud, begin)

    def check(self) -> None:
        """Let people act once more, check the clusters, compare the records with them, and resume Flux.

        A sweep comes first: what one found, such as a stopped cluster that runs again, is over with a sweep,
        and before that no check looks inside.
        """
        self._act()
        for begin in (request_whole_sweep, request_whole_check):
            self._request(begin)
            self._loop.run_until(self._loop.clock() + CHECK, done=lambda: self._loop.idle)
        for cloud in self._loop.clouds:
            for record in cloud.state.clusters():
                self._says_what_is_so(cloud, record)
        for cluster in self._loop.azure.ids():
            if self._is_up(cluster):
                self._resume(cluster)

    def _resume(self, cluster: ClusterId) -> None:
        """Resume what somebody suspended, as only people do where the policy does not."""
        for ref in (APPLIES, FETCHES):
            live = self._object(cluster, ref)
            if live is not None and live["spec"].get("suspend"):
                spec = {key: value for key, value in live["spec"].items() if key != "suspend"}
                self._loop.clouds[0].kubernetes.connect(cluster).replace({**live, "spec": spec})

    def _says_what_is_so(self, cloud: MemoryCloud, record: ClusterRecord) -> None:
        """Check a record at rest: what it says of Flux holds in its cluster."""
        cluster, fleet = key_of(record.desired.id), cloud.ports.config.fleet
        condition = record.condition(FLUX_HEALTHY)
        self._waits_for_nobody(record, cluster, fleet)
        if not is_at_rest(record) or condition is None or not self._is_up(cluster):
            return
        tags = (self._loop.azure.peek(cluster) or {}).get("tags") or {}
        mine, owner = cloud.state.fleet().app.installation, tags.get("roadstead-installation", "")
        others = tags.get("roadstead-fleet") != fleet or (owner and not owner.startswith(f"{mine}@"))
        if others or tags.get("roadstead-contested-by"):
            return  # no check looks inside the cluster of somebody else, or that another installation wants
        broken, what = [*self._broken(cluster)], f"{fleet}: {record.name}"
        shown = conditions_of(cloud, record.name).get(FLUX_HEALTHY)
        if broken and (shown != "False" or record.phase is Phase.READY):
            raise RuleViolated(
                RULE, f"{what}: the {broken[0]} is broken, and {record.phase}, {FLUX_HEALTHY} {shown}"
            )
        if CONTROLLER not in broken and condition.status is False and CONTROLLER.name in condition.message:
            raise RuleViolated(RULE, f"{what}: the {CONTROLLER} exists: {condition.message}")
        if broken:
            self._status_is_so(cloud, f"{what} has a broken {broken[0]}")
            self._is_not_to_be_corrected(record, f"{what}: the {broken[0]}")

    def _waits_for_nobody(self, record: ClusterRecord, cluster: ClusterId, fleet: str) -> None:
        """Check that no job waits for a person to resume what its policy resumes."""
        verifies = record.job.active and record.job.step.name is Step.VERIFY
        if record.name not in RECREATED or not verifies or not self._is_up(cluster):
            return
        for ref in (APPLIES, FETCHES):
            live = self._object(cluster, ref)
            if live is not None and live["spec"].get("suspend"):
                raise RuleViolated(RULE, f"{fleet}: {record.name}: the {ref} is suspended, and its job waits")

    def _is_not_to_be_corrected(self, record: ClusterRecord, what: str) -> None:
        """Check that the policy leaves what is broken, or that it was applied again as often as allowed."""
        times = sum(
            correction.times for correction in record.divergence.corrections if correction.path == FLUX
        )
        if record.name in RECREATED and record.finding == FluxUnhealthy.__name__ and times < MOST:
            raise RuleViolated(RULE, f"{what} is broken, and its policy has it applied again")

    def _status_is_so(self, cloud: MemoryCloud, what: str) -> None:
        commit = cloud.state.fleet().commit
        for shown in cloud.repository.statuses.latest(commit):
            if shown.status.state == "success":
                raise RuleViolated(RULE, f"{commit[:8]} is a success, and {what}")
