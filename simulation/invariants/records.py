"""The rules of every record that is written."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime

from localcloud.azure.world.arm_keys import key_of
from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record import ClusterRecord
from shared.ports import FleetRecord, GroupMember
from simulation.desired_state import DesiredCluster, RequestedFleet
from simulation.invariants.context import Context, Creations, moment
from simulation.rule import RuleViolated


class Records:
    """Checks each version of a record against the one before, git and the real world."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._deleted: defaultdict[tuple[str, str, int, int], set[str]] = defaultdict(set)
        self._began: dict[tuple[str, str, datetime], datetime] = {}
        """When each job began by the clock of the world: that of its planner may be wrong."""

    def saved(self, cloud: MemoryCloud, before: ClusterRecord | None, after: ClusterRecord) -> None:
        """Check a record that was written, against the version before."""
        actor = self._context.loop.actor
        if after.job.lease is not None and (before is None or before.job.lease != after.job.lease):
            actor.lease = after.job.lease
        self._context.loop.log("    record: %s", lambda: _describe(before, after))
        self._began.setdefault(self._job(cloud, after), self._context.loop.clock())
        if before is None or before.generation != after.generation:
            self._context.accepted_at[cloud.ports.config.fleet, after.name] = self._context.loop.clock()
        if before is None or before.uid != after.uid:
            if before is not None:
                raise RuleViolated("lost record", f"{after.name} is created over an existing record")
            self._context.creations[cloud.ports.config.fleet, after.name, after.uid] = Creations(
                0, self._context.azure.vanished[key_of(after.desired.id)]
            )
            self._requested(cloud, after, new=True)
            self._is_created_for(cloud, after)
            self._is_member(cloud, after)
            self._context.history(cloud).forget_approvals(after.name)
            return
        self._forward(before, after)
        self._not_corrected_in_a_suspension(before, after)
        if before.deleting and not after.deleting:
            self._not_started(cloud, before)
        if after.deleting and not before.deleting:
            self._context.knows_life(cloud, after)
            self._may_be_deleted(cloud, before, after.commit)
        elif after.generation > before.generation:
            self._requested(cloud, after, new=False)
            if before.recovering:
                self._is_created_for(cloud, after)
        if after.observed_generation > before.observed_generation:
            self._really_ready(cloud, after)

    def _is_member(self, cloud: MemoryCloud, record: ClusterRecord) -> None:
        """Check that a delete finds a new cluster in its group."""
        members = cloud.state.group_members(record.desired.id.group.key)
        if GroupMember(record.name, record.uid) not in members:
            raise RuleViolated("lost record", f"{record.name} is no member of its resource group")

    def _forward(self, before: ClusterRecord, after: ClusterRecord) -> None:
        what = f"{after.name} from {moment(before)} to {moment(after)}"
        if after.observed_generation > after.generation:
            raise RuleViolated("false ready", f"more was observed than accepted: {what}")
        if after.observed_generation < before.observed_generation:
            raise RuleViolated("lost record", f"the record went back: {what}")
        if moment(after) < moment(before):
            raise RuleViolated("lost record", f"the record went back: {what}")

    def _not_corrected_in_a_suspension(self, before: ClusterRecord, after: ClusterRecord) -> None:
        """Check that no correction begins while git suspends a cluster."""
        if after.generation != before.generation or not self._context.is_suspended(before):
            return
        started = {correction.path for correction in after.divergence.corrections} - {
            correction.path
            for correction in after.divergence.corrections
            if correction in before.divergence.corrections
        }
        if started:
            raise RuleViolated("drift", f"{after.name} is suspended, and {min(started)} is corrected")

    def _not_started(self, cloud: MemoryCloud, before: ClusterRecord) -> None:
        """Check that a tombstone is taken back before its delete begins, as its lease and Azure show.

        The delete of one that is recovering may be under way: its job only compares then.
        """
        fleet, key, what = cloud.ports.config.fleet, key_of(before.desired.id), before.name
        if before.job.lease is not None:
            raise RuleViolated("tombstone", f"the tombstone of {what} is taken back while its delete runs")
        accepted = (fleet, what, before.uid, self._context.azure.lives[key]) in self._context.deletes
        if accepted and not before.recovering:
            raise RuleViolated("tombstone", f"the tombstone of {what} is taken back after its delete began")
        self._context.history(cloud).forget_approvals(what)

    def _requested(self, cloud: MemoryCloud, record: ClusterRecord, *, new: bool) -> None:
        """Check that an accepted spec is what its commit asks for."""
        desired = self._context.history(cloud).desired(record.commit)
        asked = desired.clusters.get(record.name)
        if asked is None or asked.invalid or desired.invalid:
            message = f"{record.name} was accepted, and {record.commit[:8]} does not ask for it"
            raise RuleViolated("unrequested change", message)
        components = (record.document["spec"].get("flux") or {}).get("components")
        if not _is_spec(record, asked) or components != desired.components_of(record.name):
            message = f"{record.name} got another spec than that of {record.commit[:8]}"
            raise RuleViolated("another spec", message)
        if not new:  # the next plan removes a record that a superseded planner creates
            self._not_superseded(cloud, record, record.commit, wanted=True)

    def _may_be_deleted(self, cloud: MemoryCloud, before: ClusterRecord, commit: str) -> None:
        """Check that a delete has a commit without the cluster, or one that rebuilds it, and its approval."""
        history, name, fleet = self._context.history(cloud), before.name, cloud.ports.config.fleet
        desired = history.desired(commit)
        if desired.keeps(name, self._created_for(cloud, before)) or desired.invalid or _stays(desired, name):
            raise RuleViolated(
                "unrequested delete", f"{name} is deleted, and {commit[:8]} does not remove it"
            )
        self._not_superseded(cloud, before, commit, wanted=False)
        self._not_early(cloud, name, desired)
        records = cloud.state.clusters()
        approved = history.approved_of(commit, records)
        if name in approved:
            return
        if before.document["spec"].get("deletionProtection"):
            raise RuleViolated("unrequested delete", f"{name} is deleted, and it is protected")
        if self._context.is_suspended(before):
            raise RuleViolated("unrequested delete", f"{name} is deleted, and it is suspended")
        if not self._exists(before, fleet):
            return
        place = (fleet, commit, history.place(commit), self._context.replaced[fleet])
        others = [
            r
            for r in records
            if not (r.deleting or self._is_kept(cloud, desired, r) or _stays(desired, r.name))
        ]
        self._deleted[place].add(name)
        removed = ({r.name for r in others if self._exists(r, fleet)} | self._deleted[place]) - approved
        if len(removed) > desired.budget:
            message = f"{commit[:8]} removes {sorted(removed)}, over its budget"
            raise RuleViolated("unrequested delete", message)

    def _is_kept(self, cloud: MemoryCloud, desired: RequestedFleet, record: ClusterRecord) -> bool:
        """Return whether a commit keeps a cluster; a restored record may be older than its rebuild.

        One that is recovering is not rebuilt: its job compares the cluster and holds it.
        """
        if record.recovering and record.name in desired.clusters:
            return True
        in_azure = self._context.azure.created_for.get(key_of(record.desired.id), 0)
        return desired.keeps(record.name, max(self._created_for(cloud, record), in_azure))

    def _not_early(self, cloud: MemoryCloud, name: str, desired: RequestedFleet) -> None:
        """Check that what replaces a cluster was verified before the cluster's delete is accepted."""
        for successor in desired.successors(name) if name not in desired.clusters else ():
            record = cloud.state.cluster(successor)
            if record is None or not record.observed_generation:
                raise RuleViolated("early delete", f"{name} is deleted before {successor} was ever Ready")

    def _exists(self, record: ClusterRecord, fleet: str) -> bool:
        """Return whether the cluster of a record exists; a record without one does not use up the budget."""
        key = key_of(record.desired.id)
        return self._context.oracle.live(key) is not None and not self._context.oracle.belongs_to_others(
            key, fleet
        )

    def _created_for(self, cloud: MemoryCloud, record: ClusterRecord) -> int:
        """Return the number of the rebuild for which a record began."""
        return self._context.created_for.get((cloud.ports.config.fleet, record.name, record.uid), 0)

    def _is_created_for(self, cloud: MemoryCloud, record: ClusterRecord) -> None:
        """Note for which rebuild a record began.

        One that is recovering counts as created for that of its commit: its job compares the cluster and
        holds it, and whoever takes it over keeps it.
        """
        asked = self._context.history(cloud).desired(record.commit).clusters[record.name].asked
        of = cloud.ports.config.fleet, record.name, record.uid
        self._context.created_for[of] = max(asked, self._context.created_for.get(of, 0))
        self._context.began_for.setdefault(of, asked)

    def _not_superseded(
        self, cloud: MemoryCloud, record: ClusterRecord, commit: str, *, wanted: bool
    ) -> None:
        """Check that no commit that was planned later asks for the opposite."""
        history, name = self._context.history(cloud), record.name
        planned = self._context.planned[cloud.ports.config.fleet]
        if planned.place <= history.place(commit):
            return
        desired = history.desired(planned.commit)
        has = name in desired.clusters if wanted else desired.keeps(name, self._created_for(cloud, record))
        if not desired.invalid and has != wanted:
            rule, what = ("unrequested change", "accepted") if wanted else ("unrequested delete", "deleted")
            later = f"{planned.commit[:8]} was planned, which asks for the opposite"
            raise RuleViolated(rule, f"{name} is {what} for {commit[:8]}, after {later}")

    def planned(self, cloud: MemoryCloud, record: FleetRecord) -> None:
        """Check a write of the fleet record, and note which head was planned."""
        self._context.loop.log(
            "    fleet: planned %s, planning %s %s", record.commit[:8], record.planning[:8], record.problem
        )
        self._context.planned[cloud.ports.config.fleet].saved(record, self._context.history(cloud).place)

    def _job(self, cloud: MemoryCloud, record: ClusterRecord) -> tuple[str, str, datetime]:
        return cloud.ports.config.fleet, record.uid, record.job.started

    def _really_ready(self, cloud: MemoryCloud, record: ClusterRecord) -> None:
        """Check that a Ready cluster really is, unless an outside party changed it since the job began.

        A pool that somebody stopped before stays so, as drift: no job starts it.
        """
        key, drift = key_of(record.desired.id), record.divergence.drift
        if drift is not None and any(field.path.endswith("].powerState") for field in drift.fields):
            return
        disturbed_at = self._context.azure.disturbed_at(key)
        if disturbed_at is not None and disturbed_at > self._began.get(
            self._job(cloud, record), record.job.started
        ):
            return
        desired = self._context.history(cloud).desired(record.commit).clusters.get(record.name)
        found = self._context.oracle.differences(cloud.ports.config.fleet, desired, key) if desired else ""
        if found:
            raise RuleViolated("false ready", f"{record.name} is reported Ready, and {found}")

    def removed(self, cloud: MemoryCloud, record: ClusterRecord) -> None:
        """Check the removal of a record."""
        self._context.loop.log("    record: %s is removed", record.name)
        key = key_of(record.desired.id)
        if not record.deleting:
            raise RuleViolated("lost record", f"{record.name} was removed without a tombstone")
        fleet = cloud.ports.config.fleet
        stays = self._context.azure.owners.get(key) == fleet and self._context.oracle.live(key) is not None
        if stays and key not in self._context.unknown:  # those of lost tables wait for a takeover
            raise RuleViolated("orphan", f"{record.name} was removed, and the cluster still exists")
        if self._context.azure.owners.get(key, fleet) != fleet:
            self._context.left.add(
                (key.subscription, key.resource_group)
            )  # to the owner of the cluster in it


def _describe(before: ClusterRecord | None, after: ClusterRecord) -> str:
    job, lease = after.job, after.job.lease
    unchanged = before is not None and before.job.lease == lease
    what = (
        f"leased by {lease.owner}"
        if lease and not unchanged
        else job.reason or ("done" if not job.active else "")
    )
    return (
        f"{after.name}/{after.uid} {after.generation}.{job.sequence} observed {after.observed_generation} "
        f"{after.phase} {job.step.name} {what}"
    )


def _is_spec(record: ClusterRecord, asked: DesiredCluster) -> bool:
    """Return whether a record has the tag, the version and the node pools that a manifest has."""
    spec = record.document["spec"]
    pools = {
        pool["name"]: (
            pool["count"],
            pool["vmSize"],
            pool["nodeLabels"].get("tier", ""),
            pool.get("orchestratorVersion") or "",
            (pool.get("rollback") or {}).get("nodeImageVersion", ""),
        )
        for pool in spec["nodePools"]
    }
    wanted = {
        pool.name: (
            pool.count,
            pool.size,
            pool.label,
            pool.version,
            pool.rollback.image if pool.rollback else "",
        )
        for pool in asked.pools
    }
    found = (spec["tags"].get("cost", ""), spec["kubernetesVersion"], pools)
    return bool(found == (asked.tag, asked.version, wanted))


def _stays(desired: RequestedFleet, name: str) -> bool:
    """Return whether a cluster stays as it is, because its manifest is invalid."""
    found = desired.clusters.get(name)
    return found is not None and found.invalid
