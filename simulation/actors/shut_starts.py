"""People who start what a freeze, or the time outside a window, is to keep from starting.

Shortly before a stage is shut, a job of it fails. While it is shut they replay its failed jobs, push a commit
that tries them again, and change by hand what a sweep corrects. No job may start for that before it is open.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from localcloud.azure.world.arm_errors import ArmError
from localcloud.azure.world.arm_keys import key_of
from shared.app.outbox import request_whole_sweep
from shared.cluster.failures.retry import with_limits
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.ports import Ports
from simulation.desired_state import CORRECTED
from simulation.event_loop import ActingFunction, EventLoop
from simulation.operators import Operators
from simulation.oracle import is_going
from simulation.staging import StagedStage, Staging, stage_of

LOOK = 60.0
"""How many seconds lie between the times at which they check what has failed and what they could change."""
PAST = 20.0
"""How long after a whole minute, at which stages are shut, so that no clock says that one is still open."""
ACTS = 0.5
"""How often they act on what they see."""
COMMITS = 0.4
"""How many failed jobs they try again by a commit, and not by a replay."""
BEFORE = (60.0, 240.0)
"""How long before a stage is shut they change one of its clusters, which Azure does not carry out."""
AT_LEAST = 900.0
"""So many seconds they act, also where the others end earlier: some stages are shut only then."""
BREAKS = 0.8
PASSING: tuple[str, ...] = ("InternalOperationError",)
CODES: tuple[str, ...] = ("InvalidParameter", *PASSING)
SOON_FAILED, LIMITS, OFTEN, TIMES = 0.5, "Interrupted=1", 0.8, 3
"""In how many seeds jobs fail at once for what may pass: only such a job does a commit start again."""
UNTIL_SWEEP = (30.0, 300.0)
MOST_NODES = 4


class ShutStarts:
    """They look at all fleets, with a random stream of their own; ``acts`` counts what they did."""

    def __init__(
        self, seed: int, everybody: Sequence[Operators], stagings: Mapping[str, Staging], loop: EventLoop
    ) -> None:
        self._chance = random.Random(f"{seed} starts in stages that are shut")  # noqa: S311
        self._everybody, self._stagings, self._loop = everybody, stagings, loop
        self.acts, self._codes, self._commits, self._times = 0, CODES, COMMITS, 1
        if random.Random(f"{seed} jobs that fail soon").random() < SOON_FAILED:  # noqa: S311
            self._codes, self._commits, self._times = PASSING, OFTEN, TIMES
            for operators in everybody:
                operators.cloud.with_ports(_with_limits)

    def schedule(self, seconds: float) -> None:
        """Let them look every minute of so many seconds, and have a job fail before a stage is shut.

        It is no fault that the end of faults would have to end: operators replay the job then.
        """
        seconds = max(seconds, AT_LEAST)
        for number in range(1, int(seconds // LOOK) + 1):
            self._loop.schedule(number * LOOK + PAST, self._look)
        for operators in self._everybody:
            for stage in self._stagings[operators.fleet] or ():
                if stage.shut is None or self._chance.random() > BREAKS:
                    continue
                shut_in = (stage.shut.starts - self._loop.clock()).total_seconds()
                for _ in range(self._times):
                    at = shut_in - self._chance.uniform(*BEFORE)
                    if 0 < at < seconds:
                        self._loop.schedule(at, partial(self._break, operators, stage))

    def _break(self, operators: Operators, stage: StagedStage) -> None:
        """Change a cluster of a stage; the next operation on it fails in Azure."""
        wanted = [cluster for name, cluster in operators.now.clusters.items() if name in stage.clusters]
        if not wanted or operators.now.invalid:
            return
        cluster = self._chance.choice(wanted)
        self.acts += 1
        self._loop.log("%s: the next operation on %s will fail", operators.fleet, cluster.name)
        self._loop.azure.interventions.fail_next(cluster.name, self._chance.choice(self._codes), "it failed")
        pool = cluster.pools[0]
        scaled = cluster.with_pool(replace(pool, count=pool.count % MOST_NODES + 1))
        operators.push(operators.now.with_cluster(scaled))

    def _look(self) -> None:
        for operators in self._everybody:
            shut = list(self._in_shut_stages(operators))
            if not shut or self._chance.random() > ACTS:
                continue
            if any(record.failed for record in shut):
                self._try_again(operators)
            ready = [record for record in shut if record.phase is Phase.READY and record.name in CORRECTED]
            if ready:
                self._change_by_hand(operators, self._chance.choice(ready))

    def _in_shut_stages(self, operators: Operators) -> Iterable[ClusterRecord]:
        now = self._loop.clock()
        for record in operators.cloud.state.clusters():
            shut = stage_of(operators.now.in_force, record.name).shut
            if shut is not None and shut.covers(now, now):
                yield record

    def _try_again(self, operators: Operators) -> None:
        self.acts += 1
        if self._chance.random() < self._commits:
            operators.push(replace(operators.now, note=operators.now.note + 1))
        else:
            operators.replay()

    def _change_by_hand(self, operators: Operators, record: ClusterRecord) -> None:
        """Scale a node pool of a cluster whose policy corrects that, and let a sweep find it."""
        cluster = key_of(record.desired.id)
        live = operators.oracle.live(cluster)
        if live is None or is_going(live) or live["tags"].get("roadstead-fleet") != operators.fleet:
            return
        self.acts += 1
        self._loop.log("%s: somebody scales %s by hand in a stage that is shut", operators.fleet, record.name)
        operators.azure_history.disturb(cluster)
        pool = live["properties"]["agentPoolProfiles"][0]
        with suppress(ArmError), self._loop.as_actor(ActingFunction(self._loop.clock())):
            self._loop.azure.interventions.scale(cluster, pool["name"], pool["count"] % MOST_NODES + 1)
        self._loop.schedule(self._chance.uniform(*UNTIL_SWEEP), lambda: self._sweep(operators))

    def _sweep(self, operators: Operators) -> None:
        self._loop.run_function(operators.cloud, request_whole_sweep)


def _with_limits(ports: Ports) -> Ports:
    return replace(
        ports, config=replace(ports.config, timing=replace(ports.config.timing, retries=with_limits(LIMITS)))
    )
