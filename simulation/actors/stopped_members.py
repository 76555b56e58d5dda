"""People who stop clusters by hand that a rollout is to change, and start them again later.

A sweep finds the cluster, and a commit changes all of them. When the faults have ended, the same happens once
more, and then the others must have the change although that cluster is stopped, the rollout must not have
ended, and the cluster must get the change once it runs, without another commit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from localcloud.azure.world.arm_errors import ArmError
from localcloud.azure.world.arm_keys import key_of
from shared.app.outbox import request_whole_sweep
from shared.cluster.failures.errors import ClusterStopped
from shared.cluster.record import ClusterRecord
from shared.rollouts.rollout import RolloutState
from simulation.actors.once_more import OnceMore
from simulation.event_loop import EventLoop
from simulation.operators import Operators, cluster_id
from simulation.rule import RuleViolated
from simulation.staging import stage_of

SHARE = 0.5
"""In how many of the seeds with rollouts they act."""
ACTS = (1, 3)
UNTIL_SWEEP, UNTIL_PUSH, UNTIL_START = (1.0, 60.0), (60.0, 240.0), (300.0, 900.0)


class StoppedMembers(OnceMore):
    """They act on all fleets, with a random stream of their own; ``acts`` counts the stops."""

    def __init__(
        self, seed: int, everybody: Sequence[Operators], loop: EventLoop, replaced: Mapping[str, int]
    ) -> None:
        super().__init__(f"{seed} stopped clusters of rollouts", SHARE, everybody, loop, replaced)

    def schedule(self, seconds: float) -> None:
        """Let them stop clusters at some moments of so many seconds."""
        for _ in range(self._chance.randint(*ACTS) if self._acting else 0):
            self._loop.schedule(self._chance.uniform(0, seconds), self._act)

    def _act(self) -> None:
        """Stop a cluster, change all of them once a sweep has found that, and start the cluster again."""
        operators = self._chance.choice(self._everybody)
        found = self._stop_one(operators)
        if found is None:
            return
        begins = self._chance.uniform(*UNTIL_SWEEP)
        self._loop.schedule(begins, lambda: self._sweep(operators))
        self._loop.schedule(begins + self._chance.uniform(*UNTIL_PUSH), lambda: self._push(operators))
        later = begins + self._chance.uniform(*UNTIL_START)
        self._loop.schedule(later, lambda: self._start(operators, found.name))
        self._loop.schedule(later + self._chance.uniform(*UNTIL_SWEEP), lambda: self._sweep(operators))

    def _stop_one(self, operators: Operators) -> ClusterRecord | None:
        """Stop a cluster that is Ready as git asks, None for none."""
        ready = [
            record for record in operators.cloud.state.clusters() if self._is_as_asked(operators, record)
        ]
        if not ready or operators.now.invalid or self._loop.peaceful:
            return None
        record = self._chance.choice(ready)
        self.acts += 1
        operators.stop(key_of(record.desired.id))
        return record

    def _push(self, operators: Operators) -> None:
        if not self._loop.peaceful:
            self._change_all(operators)

    def _change_all(self, operators: Operators) -> None:
        desired, tag = operators.now, f"s{self._chance.randrange(1000)}"
        for cluster in desired.clusters.values():
            desired = desired.with_cluster(replace(cluster, tag=tag))
        operators.push(replace(desired, trailer=""))

    def _start(self, operators: Operators, name: str) -> None:
        with suppress(ArmError):  # somebody else has deleted it, or an operation runs there
            operators.azure_history.disturb(cluster_id(name))
            self._loop.azure.interventions.start(cluster_id(name))
            self._loop.log("%s: an operator starts %s again", operators.fleet, name)

    def _sweep(self, operators: Operators) -> None:
        self._loop.run_function(operators.cloud, request_whole_sweep)

    # When the faults have ended

    def check(self, resolve: Callable[[], None]) -> None:
        """Do the same once more in one fleet, and raise RuleViolated; ``resolve`` decides what waits."""
        operators = self._chance.choice(self._everybody)
        records = [*operators.cloud.state.clusters()]
        settled = all(self._is_as_asked(operators, record) for record in records)
        if not self._acting or self._replaced[operators.fleet] or not settled or len(records) < 2:
            return
        if replace(operators.now, trailer="").in_force is None:  # no stages: each cluster gets a job at once
            return
        stopped = self._chance.choice(records)
        operators.stop(key_of(stopped.desired.id))
        self._sweep(operators)
        self._idle()
        found = operators.cloud.state.cluster(stopped.name)
        if found is None or found.finding != ClusterStopped.__name__:
            return
        self.acts += 1
        self._change_all(operators)
        self._let_go_on(
            resolve,
            lambda: self._waiting(operators, records) <= {stopped.name, *_needing(operators, stopped.name)},
        )
        waiting = self._waiting(operators, records)
        if self._has_failed(operators, stopped.name):
            return
        if waiting - {stopped.name, *_needing(operators, stopped.name)}:
            what = f"{', '.join(sorted(waiting))} wait, and {stopped.name} is stopped"
            raise RuleViolated("rollout aside", f"{operators.fleet}: {what}")
        rollout = operators.cloud.state.rollout(operators.history.head_line[-1])
        if not waiting or rollout is None or rollout.state is not RolloutState.ACTIVE:
            what = f"the rollout is over, and {stopped.name} is stopped and has not got its change"
            raise RuleViolated("rollout aside", f"{operators.fleet}: {what}")
        self._start(operators, stopped.name)
        self._sweep(operators)
        self._let_go_on(resolve, lambda: not self._waiting(operators, records))
        if self._waiting(operators, records) and not self._has_failed(operators):
            what = f"{stopped.name} runs again, and does not get what it has missed"
            raise RuleViolated("rollout aside", f"{operators.fleet}: {what}")


def _needing(operators: Operators, stopped: str) -> set[str]:
    """Return the clusters of the newest rollout that may wait for a stopped one, which its group needs.

    A stage without any other cluster shows nothing, and needs it too.
    """
    commit = operators.history.head_line[-1]
    rollout, staging = operators.cloud.state.rollout(commit), operators.history.desired(commit).in_force
    members = rollout.members if rollout else ()
    place = next(((member.stage, member.group) for member in members if member.cluster == stopped), None)
    if rollout is None or place is None or rollout.stages[place[0]].back:
        return set()
    size = sum((member.stage, member.group) == place for member in rollout.members)
    rule = stage_of(staging, stopped).groups[place[1]]
    alone = not rule.success and all(
        member.at_once or member.stage != place[0] or member.cluster == stopped for member in rollout.members
    )
    if rule.needs(size) < size and not alone:
        return set()
    return {member.cluster for member in rollout.members if (member.stage, member.group) > place}
