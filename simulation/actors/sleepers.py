"""Clusters that sleep for half of each hour, whole or in pools, and what people, changes and Azure do to it.

A schedule is stated here once more, in minutes: no decision is shared with the code under test. In half of
the seeds it has the time of Lord Howe Island, whose clocks go back by 30 minutes in the middle: what slept in
the first half of an hour sleeps in the second one from then on. Everything is quiet otherwise: the faults
have ended. While they last, a commit lets clusters sleep, and another ends that.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

from localcloud.azure.world.arm_errors import ArmError
from localcloud.azure.world.interventions import SOMEBODY
from shared.app.api.acts.times import OrderKind, order_sleep
from shared.app.outbox import request_whole_sweep
from shared.azure.changes.writes import is_stopped, pool_is_stopped
from shared.cluster.failures.errors import ClusterStopped
from shared.cluster.record_parts import Phase
from shared.json_tree import Json
from simulation.actors.kinds import SLEEPERS
from simulation.actors.upkeep import ActorUpkeep, Surroundings
from simulation.desired_state import Pool
from simulation.operators import Operators, cluster_id
from simulation.rule import RuleViolated

RULE, NEVER = "asleep", "sleepless"
HALF = timedelta(minutes=30)
TAKES = timedelta(minutes=12)
"""A timer finds what is overdue within five minutes; then Azure is asked a few times."""
BY_HAND = timedelta(minutes=3)
"""So long Azure takes at most for what somebody does to a pool in the portal; its event comes after that."""
AFTER_A_FAULT = timedelta(minutes=28)
"""Capacity is asked for again after 5 to 10 minutes, and a start waits for 15 after a stop."""
HOURS = 3
LORD_HOWE, CHANGE = "Australia/Lord_Howe", datetime(2026, 4, 4, 15, tzinfo=UTC)
"""A zone whose clocks change by half an hour, and when: tzdata, "Rule LH"."""
BEFORE_THE_CHANGE = datetime(2026, 4, 4, tzinfo=UTC)
UNCLEAR = HALF
"""So long after that a minute of the clock comes for the second time, and no schedule counts it again."""
STEP = timedelta(minutes=1)
ACTS, OF_POOLS = (2, 5), 0.9
EARLY = timedelta(minutes=10)
"""So soon after its start somebody stops a pool: where nobody starts it again, it is missed for long."""


@dataclass(frozen=True)
class HalfHours:
    """A schedule: the cluster stops at a minute of each hour of a zone, and starts half an hour later.

    ``scope``: the whole cluster, or its User pools; one that has none sleeps as a whole.
    """

    stop: int
    changes: str
    scope: str
    zone: str

    @property
    def text(self) -> str:
        """The schedule as YAML."""
        start = (self.stop + 30) % 60
        times = f'stop: "{self.stop} * * * *", start: "{start} * * * *", timeZone: {self.zone}'
        return f"{{schedules: [{{{times}}}], changes: {self.changes}, scope: {self.scope}}}"

    def since(self, now: datetime) -> tuple[bool, timedelta]:
        """Return whether the cluster is to be awake, and for how long that has been so."""
        local = now.astimezone(ZoneInfo(self.zone))
        passed = (timedelta(minutes=local.minute - self.stop, seconds=local.second)) % (2 * HALF)
        return passed >= HALF, passed % HALF


class Sleepers(ActorUpkeep):
    """They act on one fleet after the other; ``acts`` counts what met a cluster that sleeps."""

    kind = SLEEPERS

    def __init__(self, around: Surroundings) -> None:
        super().__init__(around)
        self._schedules = dict[str, HalfHours]()
        self._disturbed = dict[str, datetime]()
        self._stopped = dict[str, datetime]()
        self._zone = "UTC"

    def schedule(self, seconds: float) -> None:
        """Let the clusters of a fleet sleep at some moment of so many seconds, and none any more later."""
        operators = self._chance.choice(self._everybody)
        begins = self._chance.uniform(0, seconds)
        self._loop.schedule(begins, partial(self._push, operators, self._drawn))
        self._loop.schedule(begins + self._chance.uniform(60, 3000), partial(self._push, operators))

    def check(self) -> None:
        """Let the clusters of a fleet sleep for hours; raise RuleViolated for one that sleeps too long."""
        operators = self._chance.choice(self._everybody)
        self._with_user_pools(operators)
        self._zone = self._chance.choice(("UTC", LORD_HOWE))
        until = CHANGE - timedelta(minutes=self._chance.randint(70, 150))
        if self._zone == LORD_HOWE and self._loop.clock() < until:
            self._loop.run_until(until)
        self._push(operators, self._drawn)
        ends = self._loop.clock() + timedelta(hours=HOURS)
        self._loop.run_until(self._loop.clock() + 2 * HALF)
        for _ in range(self._chance.randint(*ACTS)):
            at = self._chance.uniform(0, 3600.0 * HOURS)
            self._loop.schedule(at, partial(self._meet, operators))
        while self._loop.clock() < ends:
            self._loop.run_until(self._loop.clock() + STEP)
            for record in operators.cloud.state.clusters():
                self._look(operators, record.name)
        self._push(operators)
        self._loop.run_until(self._loop.clock() + TAKES)
        for name in self._stopped:
            self._switch_pools(name, "Running")  # what no schedule starts any more, a person does

    def _drawn(self) -> HalfHours:
        choose = self._chance.choice
        return HalfHours(
            self._chance.randrange(60), choose(("wait", "wake")), choose(("cluster", "pools")), self._zone
        )

    def _with_user_pools(self, operators: Operators) -> None:
        """Give each cluster a User pool: without one it sleeps as a whole, whatever its scope."""
        desired = operators.now
        for cluster in operators.now.clusters.values():
            if all(pool.mode != "User" for pool in cluster.pools):
                desired = desired.with_cluster(cluster.with_pool(Pool("web")))
        if desired != operators.now:
            operators.push(replace(desired, trailer=""))

    def _push(self, operators: Operators, drawn: Callable[[], HalfHours | None] = lambda: None) -> None:
        """Give each cluster a schedule, or none."""
        desired, self._schedules = operators.now, {}
        for name, cluster in desired.clusters.items():
            schedule = drawn()
            desired = desired.with_cluster(replace(cluster, sleeps=schedule.text if schedule else ""))
            if schedule is not None:
                self._schedules[name] = schedule
        if desired != operators.now:
            operators.push(replace(desired, trailer=""))

    def _meet(self, operators: Operators) -> None:
        """Stop or start a cluster by hand, take its capacity, change it, or order it awake."""
        names = [name for name in self._schedules if operators.cloud.state.cluster(name)]
        if not names:
            return
        name, self.acts = self._chance.choice(names), self.acts + 1
        act = self._chance.choice((self._stop, self._start, self._lack, self._change, self._wake))
        self._loop.log("%s: %s meets %s", operators.fleet, act.__name__.strip("_"), name)
        lasts = BY_HAND + TAKES if act == self._stop else 2 * HALF + AFTER_A_FAULT
        self._disturb(name, lasts)
        act(operators, name)

    def _stop(self, operators: Operators, name: str) -> None:
        """Stop a cluster now, or its pools soon after they have started the next time."""
        if self._chance.random() < OF_POOLS and self._in_pools(operators, name):
            awake, since = self._schedules[name].since(self._loop.clock())
            starts = (2 * HALF if awake else HALF) - since
            at = starts + self._chance.random() * EARLY
            self._loop.schedule(at.total_seconds(), partial(self._stop_pools, operators, name))
        else:
            self._stopped[name] = self._loop.clock()
            operators.stop(cluster_id(name))
            self._tell(operators)

    def _stop_pools(self, operators: Operators, name: str) -> None:
        if name in self._schedules and self._in_pools(operators, name):
            self._stopped[name] = self._loop.clock()
            self._disturb(name, BY_HAND + TAKES)
            self._switch_pools(name, "Stopped")
            self._tell(operators)

    def _disturb(self, name: str, lasts: timedelta) -> None:
        until = self._loop.clock() + lasts
        self._disturbed[name] = max(self._disturbed.get(name, until), until)

    def _start(self, operators: Operators, name: str) -> None:
        with suppress(ArmError):
            self._loop.azure.interventions.start(cluster_id(name))
        self._switch_pools(name, "Running")
        self._tell(operators)

    def _tell(self, operators: Operators) -> None:
        """Let the app compare, now and when Azure has done it, as events of Azure make it do."""
        compare = partial(self._loop.run_function, operators.cloud, request_whole_sweep)
        compare()
        self._loop.schedule(BY_HAND.total_seconds(), compare)

    def _switch_pools(self, name: str, code: str) -> None:
        """Stop or start a User pool in the portal, if Azure allows it now: it takes one after the other."""
        for pool in _user_pools(self._oracle.live(cluster_id(name)) or {}):
            with suppress(ArmError), self._loop.azure.called_by(SOMEBODY):
                body = {"properties": {"powerState": {"code": code}}}
                self._loop.azure.put_pool(cluster_id(name), pool["name"], body)

    def _in_pools(self, operators: Operators, name: str) -> bool:
        """Return whether the pools of a cluster sleep, by the manifest that was accepted last."""
        record = operators.cloud.state.cluster(name)
        return record is not None and (record.document["spec"].get("sleep") or {}).get("scope") == "pools"

    def _lack(self, _: Operators, name: str) -> None:
        self._loop.azure.interventions.fail_next(name, "AllocationFailed")

    def _change(self, operators: Operators, name: str) -> None:
        cluster = replace(operators.now.clusters[name], tag=f"z{self._chance.randrange(1000)}")
        operators.push(replace(operators.now.with_cluster(cluster), trailer=""))

    def _wake(self, operators: Operators, name: str) -> None:
        until = self._loop.clock() + HALF
        kind = self._chance.choice((OrderKind.WAKE, OrderKind.POSTPONE))
        self._loop.run_function(
            operators.cloud, lambda ports: order_sleep(kind, name, until, "ann", ports, "a test")
        )

    def _look(self, operators: Operators, name: str) -> None:
        """Raise RuleViolated where a cluster sleeps and should be awake, or is Ready and should sleep.

        One that is observed, as it differs from git, is nobody's to start before it has the tags.
        """
        schedule, record = self._schedules.get(name), operators.cloud.state.cluster(name)
        live = self._oracle.live(cluster_id(name))
        if schedule is None or record is None or live is None or not self._is_accepted(operators, name):
            return
        if self._oracle.has_no_fleet(cluster_id(name)):
            return
        now = self._loop.clock()
        if schedule.zone == LORD_HOWE and CHANGE <= now < CHANGE + UNCLEAR:
            return
        disturbed = now < self._disturbed.get(name, self._loop.began)
        awake, since = schedule.since(now)
        asleep = min(since, now - self._stopped.get(name, self._loop.began))
        stopped = is_stopped(live) or (
            self._in_pools(operators, name) and any(map(pool_is_stopped, _user_pools(live)))
        )
        if awake and stopped and asleep > (AFTER_A_FAULT if disturbed else TAKES):
            what = f"{name} sleeps since {asleep} although it is to be awake: {record.job.reason}"
            raise RuleViolated(RULE, f"{operators.fleet}: {what}")
        at_rest = record.phase is Phase.READY and not record.job.active
        if not awake and at_rest and not disturbed and since > TAKES:
            raise RuleViolated(
                NEVER, f"{operators.fleet}: {name} is Ready since {since} although it is to sleep"
            )

    def _is_accepted(self, operators: Operators, name: str) -> bool:
        """Return whether the record has the schedule, and no other reason to stand still."""
        record, asked = operators.cloud.state.cluster(name), operators.now.clusters.get(name)
        if record is None or asked is None or asked.invalid or asked.suspended or record.deleting:
            return False
        failed = record.failed and record.finding != ClusterStopped.__name__
        stuck = failed or record.phase in (Phase.SUSPENDED, Phase.STALLED) or record.contested
        written = (record.document["spec"].get("sleep") or {}).get("schedules") or [{}]
        return not stuck and written[0].get("stop") == f"{self._schedules[name].stop} * * * *"


def _user_pools(live: Json) -> list[Json]:
    pools = (live.get("properties") or {}).get("agentPoolProfiles") or ()
    return [pool for pool in pools if pool["mode"] == "User"]
