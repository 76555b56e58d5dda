"""One seed: some fleets, their operators and their faults, from the first commit to the last check."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from localcloud.azure.world.arm_resources import Timings
from localcloud.memory.memory_cloud import QUEUES, MemoryCloud
from shared.ports import Ports
from simulation.actors.channels import BEFORE_AN_END, Channels
from simulation.actors.kinds import (
    AZURE_EVENTS,
    CHANNELS,
    CHECKS,
    PLATFORM,
    SECOND_APP,
    SLEEPERS,
    VERSIONS,
    WITH_PULL_REQUESTS,
    rare_kinds,
)
from simulation.actors.lifetimes import Lifetimes
from simulation.actors.platform_team import PlatformTeam
from simulation.actors.second_app import SecondApp
from simulation.actors.sleepers import BEFORE_THE_CHANGE
from simulation.actors.upkeep import Surroundings
from simulation.actors.versions import VersionUpkeep
from simulation.cast import Cast
from simulation.clouds import clouds_of, hear_events, names_of
from simulation.desired_state import DesiredCluster, RequestedFleet
from simulation.event_loop import MAX_SKEW, EventLoop
from simulation.fault_injector import FaultInjector
from simulation.faults import disasters
from simulation.faults.calls import Scene
from simulation.faults.catalog import KINDS, compatible
from simulation.history import AzureHistory
from simulation.invariants.context import Context
from simulation.invariants.pins import PinInvariant
from simulation.invariants.rules import Invariants
from simulation.newer_forms import NewerQueue
from simulation.observed_ports import (
    ObservedHost,
    ObservedQueue,
    ObservedState,
    ObservedWrites,
    of_two_versions,
)
from simulation.operator_actions import act
from simulation.operators import Operators
from simulation.oracle import Oracle
from simulation.shown.shown import FleetObserver
from simulation.throttling import Throttling
from simulation.workloads import Workloads

DISASTERS = 0.3
"""The part of the operators' acts near which a disaster happens, in a seed that has them."""
BETWEEN_ACTS = 400.0
"""Seconds in which a job mostly ends."""
PEACE_SECONDS = 4 * 3600.0
LOOK_SECONDS = 1800.0
"""In which two apps of a fleet meet: longer than a job waits to try again."""
ROUNDS = 12
SKEWS = (0.0, -MAX_SKEW, MAX_SKEW)
BEGAN = {SLEEPERS: BEFORE_THE_CHANGE, CHANNELS: BEFORE_AN_END}
"""When a seed with somebody begins, the first of these; others begin at the usual time."""
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


@dataclass(frozen=True)
class Result:
    """The result of a seed: ``rule`` is "" when no rule was broken."""

    seed: int
    rule: str
    message: str
    seconds: float
    events: int
    faults: Counter[str]
    actions: Counter[str]
    trace: tuple[str, ...] = ()


def simulate(
    seed: int,
    *,
    only: frozenset[str] | None = None,
    often: frozenset[str] = frozenset(),
    verbose: bool = False,
) -> Result:
    """Run one seed to its end, or to the first rule that does not hold.

    ``only``: many faults, of these kinds alone, or none; ``often``: the actions of operators, by their names
    in the summary of a run, that are to happen often.
    """
    simulation = Simulation(seed, only=only, verbose=verbose)
    simulation.act_often(often)
    loop = simulation.loop
    rule = message = ""
    try:
        simulation.run()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        rule = str(getattr(error, "rule", "") or type(error).__name__)
        message = str(error)
        loop.log("FAILED: %s", message)
        if not hasattr(error, "rule") and verbose:
            raise
    seconds = (loop.clock() - loop.began).total_seconds()
    return Result(
        seed, rule, message, seconds, loop.events, simulation.injected, loop.acted, tuple(loop.trace)
    )


class Simulation:
    """Wires everything that one seed decides, and runs it."""

    def __init__(self, seed: int, *, only: frozenset[str] | None = None, verbose: bool = False) -> None:
        chance = random.Random(seed)  # noqa: S311
        if only is None:
            kinds = frozenset(kind for kind in KINDS if chance.random() < 0.5) | rare_kinds(seed)
            rate = chance.choice((2, 8, 20, 40))
        else:
            kinds, rate = only, 40
        kinds = compatible(kinds)
        fleets = range(2 if chance.random() < 0.15 else 1)
        versions = [of_two_versions() if VERSIONS in kinds else (ObservedState(), None) for _ in fleets]
        states = [state for state, _ in versions]
        clouds = clouds_of(
            states,
            chance,
            seed,
            with_ids=disasters.LOST in kinds,
            one_repository=PLATFORM in kinds and kinds.isdisjoint(WITH_PULL_REQUESTS),
            began=next((began for kind, began in BEGAN.items() if kind in kinds), None),
        )
        self.loop = EventLoop(chance, clouds, verbose=verbose)
        if AZURE_EVENTS in kinds:
            hear_events(clouds, seed, peaceful=lambda: self.loop.peaceful)
        oracle, history = Oracle(self.loop.azure, clouds[0].kubernetes), AzureHistory(self.loop.clock)
        workloads = Workloads(clouds[0].kubernetes, chance.choice)
        create = partial(Operators, self.loop, oracle, history, workloads)
        self._operators = {
            cloud.ports.config.fleet: create(cloud, names)
            for cloud, names in zip(clouds, names_of(len(clouds)), strict=True)
        }
        histories = {operators.cloud: operators.history for operators in self._operators.values()}
        self._context = Context(self.loop, oracle, history, histories)
        self._invariants = Invariants(self._context, workloads)
        for operators in self._operators.values():
            operators.on_takeover = self._invariants.azure_writes.taken_over
        self._shown = shown = FleetObserver(self.loop, oracle, history, histories)
        for cloud, of_versions in zip(clouds, versions, strict=True):
            for state in filter(None, of_versions):
                state.observe(self._invariants, shown, cloud)
            cloud.git_host = ObservedHost(cloud, self._invariants.promotions, self._invariants.lifetimes)
            cloud.ports = replace(cloud.ports, git_host=cloud.git_host)
        self.loop.after_event = self._after_event
        self._throttling = throttling = Throttling(self.loop)
        self.loop.on_end, self.loop.azure.limits.on_refusal = throttling.after_event, throttling.refuse
        self.loop.azure.engine.timings = TIMINGS
        self.loop.azure.engine.accepted = ObservedWrites(self._invariants)
        self.loop.on_delivery = self._invariants.messages.delivered
        self._scene = scene = Scene(
            self.loop, history, {operator.cloud: operator for operator in self._operators.values()}, kinds
        )
        first = next(iter(self._operators.values()))
        everybody, lost = [*self._operators.values()], self._context.replaced
        around = Surroundings(seed, everybody, self.loop, oracle, history, lost)
        self._cast = cast = Cast(kinds, around, dict(zip(clouds, states, strict=True)))
        if (lifetimes := cast.find(Lifetimes)) is not None:
            lifetimes.put_off = self._invariants.lifetimes.put_off
        if (channels := cast.find(Channels)) is not None:
            self._invariants.promotions.withheld.append({*self.loop.azure.withheld})
            channels.withheld = self._invariants.promotions.withheld
        injector = FaultInjector(scene, rate=rate, kinds=kinds, dense=only is not None)
        self.injected, self.loop.instance = injector.injected, injector.instance
        self.loop.workers = {cloud: self._workers(cloud, injector) for cloud in clouds}
        if (upgrades := cast.find(VersionUpkeep)) is not None:
            formers = {cloud: former for cloud, (_, former) in zip(clouds, versions, strict=True)}
            former = {cloud: self._workers(cloud, injector, formers[cloud]) for cloud in clouds}
            upgrades.install(former, self.loop.workers)
        if SECOND_APP in kinds and len(clouds) == 1:
            start = partial(self._start, injector)
            cast.second = SecondApp(seed, first, lambda cloud: create(cloud, first.names), start)
        self._pins = PinInvariant(self._context)
        if CHECKS not in kinds:  # people delete what Flux has, with all that it has applied
            self._pins.operators = scene.operators
        self.loop.log("seed %d: %d faults in 1000 calls of %s", seed, rate, ", ".join(sorted(kinds)))

    def _after_event(self) -> None:
        self._shown.after_event()
        self._invariants.azure_writes.contests.after_event()
        self._invariants.rollbacks.after_event()
        self._pins.after_event()

    def _start(self, injector: FaultInjector, operators: Operators) -> None:
        """Let a second app of the fleet run, which hears the same events of Azure."""
        if AZURE_EVENTS in self._scene.kinds:
            operators.cloud.hear_events()
        self._scene.operators[operators.cloud] = operators
        self._invariants.azure_writes.contests.met(operators.cloud, operators.history)
        operators.on_takeover = self._invariants.azure_writes.taken_over
        self.loop.start(operators.cloud, self._workers(operators.cloud, injector))

    def _workers(
        self, cloud: MemoryCloud, injector: FaultInjector, former: ObservedState | None = None
    ) -> list[Ports]:
        """Return the ports of some workers, whose clocks differ; of the former version where two run."""

        def skewed(seconds: float) -> Callable[[], datetime]:
            clock, skew = self.loop.clock, timedelta(seconds=seconds)
            return lambda: clock() + skew

        observed: dict[str, Any] = {
            name: ObservedQueue(getattr(cloud.ports, name), cloud, name, self.loop, self._invariants)
            for name in QUEUES
        }
        if VERSIONS in self._scene.kinds and former is None:
            observed = {name: NewerQueue(queue) for name, queue in observed.items()}
        state = former or cloud.ports.state
        ports = injector.around(replace(cloud.ports, state=state, **observed), cloud)
        return [replace(ports, clock=skewed(seconds)) for seconds in SKEWS]

    def act_often(self, actions: frozenset[str]) -> None:
        """Let operators carry out these actions more often than others."""
        for operators in self._operators.values():
            operators.often = actions

    def run(self) -> None:
        """Run it: first with faults, then in peace, then the last check."""
        loop, chance = self.loop, self.loop.chance
        for operators in self._operators.values():
            clusters = [DesiredCluster(name) for name in operators.names[: chance.randint(1, 2)]]
            budget = chance.choice((1, 1, 2))
            wanted = RequestedFleet({cluster.name: cluster for cluster in clusters}, budget)
            wanted = replace(wanted, notified=self._cast.routes is not None)
            for actor in self._cast.upkeep.values():
                wanted = actor.prepared(operators, wanted)
            rollouts = self._cast.rollouts
            operators.push(rollouts.staged(operators, wanted) if rollouts else wanted)
        passed = 0.0
        for _ in range(chance.randint(2, 7)):
            passed += chance.choice((1, 10, 30, 90, 300))
            loop.schedule(passed, partial(act, chance.choice([*self._operators.values()])))
            passed = self._schedule_disaster(passed)
        self._cast.schedule(passed)
        loop.run_until(loop.clock() + timedelta(seconds=passed + 120))
        self._run_in_peace()
        if self._cast.routes is not None:
            self._cast.routes.check()
        contests = self._invariants.azure_writes.contests
        for cloud in loop.clouds:
            (contests.converged if cloud is contests.rival else self._invariants.the_end.check)(cloud)
            self._pins.ended(cloud)
        self.injected.update(self._cast.acts())
        if self._cast.contributors is not None:
            self._invariants.pull_requests.ended(loop.clouds[0], self._cast.contributors)

    def _schedule_disaster(self, seconds: float) -> float:
        """Let a fleet lose its tables, or get older ones, in some seeds; return when that is over.

        Before, operators remove a cluster and add it again: older tables then know its former life.
        """
        chance, kinds = self.loop.chance, sorted(self._scene.kinds & disasters.FAULTS.keys())
        if not kinds or chance.random() > DISASTERS:
            return seconds
        kind, operators = chance.choice(kinds), chance.choice([*self._operators.values()])
        name = chance.choice(operators.names)
        again = DesiredCluster(name, protected=chance.random() < 0.5)
        acts: list[Callable[[], None]] = [
            lambda: operators.push(operators.now.with_cluster(DesiredCluster(name))),
            lambda: operators.push(operators.now.without(name)),
            lambda: operators.push(operators.now.with_cluster(again)),
            lambda: operators.push(operators.now.without(name)) if chance.random() < 0.5 else None,
        ]
        for act_of_operators in acts:
            self.loop.schedule(seconds, act_of_operators)
            seconds += BETWEEN_ACTS

        def strike() -> None:
            rebuilds = self._invariants.azure_writes.rebuilds
            loss = rebuilds.at_stake(operators.cloud)
            if disasters.strike(kind, operators, self._scene):
                operators.cloud.ports.process.compared.tables_at = None  # its instances start again
                if kind == disasters.LOST:
                    rebuilds.lost(operators.cloud, loss)
                else:
                    rebuilds.restored(operators.cloud)
                    self._context.tables_restored(operators.cloud)
                self.injected[kind] += 1
                self._throttling.forget(operators.fleet)
                self._shown.tables_replaced(operators.cloud)
                self._context.tables_replaced(operators.cloud)

        self.loop.schedule(seconds, strike)
        return seconds

    def _remaining(self, second: SecondApp) -> Operators:
        """Let both apps look, check what they report, and stop one of them; return who takes over."""
        winner, loser = second.both()
        winner.unblock()
        self.loop.run_until(self.loop.clock() + timedelta(seconds=LOOK_SECONDS))
        self._invariants.azure_writes.contests.reported(*self.loop.clouds)
        self.loop.log("%s: operators stop the app on %s", loser.fleet, loser.cloud.ports.config.branch)
        self.loop.stop(loser.cloud)
        self.injected[SECOND_APP] += 1
        winner.take_over()
        return winner

    def _run_in_peace(self) -> None:
        """End the faults, and let operators do what only they can, until nothing is left to do."""
        loop, everybody, rollouts = self.loop, [*self._operators.values()], self._cast.rollouts
        loop.end_faults()
        self._cast.calm()
        if self._cast.second is not None and self._cast.second.both():
            everybody = [self._remaining(self._cast.second)]
        team, ends = self._cast.find(PlatformTeam), list[Callable[[], None]]()
        ends += [team.try_more] if team is not None and rollouts is not None else []
        ends += [team.burst] if team is not None else []
        ends += [rollouts.check] if rollouts is not None else []
        for attempt in range(ROUNDS):
            everybody[0].unblock()
            # Not at the same minute of each hour: a cluster may sleep then, and an approval expires.
            pause = timedelta(seconds=PEACE_SECONDS, minutes=35 * (attempt // 4))
            loop.run_until(loop.clock() + pause, done=lambda: loop.idle)
            for actor in self._cast.upkeep.values() if attempt == 0 else ():
                actor.check()
            content = rollouts is None or rollouts.content
            if loop.idle and content and all(operators.content for operators in everybody):
                if not ends:
                    return
                ends.pop(0)()
                continue
            for operators in everybody:
                operators.resolve()
            if rollouts is not None:
                rollouts.resolve()
        loop.run_until(loop.clock() + timedelta(seconds=PEACE_SECONDS), done=lambda: loop.idle)
