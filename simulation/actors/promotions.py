"""People who promote what is proven in one environment to another, and rules that do so after a soak.

The fleets have two environments, which give their clusters the file of their Flux components. People change
it in the first one, give it to the second one or take it back, promote by hand, and merge, close and reopen
the pull requests. When the faults have ended, a rule must propose what is new, then what is newer, and
nothing that was taken back; without a rule, somebody promotes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import yaml

from localcloud.git.world.pull_requests import PullRecord
from shared.app.api.acts.pulls import promote
from shared.app.intake.accept import accept
from shared.app.intake.webhook import PullChange
from shared.app.outbox import request_whole_sweep
from shared.cluster.failures.errors import Conflict
from shared.cluster.record_parts import Phase
from shared.json_tree import Json
from shared.ports import Ports
from simulation.actors.kinds import PROMOTIONS
from simulation.actors.upkeep import EnvironmentActor, Surroundings
from simulation.desired_files import files_of
from simulation.desired_state import RequestedFleet, SharedEnvironment
from simulation.event_loop import EventLoop
from simulation.operators import Operators
from simulation.rule import RuleViolated

RULE = "promotion"
ACCEPTED = 202
FIRST, LAST = "test", "prod"
RULED, SOAKS = 0.8, (0, 30, 120, 600)
"""How many fleets have a rule, and after how many seconds it proposes."""
LOST = 0.3
"""How many webhooks of pull requests that somebody closes or reopens are lost."""
QUIET = timedelta(hours=4)


class PromotionActor(EnvironmentActor):
    """They act on all fleets; ``replaced`` counts how often the tables of a fleet were lost."""

    kind = PROMOTIONS

    def __init__(self, around: Surroundings) -> None:
        super().__init__(around)
        self._values = 0

    def prepared(self, operators: Operators, wanted: RequestedFleet) -> RequestedFleet:
        """Return a fleet with its environments, and the rule, if it has one."""
        middle = len(operators.names) // 2
        first, last = operators.names[:middle], operators.names[middle:]
        soak = self._chance.choice(SOAKS) if self._chance.random() < RULED else None
        return replace(
            wanted, environments=(SharedEnvironment(FIRST, first), SharedEnvironment(LAST, last)), soak=soak
        )

    def schedule(self, seconds: float) -> None:
        """Let them act at some moments of so many seconds."""
        acts = (*(self._prove,) * 3, self._give, self._take_back, *(self._promote,) * 2, *(self._decide,) * 4)
        self.schedule_acts(acts, seconds)

    def _new_value(self) -> str:
        self._values += 1
        return f"flux/c{self._values}.yaml"

    def _prove(self, operators: Operators) -> None:
        """Give the first environment something new, or what the second one has."""
        now = operators.now
        value = self._new_value() if self._chance.random() < 0.7 else now.environment(LAST).components
        operators.push(now.with_components(FIRST, value))

    def _give(self, operators: Operators) -> None:
        """Give the second environment what the first one has, by a commit."""
        now = operators.now
        operators.push(now.with_components(LAST, now.environment(FIRST).components))

    def _take_back(self, operators: Operators) -> None:
        """Give the second environment what it had before."""
        history = operators.history
        now = operators.now.environment(LAST).components
        former = [history.desired(commit) for commit in reversed(history.head_line)]
        had = [desired.environment(LAST).components for desired in former if desired.environments]
        before = next((value for value in had if value != now), None)
        if before is not None:
            operators.push(operators.now.with_components(LAST, before))

    def _promote(self, operators: Operators) -> None:
        """Promote by hand; what is answered is what the pull request will have."""
        self._loop.log("%s: somebody promotes", operators.fleet)

        def act(ports: Ports) -> None:
            answer = promote(FIRST, LAST, ("components",), "somebody", ports)
            self._loop.log("    %s", answer.body)
            if answer.status != ACCEPTED:
                return
            values: Any = answer.body["values"]
            for document in values:
                operators.history.promoted[document["value"]] = self._loop.clock()
                operators.history.declined.pop((LAST, document["value"]), None)

        self._loop.run_function(operators.cloud, act)

    def _decide(self, operators: Operators) -> None:
        """Merge or close the pull request, or reopen one that somebody closed."""
        opened = self._pulls(operators, "open")
        if not opened:
            closed = [
                pull_request for pull_request in self._pulls(operators, "closed") if not pull_request.merged
            ]
            if closed and self._chance.random() < 0.3:
                self._reopen(operators, closed[0])
            return
        if self._chance.random() < 0.6:
            self._merge(operators, opened[0])
        else:
            self._close(operators, opened[0])

    def _pulls(self, operators: Operators, state: str) -> list[PullRecord]:
        """Return the pull requests of promotions in a state, the newest first."""
        branch = f"roadstead/promote/{operators.fleet}/{LAST}"
        return [e for e in operators.cloud.repository.pulls.listed(state=state) if e.head == branch]

    def _value(self, operators: Operators, pull: PullRecord) -> str:
        """Return what a pull request proposes, and check that it changes nothing else."""
        files = operators.cloud.repository.files(pull.sha)
        found = yaml.safe_load(files[f"environments/{LAST}.yaml"])
        value = str(found["spec"]["defaults"]["flux"]["components"])
        wanted = files_of(operators.now.with_components(LAST, value), operators.fleet)
        if found != yaml.safe_load(wanted[f"environments/{LAST}.yaml"]):
            raise RuleViolated(RULE, f"pull request {pull.number} changes more than {value}")
        return value

    def _merge(self, operators: Operators, pull: PullRecord) -> None:
        """Merge a pull request, unless git has no file any more of what it proposes: its check has failed."""
        value, now = self._value(operators, pull), operators.now
        if not any(environment.components == value for environment in now.environments):
            return
        desired = now.with_components(LAST, value)
        try:
            merged = operators.cloud.repository.pulls.merged_into_base(pull.number, squash=True)
        except Conflict:
            return
        self._loop.log("%s: somebody merges pull request %d", operators.fleet, pull.number)
        operators.merged(merged.merge_commit, desired)
        self._announce(operators, pull, "closed")

    def _close(self, operators: Operators, pull: PullRecord) -> None:
        self._loop.log("%s: somebody declines pull request %d", operators.fleet, pull.number)
        value = self._value(operators, pull)
        operators.cloud.repository.pulls.change(pull.number, state="closed")
        operators.history.declined[LAST, value] = self._loop.clock()
        self._announce(operators, pull, "closed")

    def _reopen(self, operators: Operators, pull: PullRecord) -> None:
        if operators.cloud.ports.git_host.tip(pull.head) is None:
            return  # its branch no longer exists
        self._loop.log("%s: somebody reopens pull request %d", operators.fleet, pull.number)
        operators.cloud.repository.pulls.change(pull.number, state="open")
        operators.history.declined.pop((LAST, self._value(operators, pull)), None)
        self._announce(operators, pull, "reopened")

    def _announce(self, operators: Operators, pull: PullRecord, action: str) -> None:
        if not self._loop.peaceful and self._chance.random() < LOST:
            self._loop.log("    the webhook is lost")
            return
        digest = f"promotion-{self._chance.getrandbits(64)}"
        event = PullChange("p2", digest, pull.number, pull.sha, action, promotion=True)
        self._loop.run_function(operators.cloud, partial(accept, event))

    # When the faults have ended

    def check(self) -> None:
        """Let something be proven, and something newer, merge that, and take it back; raise RuleViolated."""
        operators = self._chance.choice(self._everybody)
        idle(self._everybody, self._loop)
        if self._replaced[operators.fleet] or operators.now.staging is not None or not settled(operators):
            return
        for pull in self._pulls(operators, "open"):
            self._close(operators, pull)
        for _ in range(2):
            operators.push(operators.now.with_components(FIRST, self._new_value()))
            idle(self._everybody, self._loop)
            if not settled(operators):
                return
            if operators.now.soak is None:
                self._promote(operators)
                idle(self._everybody, self._loop)
            self._must_propose(operators)
        self.acts += 1
        (pull,), before = self._pulls(operators, "open"), operators.now.environment(LAST).components
        self._merge(operators, pull)
        idle(self._everybody, self._loop)
        if operators.now.environment(LAST).components == before or self._pulls(operators, "open"):
            raise RuleViolated(RULE, f"{operators.fleet}: pull request {pull.number} is not merged")
        operators.push(operators.now.with_components(LAST, before))
        idle(self._everybody, self._loop)
        if self._pulls(operators, "open"):
            raise RuleViolated(RULE, f"{operators.fleet}: what was taken back is proposed again")

    def _must_propose(self, operators: Operators) -> None:
        value, pulls = operators.now.environment(FIRST).components, self._pulls(operators, "open")
        shown = [self._value(operators, pull) for pull in pulls]
        if shown != [value]:
            stored = operators.cloud.state.promotion(LAST)
            why = stored.problem if stored else "nothing is stored"
            raise RuleViolated(RULE, f"{operators.fleet}: {value} is proven, and proposed is {shown}: {why}")


def settled(operators: Operators) -> bool:
    """Return whether every cluster is Ready as the newest commit asks, and each environment has one."""
    now, state = operators.now, operators.cloud.state
    if (
        not now.environments
        or now != now.corrected
        or state.fleet().commit != operators.history.head_line[-1]
    ):
        return False
    records = {record.name: record for record in state.clusters()}
    ready = all(
        record.phase is Phase.READY and not record.job.active and _has(record.document["spec"], now, name)
        for name, record in records.items()
    )
    both = all(any(name in now.clusters for name in environment.clusters) for environment in now.environments)
    return ready and both and records.keys() == now.clusters.keys()


def _has(spec: Json, now: RequestedFleet, name: str) -> bool:
    wanted = now.clusters.get(name)
    same = wanted is not None and spec["kubernetesVersion"] == wanted.version
    return same and bool(spec["flux"]["components"] == now.components_of(name))


def idle(everybody: Iterable[Operators], loop: EventLoop) -> None:
    """Let everything come to its end, and then a sweep and what follows it: a rule begins with each."""
    loop.run_until(loop.clock() + QUIET, done=lambda: loop.idle)
    for operators in everybody:
        loop.run_function(operators.cloud, request_whole_sweep)
    loop.run_until(loop.clock() + QUIET, done=lambda: loop.idle)
