"""One seed: some fleets, their people and their troubles, from the first commit to the last check."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from localcloud.azure.world.arm_errors import ArmError
from localcloud.azure.world.arm_resources import Timings
from localcloud.kubernetes.world.controllers import Delays
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.memory.memory_cloud import QUEUES, Crash, MemoryCloud
from localcloud.servicebus.world.broker import DEAD_LETTER_SUFFIX
from localcloud.servicebus.world.broker_values import Draft
from shared.fleet.kubernetes.flux_objects import GitCredentials
from shared.fleet.resource_ids import ClusterId
from shared.jobs.errors import ReconcileError
from shared.ports import FleetConfig, Json, Message, Ports
from simulation.actor import Actor
from simulation.desired_state import FleetWish, Wish
from simulation.fault_injector import Trouble
from simulation.faults import FAULTS, MAX_SKEW
from simulation.invariants import SECRET, Checker
from simulation.observed_ports import Accepted, WatchedQueue, WatchedState
from simulation.operator_actions import act
from simulation.operators import NAMES, People
from simulation.oracle import is_going

TIMER_SECONDS = 300.0
"""Rarer than in production, where nothing would happen at most of them either: seeds are lived faster."""
PEACE_SECONDS = 4 * 3600.0
ROUNDS = 12
MOST_EVENTS = 20_000
DEEPEST = 2
LIST_LAG = 10.0
"""Seconds until what is in a group is in ARM's lists."""
CRD_SECONDS = (0.2, 0.2, 15.0, 90.0)
"""Until a custom resource definition is established."""
SKEWS = (0.0, -MAX_SKEW, MAX_SKEW)
TIMINGS = Timings(
    create_cluster=50,
    update_cluster=15,
    delete_cluster=40,
    create_pool=25,
    update_pool=10,
    delete_pool=15,
    upgrade_pool=10,
    delete_group=10,
)


class Endless(BaseException):
    """Something goes round without an end."""

    rule = "endless"


class Life:
    """What one seed decides, and the loop that lets it happen."""

    def __init__(self, seed: int, *, only: frozenset[str] = frozenset(), verbose: bool = False) -> None:
        self.chance = random.Random(seed)  # noqa: S311
        self.seed, self._verbose = seed, verbose
        self.story: list[str] = []
        self.events, self.peaceful = 0, False
        self._calm_since: datetime | None = None
        self._actors: list[Actor] = [Actor()]
        self._thaws: list[datetime] = []
        self._later: list[tuple[datetime, int, Callable[[], None]]] = []
        self.sent: list[tuple[MemoryCloud, str, Message]] = []
        kinds = only or frozenset(kind for kind in FAULTS if self.chance.random() < 0.5)
        rate = 40 if only else self.chance.choice((2, 8, 20, 40))
        self.checker = Checker(self)
        self.clouds = self._fleets(2 if self.chance.random() < 0.15 else 1)
        first = self.clouds[0]
        self.clock, self.azure = first.clock, first.azure
        self.azure.timings = TIMINGS
        self.azure.accepted = Accepted(self.checker)
        self.began = self.clock()
        self.trouble = Trouble(self, rate=rate, kinds=kinds)
        self._people = {id(cloud): People(self, cloud) for cloud in self.clouds}
        self._ports = {id(cloud): self._workers(cloud) for cloud in self.clouds}
        self._timer_due = {id(cloud): self.began + timedelta(seconds=TIMER_SECONDS) for cloud in self.clouds}
        self.tell("seed %d: %d faults in 1000 calls of %s", seed, rate, ", ".join(sorted(kinds)))

    def _fleets(self, count: int) -> list[MemoryCloud]:
        clouds: list[MemoryCloud] = []
        delays = Delays(crd=self.chance.choice(CRD_SECONDS))
        for name in ("north", "south")[:count]:
            state = WatchedState()
            config = FleetConfig(
                name, f"example/{name}", git_credentials=GitCredentials("flux", SECRET, host="github.com")
            )
            cloud = MemoryCloud(
                seed=self.chance.getrandbits(32),
                config=config,
                state=state,
                beside=clouds[0] if clouds else None,
                delays=delays,
                lock_seconds=60,
            )
            state.cloud, state.checker = cloud, self.checker
            clouds.append(cloud)
        return clouds

    def _workers(self, cloud: MemoryCloud) -> list[Ports]:
        """Return the ports of some workers, whose clocks differ."""

        def skewed(seconds: float) -> Callable[[], datetime]:
            return lambda: self.clock() + timedelta(seconds=seconds)

        ports = self.trouble.around(replace(cloud.ports, **self._recorded(cloud)), cloud)
        return [replace(ports, clock=skewed(seconds)) for seconds in SKEWS]

    def _recorded(self, cloud: MemoryCloud) -> dict[str, Any]:
        return {name: WatchedQueue(getattr(cloud.ports, name), cloud, name, self) for name in QUEUES}

    # What the others ask

    def tell(self, words: str, *values: object) -> None:
        """Add a line to the story, if somebody wants to read it."""
        if self._verbose:
            values = tuple(value() if callable(value) else value for value in values)
            seconds = (self.clock() - self.began).total_seconds() if hasattr(self, "clock") else 0.0
            self.story.append(f"{seconds:9.1f} {'  ' * (len(self._actors) - 1)}{words % values}")

    @property
    def actor(self) -> Actor:
        """Who acts now."""
        return self._actors[-1]

    @contextmanager
    def as_actor(self, actor: Actor) -> Iterator[Actor]:
        """Let somebody act."""
        self._actors.append(actor)
        try:
            yield actor
        finally:
            self._actors.pop()

    def people(self, cloud: MemoryCloud) -> People:
        """Return the people of a fleet."""
        return self._people[id(cloud)]

    def names(self, cloud: MemoryCloud) -> tuple[str, ...]:
        """Return the names that a fleet's people use; two fleets share some."""
        if len(self.clouds) == 1:
            return NAMES
        return NAMES[:2] if cloud is self.clouds[0] else NAMES[1:3]

    def live(self, cluster: ClusterId) -> Json | None:
        """Return what is really there."""
        return self.azure.look(cluster)

    def is_others(self, cluster: ClusterId, fleet: str) -> bool:
        """Tell whether a cluster is there that belongs to somebody else."""
        live = self.live(cluster)
        return live is not None and live["tags"].get("roadstead-fleet") != fleet

    def is_nobodys(self, cluster: ClusterId) -> bool:
        """Tell whether a cluster is there that belongs to no fleet."""
        live = self.live(cluster)
        return live is not None and "roadstead-fleet" not in live["tags"]

    @property
    def calm_seconds(self) -> float:
        """How long nothing has gone wrong any more."""
        return (self.clock() - self._calm_since).total_seconds() if self._calm_since else 0.0

    def just_now(self, made_at: datetime) -> bool:
        """Whether something was made a moment ago, so that ARM may not show it yet."""
        return self.clock() - made_at < timedelta(seconds=LIST_LAG)

    def touch(self, cloud: MemoryCloud, name: str) -> None:
        """Give a row another version."""
        state = cloud.state
        if isinstance(state, WatchedState):
            state.touch(name)

    def kubernetes_world(self, cluster: ClusterId) -> KubernetesWorld | None:
        """Return the inside of a cluster."""
        live = self.live(cluster)
        return self.clouds[0].kubernetes.world(_as_named(live)) if live else None

    def stop(self, cluster: ClusterId) -> None:
        """Stop a cluster, as in the portal, if Azure lets it be stopped now."""
        with suppress(ArmError):
            self.azure.stop(cluster)
            self.checker.disturb(cluster)
            self.tell("somebody stops %s", cluster.name)

    def help_on(self) -> None:
        """End the operations that never end, free nodes that were kept from an upgrade, start what stands."""
        for cluster in self.azure.ids():
            if is_going(self.live(cluster)):
                continue  # nobody cancels a delete
            self.checker.disturb(cluster)
            self.azure.abort(cluster)
            self.azure.catch_up(cluster)
            self.azure.start(cluster)

    # What happens

    def later(self, seconds: float, event: Callable[[], None]) -> None:
        """Let something happen after a time."""
        self._later.append((self.clock() + timedelta(seconds=seconds), len(self._later), event))
        self._later.sort(key=lambda item: item[:2])

    def work(self, cloud: MemoryCloud, what: Callable[[Ports], object]) -> None:
        """Let a function of a fleet do something, on a worker of its own."""
        with self.as_actor(Actor(cloud)):
            try:
                what(self.chance.choice(self._ports[id(cloud)]))
            except (Crash, ReconcileError) as error:
                self.tell("    ended by %s %s", type(error).__name__, error)

    def send_raw(self, cloud: MemoryCloud, queue: str, session: str, body: str) -> None:
        """Put anything on a queue."""
        cloud.broker.send(queue, Draft(body.encode(), session=session))

    def send_old(self, cloud: MemoryCloud) -> None:
        """Put a message on its queue once more."""
        sent = [item for item in self.sent if item[0] is cloud]
        if sent:
            _, queue, message = self.chance.choice(sent)
            self.tell("somebody sends %s on %s again", message.id, queue)
            cloud.broker.send(queue, Draft(message.body.encode(), session=message.session))

    def freeze(self, seconds: float) -> None:
        """Let the others go on for a time, while the caller stands still."""
        if len(self._actors) > 2 * DEEPEST:  # each frozen worker, and who goes on meanwhile
            return
        self.tell("    frozen for %.0f s", seconds)
        actor = self.actor
        if actor.cloud is not None and actor.lock is not None and self.chance.random() < 0.5:
            self.tell("    its lock is lost at once")
            actor.cloud.broker.release_session(actor.queue, actor.lock)
        # Nobody thaws before those who were frozen later, so these do not outlast the first.
        self._thaws.append(min([self.clock() + timedelta(seconds=seconds), *self._thaws[-1:]]))
        try:
            with self.as_actor(Actor()):
                self.until(self._thaws[-1])
        finally:
            self._thaws.pop()
        self.tell("    thawed")

    def until(self, end: datetime, *, done: Callable[[], bool] = lambda: False) -> None:
        """Let everything happen that happens before a time."""
        while self.clock() < end:
            if self._one():
                continue
            if done():
                return
            self._jump(end)

    def _one(self) -> bool:
        """Let one thing happen that can happen now; tell whether there was one."""
        self.events += 1
        if self.events > MOST_EVENTS:
            raise Endless(f"{MOST_EVENTS} events")
        if self._later and self._later[0][0] <= self.clock():
            self._later.pop(0)[2]()
            return True
        for cloud in self._in_some_order(self.clouds):
            if self._timer_due[id(cloud)] <= self.clock():
                self._timer_due[id(cloud)] = self.clock() + timedelta(seconds=TIMER_SECONDS)
                self.work(cloud, cloud.run_timers)
                return True
            for queue in self._in_some_order(QUEUES):
                if not cloud.broker.quiet(queue) and self._deliver(cloud, queue):
                    return True
                if not cloud.broker.quiet(queue + DEAD_LETTER_SUFFIX) and self._bury(cloud, queue):
                    return True
        return False

    def _in_some_order(self, things: Any) -> Any:
        return things if len(things) < 2 or self.chance.random() < 0.5 else things[::-1]

    def _deliver(self, cloud: MemoryCloud, queue: str) -> bool:
        lock = cloud.broker.accept_session(queue)
        if lock is None:
            return False
        if self.chance.random() < 0.3:  # give the others a turn
            cloud.broker.release_session(queue, lock)
            lock = cloud.broker.accept_session(queue)
            if lock is None:
                return False
        if queue == "jobs":
            self.checker.delivered(cloud, lock.session)
        self.tell("%s: message for %s on %s", cloud.ports.config.fleet, lock.session, queue)
        with self.as_actor(Actor(cloud, queue, lock)):
            cloud.deliver(queue, lock, self.chance.choice(self._ports[id(cloud)]))
        return True

    def _bury(self, cloud: MemoryCloud, queue: str) -> bool:
        with self.as_actor(Actor(cloud)):
            return cloud.bury(queue, self.chance.choice(self._ports[id(cloud)]))

    def _jump(self, end: datetime) -> None:
        """Let time pass until the next thing that can happen."""
        times = [end, *self._timer_due.values()]
        times += [item[0] for item in self._later[:1]]
        times += [time for cloud in self.clouds if (time := cloud.broker.next_time()) is not None]
        self.clock.advance(max(0.0, (min(times) - self.clock()).total_seconds()) + 0.001)
        self.azure.settle()
        self.clouds[0].kubernetes.reconcile()

    def run(self) -> None:
        """Live it through: trouble first, then peace, then the last look."""
        for cloud in self.clouds:
            people, names = self.people(cloud), self.names(cloud)
            wishes = [Wish(name) for name in names[: self.chance.randint(1, 2)]]
            people.push(FleetWish({wish.name: wish for wish in wishes}, self.chance.choice((1, 1, 2))))
        passed = 0.0
        for _ in range(self.chance.randint(2, 7)):
            passed += self.chance.choice((1, 10, 30, 90, 300))
            self.later(passed, partial(act, self.people(self.chance.choice(self.clouds))))
        self.until(self.clock() + timedelta(seconds=passed + 120))
        self._peace()
        for cloud in self.clouds:
            self.checker.at_the_end(cloud)

    def _peace(self) -> None:
        """Let nothing go wrong any more, and people do what only they can, until all is quiet."""
        self.tell("no more faults")
        self.peaceful = self.trouble.over = True
        self._calm_since = self.clock()
        for _ in range(ROUNDS):
            self.help_on()
            self.until(self.clock() + timedelta(seconds=PEACE_SECONDS), done=self._quiet)
            if self._quiet() and self._settled():
                return
            for cloud in self.clouds:
                self.people(cloud).settle()
        self.until(self.clock() + timedelta(seconds=PEACE_SECONDS), done=self._quiet)

    def _quiet(self) -> bool:
        return not self._later and all(cloud.idle() for cloud in self.clouds)

    def _settled(self) -> bool:
        """Tell whether people have nothing left to do."""
        return all(self.people(cloud).content for cloud in self.clouds)


def _as_named(live: Json) -> ClusterId:
    parts = str(live["id"]).split("/")
    return ClusterId(parts[2], parts[4], parts[8])
