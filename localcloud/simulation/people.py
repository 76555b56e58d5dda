"""The people of one fleet: what they commit and when, and what they do behind everybody's back.

``DEEDS`` is the list of what they do, each with how often; a new feature needs a function and a line there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from localcloud.simulation.checker import Actor
from localcloud.simulation.reality import differences
from localcloud.simulation.wishes import SUBSCRIPTION, FleetWish, Pool, Wish
from localcloud.world.azure_engine import key_of
from localcloud.world.azure_errors import ArmError
from localcloud.world.cloud import MemoryCloud
from shared.fleet.ids import ClusterId
from shared.jobs.row import Phase
from shared.pipeline.approval import approve
from shared.pipeline.intake import accept
from shared.pipeline.replay import replay
from shared.pipeline.webhook import Pushed

if TYPE_CHECKING:
    from localcloud.simulation.life import Life

HEAD_LAG = 25.0
"""Seconds until GitHub shows a push everywhere; shared/pipeline/heads.py doubts a head for longer."""
LATE = (40, 200)
"""Seconds by which a webhook is late: longer than that lag, see docs/simulation.md."""
NAMES = ("a", "b", "c", "d")
SIZES = ("Standard_D4s_v5", "Standard_D8s_v5")
VERSIONS = ("1.32", "1.33", "1.34")


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
        self._pushed_at = self.life.clock()
        told = ", ".join(map(_told, wish.clusters.values()))
        self.life.tell("%s: %s is the head%s: %s", self.fleet, commit[:8], " again" if back_to else "", told)
        self._deliveries += 1
        pushed = Pushed(f"{self.fleet}-{self._deliveries}", commit)
        fate = self.chance.random()
        if self.life.peaceful or fate < 0.6:
            self._webhook(pushed)
        elif fate < 0.8:
            if fate < 0.7:
                self._webhook(pushed)
                twice = Pushed(f"{pushed.delivery}-again", commit)
                self.life.later(self.chance.choice(LATE), lambda: self._webhook(twice))
                self.life.later(5, lambda: self._webhook(twice) if commit == self.head_line[-1] else None)
            else:
                self.life.later(self.chance.choice(LATE), lambda: self._webhook(pushed))
        else:
            self.life.tell("    the webhook is lost")

    def _webhook(self, pushed: Pushed) -> None:
        self.life.tell("%s: webhook for %s", self.fleet, pushed.commit[:8])
        self.life.work(self.cloud, lambda ports: accept(pushed, ports))

    def act(self) -> None:
        """Do something."""
        weights = [weight for weight, _ in DEEDS]
        self.chance.choices([deed for _, deed in DEEDS], weights)[0](self)

    def change(self, change: Callable[[Wish], Wish]) -> None:
        """Commit a change of one cluster."""
        if self.now.clusters:
            wish = self.chance.choice(list(self.now.clusters.values()))
            self.push(self.now.with_cluster(change(wish)))

    def settle(self) -> None:
        """Do what only people can to bring the fleet to what git says: mend, approve, replay, clear away."""
        for key in self.squatted:
            self.remove(key)
        self.squatted.clear()
        if self._mended() != self.now:
            self.push(self._mended())
        self.approve()
        self.replay()

    @property
    def content(self) -> bool:
        """Whether nothing is left that only people can do."""
        rows = self.cloud.state.clusters()
        waits = any(row.failed and not self.life.is_others(cluster_id(row.name), self.fleet) for row in rows)
        return not (waits or self.squatted or self._held() or self._mended() != self.now)

    def _mended(self) -> FleetWish:
        """Return what git should say: without mistakes, and without what another fleet was faster to get."""
        wish = self.now.mended
        for name, cluster in wish.clusters.items():
            key = cluster_id(name)
            if self.life.is_others(key, self.fleet):
                wish = wish.without(name)
            elif self._drifted(cluster):
                wish = wish.with_cluster(replace(cluster, tag="q" if cluster.tag == "p" else "p"))
        return wish

    def _drifted(self, wish: Wish) -> bool:
        """Tell whether somebody changed a cluster behind our back, which only a commit lets be mended."""
        row, checker = self.cloud.state.cluster(wish.name), self.life.checker
        settled = row is not None and row.phase is Phase.READY and checker.disturbed(cluster_id(wish.name))
        return settled and bool(differences(self.life, self.fleet, wish, cluster_id(wish.name)))

    def _held(self) -> frozenset[str]:
        commit = self.cloud.state.fleet().commit
        record = self.cloud.state.plan(commit) if commit else None
        return record.plan.held_deletes if record else frozenset()

    def approve(self) -> None:
        """Approve what is held."""
        commit, held = self.cloud.state.fleet().commit, self._held()
        if held:
            self.life.tell("%s: approves %s of %s", self.fleet, sorted(held), commit[:8])
            self.approved[commit] |= held
            self.life.work(self.cloud, lambda ports: approve(commit, held, "somebody", ports))

    def replay(self) -> None:
        """Replay what failed."""
        for row in self.cloud.state.clusters():
            if row.failed:
                self.life.tell("%s: replays %s: %s", self.fleet, row.name, row.job.reason)
                self.life.work(self.cloud, partial(replay, row.name, "somebody"))

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
    return key_of(ClusterId(SUBSCRIPTION, f"rg-{name}", name))


def _foreign(cluster: ClusterId) -> dict[str, Any]:
    """Return a cluster that somebody else would make, so like ours that only its tags tell."""
    pool = {
        "name": "system",
        "mode": "System",
        "vmSize": SIZES[0],
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
    pools = ",".join(f"{p.name}:{p.count}{p.size[9:12]}{p.label}" for p in wish.pools)
    marks = ("!" if wish.wrong else "") + ("^" if wish.protected else "")
    return f"{wish.name}{marks}({wish.version} {wish.tag} {pools})"


# Deeds


def _scale(people: People) -> None:
    def change(wish: Wish) -> Wish:
        pool = people.chance.choice(wish.pools)
        return wish.with_pool(replace(pool, count=people.chance.randint(1, 4)))

    people.change(change)


def _label(people: People) -> None:
    def change(wish: Wish) -> Wish:
        return wish.with_pool(replace(people.chance.choice(wish.pools), label=people.chance.choice("xyz")))

    people.change(change)


def _tag(people: People) -> None:
    people.change(lambda wish: replace(wish, tag=people.chance.choice("pqr")))


def _upgrade(people: People) -> None:
    people.change(lambda wish: replace(wish, version=people.chance.choice(VERSIONS)))


def _add_pool(people: People) -> None:
    pool = Pool(people.chance.choice(("batch", "web")), people.chance.randint(1, 3))
    people.change(lambda wish: wish.with_pool(pool))


def _remove_pool(people: People) -> None:
    people.change(lambda wish: replace(wish, pools=wish.pools[:1]))


def _resize(people: People) -> None:
    def change(wish: Wish) -> Wish:
        pool = people.chance.choice(wish.pools)
        return wish.with_pool(replace(pool, size=people.chance.choice(SIZES)))

    people.change(change)


def _protect(people: People) -> None:
    people.change(lambda wish: replace(wish, protected=not wish.protected))


def _mistake(people: People) -> None:
    people.change(lambda wish: replace(wish, wrong=not wish.wrong))


def _break_fleet(people: People) -> None:
    people.push(replace(people.now, wrong=not people.now.wrong))


def _add(people: People) -> None:
    missing = [name for name in people.life.names(people.cloud) if name not in people.now.clusters]
    if missing:
        people.push(people.now.with_cluster(Wish(people.chance.choice(missing))))


def _remove(people: People) -> None:
    if people.now.clusters:
        people.push(people.now.without(people.chance.choice(list(people.now.clusters))))


def _remove_several(people: People) -> None:
    names = list(people.now.clusters)
    people.push(people.now.without(*people.chance.sample(names, k=min(len(names), 2))))


def _budget(people: People) -> None:
    people.push(replace(people.now, budget=people.chance.choice((0, 1, 2, 4))))


def _words(people: People) -> None:
    people.push(replace(people.now, note=people.now.note + 1))


def _revert(people: People) -> None:
    if len(people.head_line) > 1:
        people.push(replace(people.wish(people.head_line[-2]), note=people.now.note + 1))


def _force_back(people: People) -> None:
    commit = people.chance.choice(people.head_line)
    if commit != people.head_line[-1]:
        people.push(people.wish(commit), back_to=commit)


def _portal_delete(people: People) -> None:
    live = [cluster_id(name) for name in NAMES if people.life.live(cluster_id(name)) is not None]
    if live:
        cluster = people.chance.choice(live)
        people.life.tell("%s: somebody deletes %s by hand", people.fleet, cluster.name)
        people.remove(cluster)


def _squat(people: People) -> None:
    people.squat(cluster_id(people.chance.choice(people.life.names(people.cloud))))


def _abort(people: People) -> None:
    people.life.abort_what_is_stuck()


def _any_replay(people: People) -> None:
    people.replay()


def _any_approval(people: People) -> None:
    people.approve()


def _poison(people: People) -> None:
    """Send what nobody understands to a queue."""
    body = people.chance.choice(("{", "[]", '{"schema_version": 9}', '{"cluster": "a"}', "\u0000"))
    queue = people.chance.choice(("plans", "jobs"))
    session = people.chance.choice((*NAMES, people.fleet))
    people.life.tell("%s: a message on %s that nobody understands", people.fleet, queue)
    people.life.send_raw(people.cloud, queue, session, body)


def _old_message(people: People) -> None:
    """Somebody replays a message of long ago by hand."""
    people.life.send_old(people.cloud)


DEEDS: tuple[tuple[int, Callable[[People], None]], ...] = (
    (4, _scale),
    (2, _label),
    (3, _tag),
    (1, _upgrade),
    (3, _add_pool),
    (2, _remove_pool),
    (1, _resize),
    (2, _protect),
    (2, _mistake),
    (1, _break_fleet),
    (4, _add),
    (4, _remove),
    (2, _remove_several),
    (1, _budget),
    (2, _words),
    (3, _revert),
    (2, _force_back),
    (1, _portal_delete),
    (2, _squat),
    (1, _abort),
    (1, _any_replay),
    (2, _any_approval),
    (1, _poison),
    (3, _old_message),
)
"""What people do, and how often each in comparison."""
