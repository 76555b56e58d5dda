"""The rules of two apps of one fleet, each with its own tables.

"contested": an app wrote to a cluster that the other one manages, more than the contest tag and without a
takeover; wrote to one of its own that carries the contest tag of the other one; deleted what its branch has;
or did not report a cluster that it does not write to. "not in sync": after the takeover, a cluster differs
from the branch of the app that remained.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from localcloud.azure.world.arm_keys import key_of
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.clusters import fleet_view
from shared.cluster.job import ContestKind
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.resource_ids import ClusterId
from simulation.history import FleetHistory
from simulation.invariants.context import FROZEN, Context
from simulation.oracle import is_going
from simulation.rule import RuleViolated

READS_AGAIN = timedelta(minutes=10)
"""A job that waits for an operator reads the cluster again within that time, unless its clock is wrong."""

INSTALLATION, MARK = "roadstead-installation", "roadstead-contested-by"
"""The tags, as docs/concepts.md names them."""


class Contests:
    """Checks the writes of both apps, once a second one is up; ``rival`` is that one."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.rival: MemoryCloud | None = None
        self._marked: dict[ClusterId, datetime] = {}
        self._taken_over: set[tuple[str, ClusterId]] = set()
        self._predecessors: set[tuple[str, tuple[str, str]]] = set()
        self._changed: dict[ClusterId, datetime] = {}
        self._began: dict[tuple[str, str, datetime], datetime] = {}

    def met(self, rival: MemoryCloud, history: FleetHistory) -> None:
        """Note the second app, and what its operators push."""
        self.rival, self._context.histories[rival] = rival, history

    def after_event(self) -> None:
        """Note when jobs began: by the clock of the world, because that of their planner may be wrong."""
        for cloud in self._context.loop.clouds if self.rival is not None else ():
            for record in cloud.state.clusters():
                self._began.setdefault(self._job(cloud, record), self._context.loop.clock())

    def taken_over(self, cloud: MemoryCloud, record: ClusterRecord) -> None:
        """Note that an operator takes a cluster over with an app."""
        key = key_of(record.desired.id)
        self._taken_over.add((self._name(cloud), key))
        self._predecessors.add((self._name(cloud), (key.subscription, key.resource_group)))
        self._marked.pop(key, None)

    def _name(self, cloud: MemoryCloud) -> str:
        fleet = cloud.ports.config.fleet
        return f"{fleet}, second app" if cloud is self.rival else fleet

    def accepted(self, kind: str, key: ClusterId, cloud: MemoryCloud) -> bool:
        """Check a write that Azure has accepted; return whether no other rule applies to it."""
        if self.rival is None:
            return False
        azure, who, group = self._context.azure, self._name(cloud), (key.subscription, key.resource_group)
        if kind.endswith("-group"):
            return self._to_group(kind, group, cloud)
        if kind == "create":
            self._marked.pop(key, None)
            if cloud is self.rival:
                azure.created(key, who)
            return cloud is self.rival
        owner = azure.owners.get(key, "")
        what = f"{who} does {kind} to {key.name}"
        if owner and owner != who:
            if kind == "update" and self._is_mark(key, cloud):
                self._marked.setdefault(key, self._context.loop.clock())
                azure.disturb(key)
                return True
            if not self._may_overrule(key, cloud):
                raise RuleViolated("contested", f"{what}, which {owner} manages")
            self._change_owner(key, who)
        since = self._marked.get(key)
        if since is not None and self._may_overrule(key, cloud):
            live = self._context.oracle.live(key) or {}
            if MARK not in live.get("tags", {}):  # the write took it off, as the operator decided
                del self._marked[key]
        elif since is not None and self._context.loop.clock() - since > FROZEN:
            raise RuleViolated("contested", f"{what}, which is contested since {since:%H:%M:%S}")
        if cloud is self.rival:
            self._of_rival(cloud, kind, key, owner, what)
        return cloud is self.rival

    def _may_overrule(self, key: ClusterId, cloud: MemoryCloud) -> bool:
        """Return whether an operator took a cluster over with an app, and its job has not confirmed that."""
        record = cloud.state.cluster(key.name)
        overrules = record is not None and bool(record.ownership.overruled)
        return overrules and (self._name(cloud), key) in self._taken_over

    def _is_mark(self, key: ClusterId, cloud: MemoryCloud) -> bool:
        """Return whether an update has set the contest tag of an app, and left the cluster to its owner."""
        live, mine = self._context.oracle.live(key), cloud.state.fleet().app.installation
        tags = live["tags"] if live is not None else {}
        marked = str(tags.get(MARK, "")).startswith(f"{mine}@")
        return marked and not str(tags.get(INSTALLATION, "")).startswith(f"{mine}@")

    def _change_owner(self, key: ClusterId, who: str) -> None:
        azure, group = self._context.azure, (key.subscription, key.resource_group)
        azure.owners[key] = who
        if azure.group_owners.get(group) == who:
            self._context.left.discard(group)
        else:  # it stays its creator's, who leaves it to the owner of the cluster in it
            self._context.left.add(group)
        self._changed[key] = self._context.loop.clock()
        self._context.oracle.keeps_labels.add(key)  # the new owner knows no label of the other one
        azure.disturb(key)

    def _could_notice(self, record: ClusterRecord, cloud: MemoryCloud, key: ClusterId) -> bool:
        """Return whether the job of a record of the app that lost a cluster began after that."""
        lost = self._changed.get(key) or self._context.azure.cluster_created_at[key]
        return self._began[self._job(cloud, record)] > lost + FROZEN

    def _job(self, cloud: MemoryCloud, record: ClusterRecord) -> tuple[str, str, datetime]:
        return self._name(cloud), record.uid, record.job.started

    def _to_group(self, kind: str, group: tuple[str, str], cloud: MemoryCloud) -> bool:
        """Check a write of the second app to a group; the rules of one app suffice for the first one.

        After a takeover, both its creator and the app that took a cluster over may delete an empty group.
        """
        azure, who = self._context.azure, self._name(cloud)
        if (who, group) in self._predecessors and kind == "delete-group" and azure.group_owners.get(group):
            azure.group_owners[group] = who
        if kind == "update-group" and azure.group_owners.get(group, who) != who:
            del azure.group_owners[group]  # its tags are overwritten: a delete keeps it, and says so
        if cloud is not self.rival:
            return False
        if kind == "create-group":
            azure.group_owners[group], azure.group_created_at[group] = who, self._context.loop.clock()
        if kind == "delete-group":
            inside = [
                c.name for c in self._context.loop.azure.ids() if (c.subscription, c.resource_group) == group
            ]
            if inside or azure.group_owners.get(group) != who:
                raise RuleViolated("contested", f"{who} deletes the group {group[1]}, with {inside} in it")
        return True

    def _of_rival(self, rival: MemoryCloud, kind: str, key: ClusterId, owner: str, what: str) -> None:
        """Check that the branch of the second app asks for a write, and note its change."""
        record = rival.state.cluster(key.name)
        desired = (
            self._context.history(rival).desired(record.commit).clusters.get(key.name) if record else None
        )
        if kind == "delete":
            self._context.azure.vanished[key] += 1
        if kind == "delete" and (record is None or not record.deleting or desired is not None):
            raise RuleViolated("unrequested delete", f"{what}, which its branch has")
        if not owner:
            if desired is None or not desired.adopt:
                raise RuleViolated("foreign write", f"{what}, which belongs to no fleet")
            self._context.azure.owners[key] = self._name(rival)
        self._context.azure.disturb(key)

    def reported(self, first: MemoryCloud, rival: MemoryCloud) -> None:
        """Check, once both apps had time to look, that each reports what it does not write to."""
        for key, owner in self._context.azure.owners.items():
            live = self._context.oracle.live(key)
            if live is None or is_going(live) or not owner:
                continue
            own, other = (rival, first) if owner == self._name(rival) else (first, rival)
            record, marked = other.state.cluster(key.name), MARK in live["tags"]
            contest = record.job.next_run.contest if record is not None else None
            if record is not None and record.phase is Phase.READY and self._could_notice(record, other, key):
                raise RuleViolated("contested", f"{self._name(other)}: {key.name} is Ready, and is {owner}'s")
            if record is not None and contest is not None:
                self._shows(other, key.name)
                # A rebuilt record asks its own operators about what differs, which is nothing for the owner.
                wants = contest.kind is not ContestKind.RECOVERY and not (
                    record.deleting or record.recovering
                )
                idle = live["properties"]["powerState"]["code"] == "Running"
                late = record.job.next_run.at > self._context.loop.clock() + READS_AGAIN  # of a wrong clock
                if wants and idle and not marked and not late and not record.finding:  # a sweep leaves none
                    raise RuleViolated(
                        "contested", f"{self._name(other)} waits for {key.name}, without its tag"
                    )
            record = own.state.cluster(key.name)
            if marked and record is not None and record.contested:
                self._shows(own, key.name)

    def _shows(self, cloud: MemoryCloud, name: str) -> None:
        view = fleet_view(cloud.ports)
        if name not in view["problem"] or not view["fleetSuggestedAction"]:
            raise RuleViolated("contested", f"{self._name(cloud)} does not report {name}: {view['problem']}")

    def converged(self, cloud: MemoryCloud) -> None:
        """Check, at the end, that the world is what the branch of the second app asks for."""
        fleet, head = cloud.ports.config.fleet, cloud.repository.head(cloud.ports.config.branch)
        if cloud.state.fleet().commit != head:
            raise RuleViolated("lost work", f"{self._name(cloud)}: the head {head[:8]} was never planned")
        for name, wanted in self._context.history(cloud).desired(head).clusters.items():
            record = cloud.state.cluster(name)
            if record is None or record.phase is not Phase.READY:
                what = f"{record.phase}: {record.job.reason}" if record else "there is no record"
                raise RuleViolated("lost work", f"{self._name(cloud)}: {name}: {what}")
            found = self._context.oracle.differences(fleet, wanted, key_of(record.desired.id))
            if found:
                raise RuleViolated("not in sync", f"{self._name(cloud)}: {name}: {found}")
        differs = any(
            record.divergence.drift for record in cloud.state.clusters()
        )  # for how long is another rule
        for shown in cloud.repository.statuses.latest(head):
            if differs and "differs from git" in shown.status.description:
                continue
            if shown.status.context == "roadstead" and shown.status.state != "success":
                raise RuleViolated("open status", f"{self._name(cloud)}: {shown.status.description}")
