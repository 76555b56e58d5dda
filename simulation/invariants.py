"""What must always hold, looked at with every write, by rules of its own.

It knows what people asked for (``People``), what is really there (the worlds), and who writes; it shares no
decision with the code under test. A rule that does not hold raises ``Violated``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from localcloud.azure.world.azure_engine import key_of
from localcloud.memory.memory_cloud import MemoryCloud
from shared.fleet.resource_ids import ClusterId
from shared.jobs.messages import JobMessage
from shared.jobs.record import ClusterRecord, Phase, to_json
from shared.ports import FleetRecord, Message
from simulation.actor import Violated
from simulation.desired_state import like_a_strangers
from simulation.faults import MAX_SKEW, SHORT_FREEZE
from simulation.heads import Heads
from simulation.oracle import differences, serves

if TYPE_CHECKING:
    from simulation.simulation import Life

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
SECRET = "never-to-be-stored"  # noqa: S105
FROZEN = timedelta(seconds=SHORT_FREEZE + MAX_SKEW)
"""How old what a worker knows may be when it writes: no service takes a fencing token."""
CALM_SECONDS = 100.0
MOST_MESSAGES = 2
"""After the last fault each moment of a cluster gets one message, and a copy at most.

Messages from before may wait for their time, to have no effect then; none of a moment that is over is sent.
"""


@dataclass
class _Life:
    """What is known of one life of a cluster, from its row's first version to its end."""

    creates: int = 0
    vanished_before: int = 0


@dataclass
class Checker:
    """The rules, and what they remember."""

    life: Life
    created_at: datetime = LONG_AGO
    _made_at: dict[ClusterId, datetime] = field(default_factory=dict)
    _left: set[tuple[str, str]] = field(default_factory=set)
    group_made_at: datetime = LONG_AGO
    _lives: dict[tuple[str, str, str], _Life] = field(default_factory=dict)
    _heads: defaultdict[str, Heads] = field(default_factory=lambda: defaultdict(Heads))
    _vanished: Counter[ClusterId] = field(default_factory=Counter)
    _disturbed: dict[ClusterId, datetime] = field(default_factory=dict)
    _owners: dict[ClusterId, str] = field(default_factory=dict)
    _groups: dict[tuple[str, str], str] = field(default_factory=dict)
    _accepted_at: dict[tuple[str, str], datetime] = field(default_factory=dict)
    _peaceful: set[str] = field(default_factory=set)
    _buried: defaultdict[tuple[str, str, int], set[str]] = field(default_factory=lambda: defaultdict(set))

    # What people and faults do

    def may_vanish(self, cluster: ClusterId) -> None:
        """Note that the next operation takes the cluster, or a part of it, with it."""
        self._vanished[key_of(cluster)] += 1
        self.disturb(cluster)

    def disturb(self, cluster: ClusterId) -> None:
        """Note that somebody else changes the cluster now."""
        self._disturbed[key_of(cluster)] = self.life.clock()

    def disturbed(self, cluster: ClusterId) -> bool:
        """Tell whether somebody else ever changed the cluster."""
        return cluster in self._disturbed

    # Azure

    def accepted(self, kind: str, resource: str) -> None:
        """Look at a write that Azure has accepted."""
        self.life.tell("    azure: %s %s", kind, resource.rpartition("resourceGroups/")[2])
        parts = resource.split("/")
        cloud, lock = self.life.actor.cloud, self.life.actor.lock
        name = parts[8] if len(parts) > 8 else lock.session if lock else ""
        key = ClusterId(parts[2], parts[4].lower(), name)
        if cloud is None:
            self._by_people(kind, key)
            return
        told = f"{cloud.ports.config.fleet} does {kind} to {name}"
        self._may_write(kind, key, cloud, told)
        record = cloud.state.cluster(name)
        if record is None:
            raise Violated("tombstone", f"{told}, which it has forgotten")
        lease, mine = record.job.lease, self.life.actor.lease
        if lease is None or mine is None or lease.owner != mine.owner:
            raise Violated("one worker", f"{told} without holding its claim")
        if kind in ("delete", "delete-group") and not record.deleting:
            raise Violated("unasked delete", f"{told} without a tombstone")
        if not kind.startswith("delete") and record.deleting and not self._under_way(cloud, name):
            raise Violated("tombstone", f"{told} after its tombstone")
        if self._rests(record) and not record.deleting and not self._under_way(cloud, name):
            raise Violated("suspended", f"{told}, which is suspended")
        if kind == "create":
            self._created(cloud, record, key)
        if kind == "delete-pool":
            self._pool_may_go(record, key, parts[10])

    def _under_way(self, cloud: MemoryCloud, name: str) -> bool:
        """Tell whether a write may have passed its fence before the newest spec was accepted."""
        accepted = self._accepted_at.get((cloud.ports.config.fleet, name), LONG_AGO)
        return self.life.clock() - accepted <= FROZEN

    def _rests(self, record: ClusterRecord) -> bool:
        """Tell whether a row is suspended, by any clock."""
        suspension = record.document["spec"].get("suspend")
        ends = datetime.fromisoformat(suspension["until"]) if suspension else LONG_AGO
        return ends > self.life.clock() + timedelta(seconds=MAX_SKEW)

    def _may_write(self, kind: str, key: ClusterId, cloud: MemoryCloud, told: str) -> None:
        """Only what is our own is written to."""
        fleet, group = cloud.ports.config.fleet, (key.subscription, key.resource_group)
        owner = self._owners.get(key)
        if kind == "create-group":
            self._groups[group], self.group_made_at = fleet, self.life.clock()
        elif kind == "delete-group":
            self._no_cluster_inside(fleet, group)
            if self._groups[group] != fleet:
                raise Violated("foreign", f"{told}, whose group {self._groups[group] or 'somebody'} made")
        elif kind == "create":
            self._owners[key] = fleet
            self.created_at = self._made_at[key] = self.life.clock()
        elif owner == "" and self._adopts(cloud, key, kind):
            self._owners[key] = fleet
        elif owner != fleet and not kind.endswith("-group"):
            raise Violated("foreign", f"{told}, which belongs to {owner or 'somebody else'}")

    def _adopts(self, cloud: MemoryCloud, key: ClusterId, kind: str) -> bool:
        """Tell whether git lets this write take a stranger's cluster over."""
        record = cloud.state.cluster(key.name)
        wish = self.life.people(cloud).wish(record.commit).clusters.get(key.name) if record else None
        if wish is None or kind != "update":
            return False
        return wish.adopt == "with-differences" or (wish.adopt == "when-equal" and like_a_strangers(wish))

    def _by_people(self, kind: str, key: ClusterId) -> None:
        self._disturbed[key] = self.life.clock()
        if kind in ("create-group", "update-group"):  # an update takes our tags away
            self._groups[key.subscription, key.resource_group] = ""
        if kind == "create":
            self._owners[key] = ""
            self.created_at = self._made_at[key] = self.life.clock()
        if kind.startswith("delete"):
            self._vanished[key] += 1

    def _no_cluster_inside(self, fleet: str, group: tuple[str, str]) -> None:
        """Nothing is in a group that is deleted; Azure lets nobody see what others just put there."""
        inside = [c for c in self.life.azure.ids() if (c.subscription, c.resource_group) == group]
        unseen = {c for c in inside if self.life.clock() - self._made_at[c] <= FROZEN}
        self._vanished.update(unseen)
        inside = [c for c in inside if c not in unseen or self._owners[c] == fleet]
        if inside:
            names = ", ".join(cluster.name for cluster in inside)
            raise Violated("unasked delete", f"the group {group[1]} is deleted with {names} in it")

    def _created(self, cloud: MemoryCloud, record: ClusterRecord, key: ClusterId) -> None:
        fleet = cloud.ports.config.fleet
        life = self._lives.setdefault((fleet, record.name, record.uid), _Life(0, self._vanished[key]))
        life.creates += 1
        if life.creates > 1 + self._vanished[key] - life.vanished_before:
            raise Violated("created twice", f"{fleet} created {record.name} {life.creates} times in one life")

    def _pool_may_go(self, record: ClusterRecord, key: ClusterId, pool: str) -> None:
        live = self.life.live(key)
        if live is None:
            return
        profiles = {p["name"]: p for p in live["properties"]["agentPoolProfiles"]}
        served = serves(profiles.get(pool, {"name": pool}))
        wanted = {p["name"] for p in record.document["spec"]["nodePools"]}
        others = [p for name, p in profiles.items() if name != pool and serves(p) == served]
        if served in wanted and not others:
            raise Violated("unasked delete", f"the pool {pool} of {record.name} goes, and {served} is wanted")

    # The queues

    def delivered(self, cloud: MemoryCloud, session: str) -> None:
        """Look at the messages that wait for a cluster: once nothing goes wrong, no moment has many."""
        if self.life.calm_seconds < CALM_SECONDS:
            return
        waiting = cloud.broker.peek("jobs", session=session)
        ours = [message.draft for message in waiting if message.draft.id in self._peaceful]
        moments = Counter(_named(JobMessage.model_validate_json(draft.body)) for draft in ours)
        if any(count > MOST_MESSAGES for count in moments.values()):
            ids = ", ".join(message.draft.id for message in waiting)
            raise Violated("doubled", f"{len(waiting)} messages wait for {session}: {ids}")

    def sent(self, cloud: MemoryCloud, message: Message) -> None:
        """Look at a message for a worker: once nothing goes wrong, none is of a moment that is over."""
        if self.life.peaceful:
            self._peaceful.add(message.id)
        if self.life.calm_seconds < CALM_SECONDS:
            return
        named = JobMessage.model_validate_json(message.body)
        record = cloud.state.cluster(named.cluster)
        if record is None or _named(named) != (record.uid, *_moment(record)):
            raise Violated("doubled", f"{message.id} is sent, and its moment is over")

    # The state

    def saved(self, cloud: MemoryCloud, before: ClusterRecord | None, after: ClusterRecord) -> None:
        """Look at a row that was written over another."""
        actor = self.life.actor
        if after.job.lease is not None and (before is None or before.job.lease != after.job.lease):
            actor.lease = after.job.lease
        self.life.tell("    row: %s", lambda: _told(before, after))
        if before is None or before.generation != after.generation:
            self._accepted_at[cloud.ports.config.fleet, after.name] = self.life.clock()
        if before is None or before.uid != after.uid:
            if before is not None:
                raise Violated("lost row", f"{after.name} begins a new life over the old one")
            self._lives[cloud.ports.config.fleet, after.name, after.uid] = _Life(
                0, self._vanished[key_of(after.desired.id)]
            )
            self._asked_for(cloud, after)
            self.life.people(cloud).begins(after.name)
            return
        self._forward(before, after)
        if after.deleting and not before.deleting:
            self._may_be_deleted(cloud, before, after.commit)
        elif after.generation > before.generation:
            self._asked_for(cloud, after)
        if after.observed_generation > before.observed_generation:
            self._true(cloud, after)

    def _forward(self, before: ClusterRecord, after: ClusterRecord) -> None:
        told = f"{after.name} from {_moment(before)} to {_moment(after)}"
        if before.deleting and not after.deleting:
            raise Violated("tombstone", f"the tombstone was taken away: {told}")
        if after.observed_generation > after.generation:
            raise Violated("ahead of the real", f"more was observed than accepted: {told}")
        if after.observed_generation < before.observed_generation:
            raise Violated("lost row", f"the row went back: {told}")
        if _moment(after) < _moment(before):
            raise Violated("lost row", f"the row went back: {told}")

    def _asked_for(self, cloud: MemoryCloud, record: ClusterRecord) -> None:
        """A spec that was accepted is what its commit says."""
        wish = self.life.people(cloud).wish(record.commit)
        asked = wish.clusters.get(record.name)
        if asked is None or asked.wrong or wish.wrong:
            raise Violated(
                "unasked change", f"{record.name} was accepted, which {record.commit[:8]} does not ask for"
            )
        if record.generation > 1:  # a row that an overtaken planner makes is removed by the next plan
            self._not_overtaken(cloud, record.name, record.commit, wanted=True)

    def _may_be_deleted(self, cloud: MemoryCloud, before: ClusterRecord, commit: str) -> None:
        """A tombstone needs a commit without the cluster, and no guard that holds it."""
        people, name, fleet = self.life.people(cloud), before.name, cloud.ports.config.fleet
        wish = people.wish(commit)
        if name in wish.clusters or wish.wrong:
            raise Violated("unasked delete", f"{commit[:8]} does not remove {name}, and it is being deleted")
        self._not_overtaken(cloud, name, commit, wanted=False)
        approved = people.approved[commit]
        if name in approved:
            return
        if before.document["spec"].get("deletionProtection"):
            raise Violated("unasked delete", f"{name} is protected, and it is being deleted")
        if self._rests(before):
            raise Violated("unasked delete", f"{name} is suspended, and it is being deleted")
        if not self._exists(before, fleet):
            return
        place = (fleet, commit, people.place(commit))
        going = {r.name: r for r in cloud.state.clusters() if r.name not in wish.clusters and not r.deleting}
        self._buried[place].add(name)
        removed = ({n for n, r in going.items() if self._exists(r, fleet)} | self._buried[place]) - approved
        if len(removed) > wish.budget:
            raise Violated("unasked delete", f"{commit[:8]} removes {sorted(removed)}, over its budget")

    def _exists(self, record: ClusterRecord, fleet: str) -> bool:
        """Tell whether a row has a cluster; the budget is for those, not for rows that never had one."""
        key = key_of(record.desired.id)
        return self.life.live(key) is not None and not self.life.is_others(key, fleet)

    def _not_overtaken(self, cloud: MemoryCloud, name: str, commit: str, *, wanted: bool) -> None:
        """No commit that was planned later asks for the contrary."""
        people = self.life.people(cloud)
        planned = self._heads[cloud.ports.config.fleet]
        if planned.place <= people.place(commit):
            return
        wish = people.wish(planned.commit)
        if not wish.wrong and (name in wish.clusters) != wanted:
            rule, what = ("unasked change", "accepted") if wanted else ("unasked delete", "deleted")
            later = f"{planned.commit[:8]} was planned, which says the contrary"
            raise Violated(rule, f"{name} is {what} for {commit[:8]}, after {later}")

    def planned(self, cloud: MemoryCloud, record: FleetRecord) -> None:
        """Look at what a planner notes; a plan that was carried out tells which head it was made of."""
        self.life.tell(
            "    fleet: planned %s, planning %s %s", record.commit[:8], record.planning[:8], record.problem
        )
        self._heads[cloud.ports.config.fleet].saved(record, self.life.people(cloud).place)

    def _true(self, cloud: MemoryCloud, record: ClusterRecord) -> None:
        """What was observed is really so, unless somebody else changed it since the job began."""
        key = key_of(record.desired.id)
        if self._disturbed.get(key, record.job.started) > record.job.started:
            return
        wish = self.life.people(cloud).wish(record.commit).clusters.get(record.name)
        found = differences(self.life, cloud.ports.config.fleet, wish, key) if wish else ""
        if found:
            raise Violated("ahead of the real", f"{record.name} is called Ready, and {found}")

    def forgot(self, cloud: MemoryCloud, record: ClusterRecord) -> None:
        """Look at a row that was removed."""
        self.life.tell("    row: %s is forgotten", record.name)
        key = key_of(record.desired.id)
        if not record.deleting:
            raise Violated("lost row", f"{record.name} was forgotten without a tombstone")
        if self._owners.get(key) == cloud.ports.config.fleet and self.life.live(key) is not None:
            raise Violated("left behind", f"{record.name} was forgotten and is still there")
        if self._owners.get(key, cloud.ports.config.fleet) != cloud.ports.config.fleet:
            self._left.add((key.subscription, key.resource_group))  # to who has a cluster in it

    # The end

    def at_the_end(self, cloud: MemoryCloud) -> None:
        """Hold the real world against git, once people have mended what only they can and all is quiet."""
        fleet, people = cloud.ports.config.fleet, self.life.people(cloud)
        head = cloud.repository.head("main")
        if cloud.state.fleet().commit != head:
            raise Violated("lost work", f"{fleet}: the head {head[:8]} was never planned")
        wish, records = people.wish(head), {record.name: record for record in cloud.state.clusters()}
        for name, wanted in wish.clusters.items():
            record = records.get(name)
            if (
                record is None
                or record.observed_generation != record.generation
                or record.phase is not Phase.READY
            ):
                told = f"{record.phase}: {record.job.reason}" if record else "there is no row"
                raise Violated("lost work", f"{fleet}: {name} was never brought to what git says: {told}")
            found = differences(self.life, cloud.ports.config.fleet, wanted, key_of(record.desired.id))
            if found:
                raise Violated("not as git", f"{fleet}: {name}: {found}")
        for key, owner in self._owners.items():
            if owner == fleet and key.name not in wish.clusters and self.life.live(key) is not None:
                raise Violated("left behind", f"{fleet}: {key.name} is still there")
        homes = {(key.subscription, key.resource_group) for key in self.life.azure.ids()}
        for group in self.life.azure.groups():
            if self._groups.get(group) == fleet and group not in homes | self._left:
                raise Violated("left behind", f"{fleet}: the group {group[1]} is still there, and empty")
        for name, record in records.items():
            if name not in wish.clusters and not self.life.is_others(key_of(record.desired.id), fleet):
                raise Violated(
                    "lost work", f"{fleet}: {name} is not forgotten: {record.phase}: {record.job.reason}"
                )
        waiting = cloud.broker.counts("jobs")
        if waiting.active or waiting.scheduled:
            raise Violated("doubled", f"{fleet}: all is done, and messages wait: {waiting}")
        self._no_secret(cloud)

    def _no_secret(self, cloud: MemoryCloud) -> None:
        kept = [to_json(record) for record in cloud.state.clusters()]
        kept += [str(event) for name in "abcd" for event in cloud.state.events(name, 100)]
        kept += [str(plan_record) for plan_record in cloud.state.plans_since(self.life.began)]
        if any(SECRET in text for text in kept):
            raise Violated("secret", "a secret was stored")


def _named(message: JobMessage) -> tuple[str, int, int]:
    return message.uid, message.generation, message.sequence


def _moment(record: ClusterRecord) -> tuple[int, int]:
    return record.generation, record.job.sequence


def _told(before: ClusterRecord | None, after: ClusterRecord) -> str:
    job, lease = after.job, after.job.lease
    kept = before is not None and before.job.lease == lease
    what = (
        f"claimed by {lease.owner}"
        if lease and not kept
        else job.reason or ("done" if not job.active else "")
    )
    return (
        f"{after.name}/{after.uid} {after.generation}.{job.sequence} observed {after.observed_generation} "
        f"{after.phase} {job.step} {what}"
    )
