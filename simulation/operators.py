"""The people of one fleet: what they have committed, and what only they can mend."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from localcloud.azure.world.arm_errors import ArmError
from localcloud.azure.world.azure_engine import key_of
from localcloud.memory.memory_cloud import MemoryCloud
from shared.fleet.resource_ids import ClusterId
from shared.jobs.record import Phase
from shared.pipeline.api.approval import approve
from shared.pipeline.api.replay import replay
from shared.pipeline.intake.accept import accept
from shared.pipeline.intake.webhook import Pushed
from simulation.actor import Actor
from simulation.desired_state import SUBSCRIPTION, SYSTEM, FleetWish, Wish, group_of
from simulation.oracle import differences

if TYPE_CHECKING:
    from simulation.simulation import Life

HEAD_LAG = 25.0
"""Seconds until GitHub shows a push everywhere; planner/branch_head.py reads a doubtful head for longer."""
LATE = (40, 200)
"""Seconds by which a webhook is late: longer than that lag."""
NAMES = ("a", "b", "c", "d")


class People:
    """The operators of a fleet; ``head_line`` has every commit in the order in which it became the head."""

    def __init__(self, life: Life, cloud: MemoryCloud) -> None:
        self.life, self.cloud, self.chance = life, cloud, life.chance
        self.fleet = cloud.ports.config.fleet
        self._wishes: dict[str, FleetWish] = {}
        self.head_line: list[str] = []
        self.approved: defaultdict[str, set[str]] = defaultdict(set)
        self.squatted: list[ClusterId] = []
        self._deliveries = 0
        self._pushed_at = life.began

    # What the checker asks

    def wish(self, commit: str) -> FleetWish:
        """Return what a commit asks for."""
        return self._wishes[commit]

    def begins(self, name: str) -> None:
        """Note that a cluster begins a life: what was approved of an earlier one says nothing."""
        for names in self.approved.values():
            names.discard(name)

    @property
    def now(self) -> FleetWish:
        """What the head asks for."""
        return self._wishes[self.head_line[-1]] if self.head_line else FleetWish()

    def place(self, commit: str) -> int:
        """Return when a commit was last made the head, as a number that grows."""
        return max(n for n, c in enumerate(self.head_line) if c == commit)

    @property
    def head_before(self) -> str:
        """The branch as GitHub may show it a moment after a push."""
        return self.head_line[-2]

    @property
    def just_pushed(self) -> bool:
        """Whether GitHub may not show the newest head yet."""
        lag = self.life.clock() - self._pushed_at
        return len(self.head_line) > 1 and lag < timedelta(seconds=HEAD_LAG)

    # What they do

    def push(self, wish: FleetWish, *, back_to: str = "") -> None:
        """Make a commit, or move the branch back to one, and let the webhook come, late, twice or never."""
        if back_to:
            self.cloud.repository.reset(back_to)
            commit = back_to
        else:
            commit = self.cloud.repository.push(wish.files(self.fleet))
            self._wishes[commit] = wish
        self.head_line.append(commit)
        self._pushed_at = self.life.clock().replace(microsecond=0)
        told = ", ".join(map(_told, wish.clusters.values()))
        self.life.tell("%s: %s is the head%s: %s", self.fleet, commit[:8], " again" if back_to else "", told)
        self._deliveries += 1
        pushed = Pushed(f"{self.fleet}-{self._deliveries}", commit, self._pushed_at)
        fate = self.chance.random()
        if self.life.peaceful or fate < 0.6:
            self._webhook(pushed)
        elif fate < 0.8:
            if fate < 0.7:
                self._webhook(pushed)
                twice = Pushed(f"{pushed.delivery}-again", commit, self._pushed_at)
                self.life.later(self.chance.choice(LATE), lambda: self._webhook(twice))
                self.life.later(5, lambda: self._webhook(twice) if commit == self.head_line[-1] else None)
            else:
                self.life.later(self.chance.choice(LATE), lambda: self._webhook(pushed))
        else:
            self.life.tell("    the webhook is lost")

    def _webhook(self, pushed: Pushed) -> None:
        self.life.tell("%s: webhook for %s", self.fleet, pushed.commit[:8])
        self.life.work(self.cloud, lambda ports: accept(pushed, ports))

    def change(
        self, change: Callable[[Wish], Wish], *, among: Callable[[Wish], bool] = lambda _: True
    ) -> None:
        """Commit a change of one cluster, among some."""
        wishes = [wish for wish in self.now.clusters.values() if among(wish)]
        if wishes:
            self.push(self.now.with_cluster(change(self.chance.choice(wishes))))

    def settle(self) -> None:
        """Do what only people can to bring the fleet to what git says: mend, approve, replay, clear away."""
        for key in self._in_the_way():
            self.remove(key)
        if self._mended() != self.now:
            self.push(self._mended())
        self.approve()
        self.replay()

    @property
    def content(self) -> bool:
        """Whether nothing is left that only people can do."""
        waits = any(record.failed and not self._lost(record.name) for record in self.cloud.state.clusters())
        return not (waits or self._in_the_way() or self._held() or self._mended() != self.now)

    def _lost(self, name: str) -> bool:
        """Tell whether a cluster belongs to somebody else, who keeps it."""
        wish = self.now.clusters.get(name)
        adopted = wish is not None and wish.adopt and self.life.is_nobodys(cluster_id(name))
        return self.life.is_others(cluster_id(name), self.fleet) and not adopted

    def _refused(self, name: str) -> bool:
        """Tell whether a node pool of ours is not taken over, because it differs."""
        record = self.cloud.state.cluster(name)
        failure = record.job.failure if record is not None and record.failed else None
        ours = not self.life.is_others(cluster_id(name), self.fleet)
        return failure is not None and failure.kind == "NotOwned" and ours

    def _in_the_way(self) -> list[ClusterId]:
        """Return the clusters that people made by hand, and that git does not take over."""
        stuck = {record.name for record in self.cloud.state.clusters() if record.failed and record.deleting}
        wishes = self.now.clusters.values()
        adopted = {cluster_id(wish.name) for wish in wishes if wish.adopt and wish.name not in stuck}
        return [key for key in self.squatted if key not in adopted and self.life.is_nobodys(key)]

    def _mended(self) -> FleetWish:
        """Return what git should say: without mistakes, and without what another fleet was faster to get."""
        wish = self.now.mended
        for name, cluster in wish.clusters.items():
            key = cluster_id(name)
            if cluster.adopt and self.life.live(key) is None:
                wish = wish.with_cluster(replace(cluster, adopt=""))
            elif (cluster.adopt and self.life.is_nobodys(key)) or self._refused(name):
                wish = wish.with_cluster(replace(cluster, adopt="with-differences"))
            elif self.life.is_others(key, self.fleet):
                wish = wish.without(name)
            elif self._drifted(cluster):
                wish = wish.with_cluster(replace(cluster, tag="q" if cluster.tag == "p" else "p"))
        return wish

    def _drifted(self, wish: Wish) -> bool:
        """Tell whether somebody changed a cluster behind our back, which only a commit lets be mended."""
        record, checker = self.cloud.state.cluster(wish.name), self.life.checker
        settled = (
            record is not None and record.phase is Phase.READY and checker.disturbed(cluster_id(wish.name))
        )
        return settled and bool(differences(self.life, self.fleet, wish, cluster_id(wish.name)))

    def _held(self) -> frozenset[str]:
        commit = self.cloud.state.fleet().commit
        plan_record = self.cloud.state.plan(commit) if commit else None
        return plan_record.plan.held_deletes if plan_record else frozenset()

    def approve(self) -> None:
        """Approve what is held."""
        commit, held = self.cloud.state.fleet().commit, self._held()
        if held:
            self.life.tell("%s: approves %s of %s", self.fleet, sorted(held), commit[:8])
            self.approved[commit] |= held
            self.life.work(self.cloud, lambda ports: approve(commit, held, "somebody", ports))

    def replay(self) -> None:
        """Replay what failed."""
        for record in self.cloud.state.clusters():
            if record.failed:
                self.life.tell("%s: replays %s: %s", self.fleet, record.name, record.job.reason)
                self.life.work(self.cloud, partial(replay, record.name, "somebody"))

    def squat(self, cluster: ClusterId) -> None:
        """Make a cluster by hand, of a name that the fleet may want."""
        azure = self.life.azure
        if self.life.live(cluster) is not None:
            return
        self.life.tell("%s: somebody makes a cluster %s of their own", self.fleet, cluster.name)
        try:
            with self.life.as_actor(Actor()):
                azure.put_group(cluster.subscription, cluster.resource_group, {"location": "eastus"})
                azure.put_cluster(cluster, _foreign(cluster))
        except ArmError:
            return  # the group is being deleted just now
        self.squatted.append(cluster)

    def remove(self, cluster: ClusterId) -> None:
        """Delete a cluster by hand, as in the portal."""
        if self.life.live(cluster) is not None:
            with self.life.as_actor(Actor()):
                self.life.azure.delete_cluster(cluster)


def cluster_id(name: str) -> ClusterId:
    """Return where the cluster of a name lives."""
    return key_of(ClusterId(SUBSCRIPTION, group_of(name), name))


def _foreign(cluster: ClusterId) -> dict[str, Any]:
    """Return a cluster that somebody else would make, so like ours that only its tags tell."""
    pool = {
        "name": "system",
        "mode": "System",
        "vmSize": SYSTEM.size,
        "count": 1,
        "type": "VirtualMachineScaleSets",
    }
    properties = {
        "dnsPrefix": cluster.name,
        "kubernetesVersion": "1.33",
        "networkProfile": {"networkPlugin": "azure"},
        "agentPoolProfiles": [pool],
    }
    tags, identity = {"owner": "somebody"}, {"type": "SystemAssigned"}
    return {"location": "eastus", "identity": identity, "tags": tags, "properties": properties}


def _told(wish: Wish) -> str:
    marks = ("!" if wish.wrong else "") + ("^" if wish.protected else "")
    marks += ("=" if wish.adopt else "") + ("~" if wish.suspended else "")
    pools = ",".join(f"{p.name}:{p.count}{p.size[9:12]}{p.label}" for p in wish.pools)
    return f"{wish.name}{marks}({wish.version} {wish.tag} {pools})"
