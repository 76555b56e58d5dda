"""The invariants: what must always hold, checked at every write with rules of their own.

They know what the operators pushed (``FleetHistory``), what really exists (``Oracle``), and who acts
(``EventLoop``), and share no decision with the code under test. A rule that does not hold raises
``RuleViolated``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from localcloud.azure.world.azure_engine import key_of
from localcloud.memory.memory_cloud import RECIPES, MemoryCloud
from shared.fleet.resource_ids import ClusterId
from shared.jobs.messages import JobMessage
from shared.jobs.record import ClusterRecord, Phase, to_json
from shared.ports import FleetRecord, Message
from simulation.desired_state import matches_manual_cluster
from simulation.event_loop import MAX_SKEW, SHORT_FREEZE, EventLoop
from simulation.history import LONG_AGO, AzureHistory, FleetHistory, PlannedHead
from simulation.oracle import Oracle, serves
from simulation.rule import RuleViolated

SECRET = "never-to-be-stored"  # noqa: S105
FROZEN = timedelta(seconds=SHORT_FREEZE + MAX_SKEW)
"""How old a worker's reads may be when it writes: no service rejects the write of an expired lease."""
KNOWN = timedelta(seconds=25.0 + 60.0) + FROZEN
"""How old the head that a worker knows may be: GitHub shows it late, and the lease guard ends its writes."""
CALM_SECONDS = 100.0
MOST_MESSAGES = 2
"""Once faults have ended, each sequence number of a cluster gets one message, and at most one copy.

Earlier messages may still wait for their time and then have no effect; no new message names a sequence
number that is over.
"""


@dataclass
class _Creations:
    """The creations of one cluster, from the first version of its record to its removal."""

    creates: int = 0
    vanished_before: int = 0


@dataclass
class Invariants:
    """The rules, and what they remember; ``histories`` are those of the fleets, by name."""

    loop: EventLoop
    oracle: Oracle
    azure: AzureHistory
    histories: Mapping[str, FleetHistory]
    _left: set[tuple[str, str]] = field(default_factory=set)
    _creations: dict[tuple[str, str, str], _Creations] = field(default_factory=dict)
    _planned: defaultdict[str, PlannedHead] = field(default_factory=lambda: defaultdict(PlannedHead))
    _accepted_at: dict[tuple[str, str], datetime] = field(default_factory=dict)
    _sent_in_peace: set[str] = field(default_factory=set)
    _deleted: defaultdict[tuple[str, str, int], set[str]] = field(default_factory=lambda: defaultdict(set))

    # Azure

    def accepted(self, kind: str, resource: str) -> None:
        """Check a write that Azure has accepted."""
        self.loop.log("    azure: %s %s", kind, resource.rpartition("resourceGroups/")[2])
        parts = resource.split("/")
        cloud, lock = self.loop.actor.cloud, self.loop.actor.lock
        name = parts[8] if len(parts) > 8 else lock.session if lock else ""
        key = ClusterId(parts[2], parts[4].lower(), name)
        if cloud is None:
            self._by_operators(kind, key)
            return
        what = f"{cloud.ports.config.fleet} does {kind} to {name}"
        if (self.loop.actor.queue == "deletes") != (kind in ("delete", "delete-group")):
            raise RuleViolated("identity", f"{what} for a message of the queue {self.loop.actor.queue}")
        self._may_write(kind, key, cloud, what)
        record = cloud.state.cluster(name)
        if record is None:
            raise RuleViolated("tombstone", f"{what}, which has no record")
        lease, mine = record.job.lease, self.loop.actor.lease
        if lease is None or mine is None or lease.owner != mine.owner:
            raise RuleViolated("single writer", f"{what} without holding its lease")
        if kind in ("delete", "delete-group") and not record.deleting:
            raise RuleViolated("unrequested delete", f"{what} without a tombstone")
        if kind == "delete":
            self._still_removed(cloud, name, what)
        if not kind.startswith("delete") and record.deleting and not self._may_be_late(cloud, name):
            raise RuleViolated("tombstone", f"{what} after its tombstone")
        if self._is_suspended(record) and not record.deleting and not self._may_be_late(cloud, name):
            raise RuleViolated("suspended", f"{what}, which is suspended")
        if kind == "create":
            self._created(cloud, record, key)
        if kind == "delete-pool":
            self._pool_may_go(record, key, parts[10])

    def _still_removed(self, cloud: MemoryCloud, name: str, what: str) -> None:
        """Check that a delete begins only while the head, as far as it can be known, lacks the cluster."""
        since = self._history(cloud).wanted_since(name)
        if since is not None and self.loop.clock() - since > KNOWN:
            raise RuleViolated("unrequested delete", f"{what}, which git has had again since {since}")

    def _history(self, cloud: MemoryCloud) -> FleetHistory:
        return self.histories[cloud.ports.config.fleet]

    def _may_be_late(self, cloud: MemoryCloud, name: str) -> bool:
        """Return whether a write may have passed the lease guard before the newest spec was accepted."""
        accepted = self._accepted_at.get((cloud.ports.config.fleet, name), LONG_AGO)
        return self.loop.clock() - accepted <= FROZEN

    def _is_suspended(self, record: ClusterRecord) -> bool:
        """Return whether a record is suspended, by the clock of every worker."""
        suspension = record.document["spec"].get("suspend")
        ends = datetime.fromisoformat(suspension["until"]) if suspension else LONG_AGO
        return ends > self.loop.clock() + timedelta(seconds=MAX_SKEW + self.loop.actor.ahead)

    def _may_write(self, kind: str, key: ClusterId, cloud: MemoryCloud, what: str) -> None:
        """Check that a fleet writes only to what it owns."""
        fleet, group = cloud.ports.config.fleet, (key.subscription, key.resource_group)
        owner = self.azure.owners.get(key)
        if kind == "create-group":
            self.azure.group_owners[group] = fleet
            self.azure.group_created_at[group] = self.loop.clock()
        elif kind == "delete-group":
            self._no_cluster_inside(fleet, group)
            creator = self.azure.group_owners[group]
            if creator != fleet:
                raise RuleViolated("foreign write", f"{what}, whose group {creator or 'an operator'} created")
        elif kind == "create":
            self.azure.created(key, fleet)
        elif owner == "" and self._adopts(cloud, key, kind):
            self.azure.owners[key] = fleet
        elif owner != fleet and not kind.endswith("-group"):
            raise RuleViolated("foreign write", f"{what}, which belongs to {owner or 'no fleet'}")

    def _adopts(self, cloud: MemoryCloud, key: ClusterId, kind: str) -> bool:
        """Return whether git lets this write adopt a cluster that belongs to no fleet."""
        record = cloud.state.cluster(key.name)
        desired = self._history(cloud).desired(record.commit).clusters.get(key.name) if record else None
        if desired is None or kind != "update":
            return False
        equal = desired.adopt == "when-equal" and matches_manual_cluster(desired)
        return equal or desired.adopt == "with-differences"

    def _by_operators(self, kind: str, key: ClusterId) -> None:
        self.azure.disturb(key)
        if kind in ("create-group", "update-group"):  # an update removes the tags of the fleet
            self.azure.group_owners[key.subscription, key.resource_group] = ""
        if kind == "create":
            self.azure.created(key, "")
        if kind.startswith("delete"):
            self.azure.vanished[key] += 1

    def _no_cluster_inside(self, fleet: str, group: tuple[str, str]) -> None:
        """Check that a deleted group is empty, but for clusters that others created a moment ago."""
        inside = [c for c in self.loop.azure.ids() if (c.subscription, c.resource_group) == group]
        unseen = {c for c in inside if self.loop.clock() - self.azure.cluster_created_at[c] <= FROZEN}
        self.azure.vanished.update(unseen)
        inside = [c for c in inside if c not in unseen or self.azure.owners[c] == fleet]
        if inside:
            names = ", ".join(cluster.name for cluster in inside)
            raise RuleViolated("unrequested delete", f"the group {group[1]} is deleted with {names} in it")

    def _created(self, cloud: MemoryCloud, record: ClusterRecord, key: ClusterId) -> None:
        fleet = cloud.ports.config.fleet
        vanished = self.azure.vanished[key]
        seen = self._creations.setdefault((fleet, record.name, record.uid), _Creations(0, vanished))
        seen.creates += 1
        if seen.creates > 1 + vanished - seen.vanished_before:
            raise RuleViolated("created twice", f"{fleet} created {record.name} {seen.creates} times")

    def _pool_may_go(self, record: ClusterRecord, key: ClusterId, pool: str) -> None:
        live = self.oracle.live(key)
        if live is None:
            return
        profiles = {p["name"]: p for p in live["properties"]["agentPoolProfiles"]}
        served = serves(profiles.get(pool, {"name": pool}))
        wanted = {p["name"] for p in record.document["spec"]["nodePools"]}
        others = [p for name, p in profiles.items() if name != pool and serves(p) == served]
        if served in wanted and not others:
            message = f"the pool {pool} of {record.name} is deleted, and git wants {served}"
            raise RuleViolated("unrequested delete", message)

    # The queues

    def delivered(self, cloud: MemoryCloud, queue: str, session: str) -> None:
        """Check the messages that wait for a cluster: in peace, no sequence number has many."""
        if self.loop.calm_seconds < CALM_SECONDS:
            return
        waiting = cloud.broker.peek(queue, session=session)
        sent = [message.draft for message in waiting if message.draft.id in self._sent_in_peace]
        moments = Counter(_moment_of_message(JobMessage.model_validate_json(draft.body)) for draft in sent)
        if any(count > MOST_MESSAGES for count in moments.values()):
            ids = ", ".join(message.draft.id for message in waiting)
            raise RuleViolated("duplicate message", f"{len(waiting)} messages wait for {session}: {ids}")

    def sent(self, cloud: MemoryCloud, message: Message) -> None:
        """Check a message for a worker: in peace, none names a sequence number that is over."""
        if self.loop.peaceful:
            self._sent_in_peace.add(message.id)
        if self.loop.calm_seconds < CALM_SECONDS:
            return
        named = JobMessage.model_validate_json(message.body)
        record = cloud.state.cluster(named.cluster)
        if record is None or _moment_of_message(named) != (record.uid, *_moment(record)):
            raise RuleViolated("duplicate message", f"{message.id} is sent, and its sequence number is over")

    # The state

    def saved(self, cloud: MemoryCloud, before: ClusterRecord | None, after: ClusterRecord) -> None:
        """Check a record that was written, against the version before."""
        actor = self.loop.actor
        if after.job.lease is not None and (before is None or before.job.lease != after.job.lease):
            actor.lease = after.job.lease
        self.loop.log("    record: %s", lambda: _describe(before, after))
        if before is None or before.generation != after.generation:
            self._accepted_at[cloud.ports.config.fleet, after.name] = self.loop.clock()
        if before is None or before.uid != after.uid:
            if before is not None:
                raise RuleViolated("lost record", f"{after.name} is created over an existing record")
            self._creations[cloud.ports.config.fleet, after.name, after.uid] = _Creations(
                0, self.azure.vanished[key_of(after.desired.id)]
            )
            self._requested(cloud, after)
            self._history(cloud).forget_approvals(after.name)
            return
        self._forward(before, after)
        if after.deleting and not before.deleting:
            self._may_be_deleted(cloud, before, after.commit)
        elif after.generation > before.generation:
            self._requested(cloud, after)
        if after.observed_generation > before.observed_generation:
            self._really_ready(cloud, after)

    def _forward(self, before: ClusterRecord, after: ClusterRecord) -> None:
        what = f"{after.name} from {_moment(before)} to {_moment(after)}"
        if before.deleting and not after.deleting:
            raise RuleViolated("tombstone", f"the tombstone was removed: {what}")
        if after.observed_generation > after.generation:
            raise RuleViolated("false ready", f"more was observed than accepted: {what}")
        if after.observed_generation < before.observed_generation:
            raise RuleViolated("lost record", f"the record went back: {what}")
        if _moment(after) < _moment(before):
            raise RuleViolated("lost record", f"the record went back: {what}")

    def _requested(self, cloud: MemoryCloud, record: ClusterRecord) -> None:
        """Check that an accepted spec is what its commit asks for."""
        desired = self._history(cloud).desired(record.commit)
        asked = desired.clusters.get(record.name)
        if asked is None or asked.invalid or desired.invalid:
            message = f"{record.name} was accepted, and {record.commit[:8]} does not ask for it"
            raise RuleViolated("unrequested change", message)
        if record.generation > 1:  # the next plan removes a record that a superseded planner creates
            self._not_superseded(cloud, record.name, record.commit, wanted=True)

    def _may_be_deleted(self, cloud: MemoryCloud, before: ClusterRecord, commit: str) -> None:
        """Check that a delete has a commit without the cluster, and an approval where it needs one."""
        history, name, fleet = self._history(cloud), before.name, cloud.ports.config.fleet
        desired = history.desired(commit)
        if name in desired.clusters or desired.invalid:
            raise RuleViolated(
                "unrequested delete", f"{name} is deleted, and {commit[:8]} does not remove it"
            )
        self._not_superseded(cloud, name, commit, wanted=False)
        approved = history.approved[commit]
        if name in approved:
            return
        if before.document["spec"].get("deletionProtection"):
            raise RuleViolated("unrequested delete", f"{name} is deleted, and it is protected")
        if self._is_suspended(before):
            raise RuleViolated("unrequested delete", f"{name} is deleted, and it is suspended")
        if not self._exists(before, fleet):
            return
        place = (fleet, commit, history.place(commit))
        others = [r for r in cloud.state.clusters() if r.name not in desired.clusters and not r.deleting]
        self._deleted[place].add(name)
        removed = ({r.name for r in others if self._exists(r, fleet)} | self._deleted[place]) - approved
        if len(removed) > desired.budget:
            message = f"{commit[:8]} removes {sorted(removed)}, over its budget"
            raise RuleViolated("unrequested delete", message)

    def _exists(self, record: ClusterRecord, fleet: str) -> bool:
        """Return whether the cluster of a record exists; a record without one does not use up the budget."""
        key = key_of(record.desired.id)
        return self.oracle.live(key) is not None and not self.oracle.belongs_to_others(key, fleet)

    def _not_superseded(self, cloud: MemoryCloud, name: str, commit: str, *, wanted: bool) -> None:
        """Check that no commit that was planned later asks for the opposite."""
        history = self._history(cloud)
        planned = self._planned[cloud.ports.config.fleet]
        if planned.place <= history.place(commit):
            return
        desired = history.desired(planned.commit)
        if not desired.invalid and (name in desired.clusters) != wanted:
            rule, what = ("unrequested change", "accepted") if wanted else ("unrequested delete", "deleted")
            later = f"{planned.commit[:8]} was planned, which asks for the opposite"
            raise RuleViolated(rule, f"{name} is {what} for {commit[:8]}, after {later}")

    def planned(self, cloud: MemoryCloud, record: FleetRecord) -> None:
        """Check a write of the fleet record, and note which head was planned."""
        self.loop.log(
            "    fleet: planned %s, planning %s %s", record.commit[:8], record.planning[:8], record.problem
        )
        self._planned[cloud.ports.config.fleet].saved(record, self._history(cloud).place)

    def _really_ready(self, cloud: MemoryCloud, record: ClusterRecord) -> None:
        """Check that a Ready cluster really is, unless an outside party changed it since the job began."""
        key = key_of(record.desired.id)
        disturbed_at = self.azure.disturbed_at(key)
        if disturbed_at is not None and disturbed_at > record.job.started:
            return
        desired = self._history(cloud).desired(record.commit).clusters.get(record.name)
        found = self.oracle.differences(cloud.ports.config.fleet, desired, key) if desired else ""
        if found:
            raise RuleViolated("false ready", f"{record.name} is reported Ready, and {found}")

    def removed(self, cloud: MemoryCloud, record: ClusterRecord) -> None:
        """Check the removal of a record."""
        self.loop.log("    record: %s is removed", record.name)
        key = key_of(record.desired.id)
        if not record.deleting:
            raise RuleViolated("lost record", f"{record.name} was removed without a tombstone")
        fleet = cloud.ports.config.fleet
        wanted = self._history(cloud).wanted_since(record.name) is not None  # it gets a new record
        if self.azure.owners.get(key) == fleet and self.oracle.live(key) is not None and not wanted:
            raise RuleViolated("orphan", f"{record.name} was removed, and the cluster still exists")
        if self.azure.owners.get(key, fleet) != fleet:
            self._left.add((key.subscription, key.resource_group))  # to the owner of the cluster in it

    # The end

    def at_the_end(self, cloud: MemoryCloud) -> None:
        """Compare the real world with git, once operators have nothing left to do and all is idle."""
        fleet, history = cloud.ports.config.fleet, self._history(cloud)
        head = cloud.repository.head("main")
        if cloud.state.fleet().commit != head:
            raise RuleViolated("lost work", f"{fleet}: the head {head[:8]} was never planned")
        desired, records = history.desired(head), {record.name: record for record in cloud.state.clusters()}
        for name, wanted in desired.clusters.items():
            record = records.get(name)
            if (
                record is None
                or record.observed_generation != record.generation
                or record.phase is not Phase.READY
            ):
                what = f"{record.phase}: {record.job.reason}" if record else "there is no record"
                raise RuleViolated(
                    "lost work", f"{fleet}: {name} was never brought to the desired state: {what}"
                )
            found = self.oracle.differences(cloud.ports.config.fleet, wanted, key_of(record.desired.id))
            if found:
                raise RuleViolated("not in sync", f"{fleet}: {name}: {found}")
        for key, owner in self.azure.owners.items():
            if owner == fleet and key.name not in desired.clusters and self.oracle.live(key) is not None:
                raise RuleViolated("orphan", f"{fleet}: {key.name} still exists")
        homes = {(key.subscription, key.resource_group) for key in self.loop.azure.ids()}
        for group in self.loop.azure.groups():
            if self.azure.group_owners.get(group) == fleet and group not in homes | self._left:
                raise RuleViolated("orphan", f"{fleet}: the group {group[1]} still exists, and is empty")
        for name, record in records.items():
            key = key_of(record.desired.id)
            if name not in desired.clusters and not self.oracle.belongs_to_others(key, fleet):
                what = f"{record.phase}: {record.job.reason}"
                raise RuleViolated("lost work", f"{fleet}: {name} still has a record: {what}")
        for queue in RECIPES:
            waiting = cloud.broker.counts(queue)
            if waiting.active or waiting.scheduled:
                message = f"{fleet}: all work is done, and messages wait in {queue}: {waiting}"
                raise RuleViolated("duplicate message", message)
        self._every_status_ended(cloud)
        self._no_secret(cloud)

    def _every_status_ended(self, cloud: MemoryCloud) -> None:
        """Check what GitHub shows on every commit that was ever pushed: nothing waits any more."""
        fleet, head = cloud.ports.config.fleet, cloud.repository.head("main")
        truth = "failure" if any(record.failed for record in cloud.state.clusters()) else "success"
        for commit in self._history(cloud).head_line:
            for record in cloud.repository.statuses.latest(commit):
                shown = f"{record.status.state}: {record.status.description}"
                if record.status.state == "pending" or (commit == head and record.status.state != truth):
                    raise RuleViolated("open status", f"{fleet}: {commit[:8]} still shows {shown}")

    def _no_secret(self, cloud: MemoryCloud) -> None:
        stored = [to_json(record) for record in cloud.state.clusters()]
        stored += [str(event) for name in "abcd" for event in cloud.state.events(name, 100)]
        stored += [str(plan_record) for plan_record in cloud.state.plans_since(self.loop.began)]
        if any(SECRET in text for text in stored):
            raise RuleViolated("secret", "a secret was stored")


def _moment_of_message(message: JobMessage) -> tuple[str, int, int]:
    return message.uid, message.generation, message.sequence


def _moment(record: ClusterRecord) -> tuple[int, int]:
    return record.generation, record.job.sequence


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
