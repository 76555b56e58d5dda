"""The rules of the end: the real world equals git, and nothing waits."""

from __future__ import annotations

from datetime import timedelta

from localcloud.azure.world.arm_keys import key_of
from localcloud.memory.memory_cloud import JOB_QUEUES, MemoryCloud
from shared.cluster.failures.errors import FluxUnhealthy
from shared.cluster.record import ClusterRecord, of_health, to_json
from shared.cluster.record_parts import Phase
from shared.kubernetes_versions import runs_newer
from simulation.desired_state import DesiredCluster
from simulation.invariants.context import Context
from simulation.rule import RuleViolated

SECRET = "never-to-be-stored"  # noqa: S105


class TheEnd:
    """Compares everything with git, once operators have nothing left to do and all is idle."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def check(self, cloud: MemoryCloud) -> None:
        """Check a fleet."""
        self._every_cluster_in_sync(cloud)
        self._nothing_left(cloud)
        self._no_message_waits(cloud)
        self._every_status_ended(cloud)
        self._no_secret(cloud)

    def _every_cluster_in_sync(self, cloud: MemoryCloud) -> None:
        fleet, head = cloud.ports.config.fleet, cloud.repository.head(cloud.ports.config.branch)
        if cloud.state.fleet().commit != head:
            raise RuleViolated("lost work", f"{fleet}: the head {head[:8]} was never planned")
        history = self._context.history(cloud)
        desired = history.desired(head)
        # Where the tables were lost, what an earlier system left on a cluster stays: docs/limits.md.
        known = history.head_line if self._context.replaced[fleet] else (head,)
        systems = {system for commit in known for system in history.desired(commit).systems}
        left = {name for system in systems for name in system.on(desired.clusters)}
        for name, wanted in desired.clusters.items():
            record = cloud.state.cluster(name)
            observed = record is not None and record.observed_generation == record.generation
            # A sweep that finds other facts has a cluster checked: it shows with what a team tries to leave.
            reported = record is not None and name in left and of_health(record.finding)
            if record is None or not observed or not (record.phase is Phase.READY or reported):
                what = f"{record.phase}: {record.job.reason}" if record else "there is no record"
                message = f"{fleet}: {name} was never brought to the desired state: {what}"
                raise RuleViolated("lost work", message)
            found = self._context.oracle.differences(fleet, wanted, key_of(record.desired.id))
            if found:
                raise RuleViolated("not in sync", f"{fleet}: {name}: {found}")
            self._rebuilt(record, wanted, fleet)

    def _rebuilt(self, record: ClusterRecord, wanted: DesiredCluster, fleet: str) -> None:
        """Check that a cluster was created for the rebuild that the head has, or for a later one.

        Whoever has lost tables keeps the cluster: a rebuild then takes another time.
        """
        created_for = self._context.azure.created_for.get(key_of(record.desired.id), 0)
        knows_it = record.azure.life in ("", record.uid) and not self._context.replaced[fleet]
        if created_for < wanted.asked and knows_it:
            what = f"{record.name} is to be rebuilt for {wanted.asked}, and is of {created_for}"
            raise RuleViolated("rebuild", f"{fleet}: {what}")

    def _nothing_left(self, cloud: MemoryCloud) -> None:
        """Check that no cluster, no empty group and no record of ours remains that git does not have."""
        fleet, azure, oracle = cloud.ports.config.fleet, self._context.azure, self._context.oracle
        world, desired = self._context.loop.azure, self._context.history(cloud).now
        for key, owner in azure.owners.items():
            if key in self._context.unknown:
                continue
            if owner == fleet and key.name not in desired.clusters and oracle.live(key) is not None:
                raise RuleViolated("orphan", f"{fleet}: {key.name} still exists")
        homes = {(key.subscription, key.resource_group) for key in world.ids()} | self._context.left
        for group in world.groups():
            if azure.group_owners.get(group) == fleet and group not in homes:
                raise RuleViolated("orphan", f"{fleet}: the group {group[1]} still exists, and is empty")
        for record in cloud.state.clusters():
            foreign = oracle.belongs_to_others(key_of(record.desired.id), fleet)
            if record.name not in desired.clusters and not foreign:
                what = f"{record.phase}: {record.job.reason}"
                raise RuleViolated("lost work", f"{fleet}: {record.name} still has a record: {what}")

    def _no_message_waits(self, cloud: MemoryCloud) -> None:
        """Check that no message waits, but for those that check again what a check has found.

        One of these may have come due as the clock moved to the end, which is a millisecond at most.
        """
        unhealthy = sum(record.finding == FluxUnhealthy.__name__ for record in cloud.state.clusters())
        before = self._context.loop.clock() - timedelta(milliseconds=1)
        for queue in JOB_QUEUES:
            waiting = cloud.broker.peek(queue)
            late = [message for message in waiting if not message.scheduled and message.enqueued_at < before]
            if late or len(waiting) > unhealthy:
                what = f"all work is done, and messages wait in {queue}: {waiting}"
                raise RuleViolated("duplicate message", f"{cloud.ports.config.fleet}: {what}")

    def _every_status_ended(self, cloud: MemoryCloud) -> None:
        """Check what GitHub shows on every commit that was ever pushed: nothing waits any more."""
        fleet, head = cloud.ports.config.fleet, cloud.repository.head(cloud.ports.config.branch)
        records = list(cloud.state.clusters())
        # A version below the one that runs is never in sync: its commit fails until git has what runs.
        wrong = any(record.failed or _is_below_what_runs(record) for record in records)
        truth = "failure" if wrong else "success"
        differs = any(record.divergence.drift for record in records)  # for how long is a rule of its own
        for commit in self._context.history(cloud).head_line:
            if commit in self._context.unreported and commit != head:
                continue
            for record in cloud.repository.statuses.latest(commit):
                shown = f"{record.status.state}: {record.status.description}"
                if record.status.state == "pending" or (
                    commit == head
                    and record.status.state != truth
                    and not (differs and "differs from git" in record.status.description)
                ):
                    raise RuleViolated("open status", f"{fleet}: {commit[:8]} still shows {shown}")

    def _no_secret(self, cloud: MemoryCloud) -> None:
        stored = [to_json(record) for record in cloud.state.clusters()]
        stored += [str(event) for name in "abcd" for event in cloud.state.events(name, 100)]
        stored += [str(plan_record) for plan_record in cloud.state.plans_since(self._context.loop.began)]
        if any(SECRET in text for text in stored):
            raise RuleViolated("secret", "a secret was stored")


def _is_below_what_runs(record: ClusterRecord) -> bool:
    """Return whether git has a version below the one that runs, which it has lowered or somebody raised."""
    wanted, drift = record.document["spec"]["kubernetesVersion"], record.divergence.drift
    raised = drift is not None and any(field.path == "kubernetesVersion" for field in drift.fields)
    known = raised or bool(record.divergence.lowered)
    return known and runs_newer(wanted, record.running.kubernetes_version)
