"""People who give clusters an end, perhaps in a freeze, put it off, and merge or close what removes them.

The timer that looks at lifetimes runs in their seeds alone, so that every other seed is what it would be
without them. When the faults have ended, the end of a cluster must be proposed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from localcloud.git.world.pull_requests import PullRecord
from shared.app.api.acts.times import extend
from shared.app.intake.accept import accept
from shared.app.intake.webhook import PullChanged
from shared.app.proposals.ends import watch_lifetimes
from shared.cluster.failures.errors import Conflict
from shared.cluster.record_parts import Phase
from shared.ports import CommitStatus, Ports
from simulation.actors.kinds import LIFETIMES
from simulation.actors.upkeep import ActorUpkeep, Surroundings
from simulation.desired_files import files_of
from simulation.desired_state import DesiredCluster
from simulation.operators import Operators
from simulation.rule import RuleViolated
from simulation.staging import Shut, StagedGroup, StagedStage, Staging

RULE, BRANCH = "early end", "roadstead/end/"
ACTS, EVERY = (4, 9), 300.0
MINUTES = (10, 10, 12, 20, 0)
"""How long clusters last; 0 takes an end away."""
LONGER = (timedelta(minutes=5), timedelta(minutes=20))
QUIET = timedelta(hours=2)
FROZEN, FREEZE = 0.5, timedelta(minutes=70)
"""How many ends at the last come in a freeze, and how long that is: longer than any end is put off."""

BY_HOST, HELD = 0.5, 0.5
"""How many of the last ends the host merges, and how many of these somebody holds before."""
REQUIRED = "roadstead/plan"
"""The status that the branch requires."""


class Lifetimes(ActorUpkeep):
    """They act on all fleets; ``replaced`` counts how often the tables of a fleet were lost."""

    kind = LIFETIMES

    def __init__(self, around: Surroundings) -> None:
        super().__init__(around)
        self._freezes, self._by_host = self._stream("frozen ends"), self._stream("ends by the host")
        self.put_off: dict[tuple[str, str], datetime] = {}

    def schedule(self, seconds: float) -> None:
        """Let them act at some moments, and the timer run."""
        lasts = max(seconds, 2400.0)
        acts = (*(self._give,) * 3, *(self._extend,) * 2, *(self._decide,) * 2)
        for _ in range(self._chance.randint(*ACTS)):
            act = partial(self._act, self._chance.choice(acts), self._chance.choice(self._everybody))
            self._loop.schedule(self._chance.uniform(0, lasts), act)
        for tick in range(1, int(lasts / EVERY) + 1):
            self._loop.schedule(tick * EVERY, self._look)

    def _look(self) -> None:
        for operators in self._everybody:
            self._loop.run_function(operators.cloud, watch_lifetimes)

    def _act(self, act: Any, operators: Operators) -> None:
        if not self._loop.peaceful and operators.now.clusters and not operators.now.invalid:
            self.acts += 1
            act(operators)

    def _give(self, operators: Operators) -> None:
        cluster = self._chance.choice([*operators.now.clusters.values()])
        wanted = replace(cluster, lifetime=self._chance.choice(MINUTES))
        operators.push(operators.now.with_cluster(wanted))

    def _extend(self, operators: Operators, name: str = "") -> None:
        """Extend a cluster, or hold it."""
        name = name or self._chance.choice([*operators.now.clusters])
        lasts, hold = self._chance.choice(LONGER), self._chance.random() < 0.5

        def act(ports: Ports) -> None:
            answer = extend(name, lasts, "somebody", ports, "a test", hold=hold)
            self._loop.log(
                "%s: %s of %s: %s", operators.fleet, "hold" if hold else "extend", name, answer.body
            )
            until = answer.body.get("ends")
            if until and not hold:
                self.put_off[operators.fleet, name] = datetime.fromisoformat(str(until))

        self._loop.run_function(operators.cloud, act)

    def _decide(self, operators: Operators) -> None:
        """Merge or close a pull request that removes a cluster."""
        for pull in self._pulls(operators)[:1]:
            if self._chance.random() < 0.7:
                self._merge(operators, pull)
            else:
                self._loop.log("%s: somebody declines pull request %d", operators.fleet, pull.number)
                operators.cloud.repository.pulls.change(pull.number, state="closed")
                digest = f"end-{self._chance.getrandbits(64)}"
                event = PullChanged("e1", digest, pull.number, pull.sha, "closed", proposal=True)
                self._loop.run_function(operators.cloud, partial(accept, event))

    def _pulls(self, operators: Operators) -> list[PullRecord]:
        start = f"{BRANCH}{operators.fleet}/"
        listed = operators.cloud.repository.pulls.listed()
        return [pull for pull in listed if pull.head.startswith(start)]

    def _merge(self, operators: Operators, pull: PullRecord) -> None:
        if not _may_be_merged(operators, pull):
            return
        try:
            merged = operators.cloud.repository.pulls.merged_into_base(pull.number, squash=True)
        except Conflict:
            return
        self._loop.log("%s: somebody merges pull request %d", operators.fleet, pull.number)
        self._merged(operators, merged)

    def _merged(self, operators: Operators, pull: PullRecord) -> None:
        """Check what was merged: it removes the folder of a cluster, and nothing else."""
        name = _ending(operators, pull)
        desired = operators.now.without(name)
        before = operators.cloud.repository.files(operators.history.head_line[-1])
        kept = {path: text for path, text in before.items() if not path.startswith(f"clusters/{name}/")}
        if operators.cloud.repository.files(pull.merge_commit) != kept:
            raise RuleViolated(RULE, f"pull request {pull.number} changes more than the folder of {name}")
        operators.merged(pull.merge_commit, desired)

    def _merged_by_host(self, operators: Operators, pull: PullRecord) -> None:
        """Let the plan of a pull request pass that the host is to merge, perhaps after a hold closed it."""
        if not _may_be_merged(operators, pull):
            return
        name, held = _ending(operators, pull), self._by_host.random() < HELD
        if held:
            hold = partial(extend, name, timedelta(hours=1), "somebody", reason="a test", hold=True)
            self._loop.log("%s: somebody holds %s", operators.fleet, name)
            self._loop.run_function(operators.cloud, lambda ports: hold(ports=ports))
            self._pass(timedelta(minutes=15))
        passed = CommitStatus("success", "planned", REQUIRED)
        operators.cloud.ports.git_host.set_status(pull.sha, passed)
        now = operators.cloud.repository.pulls.get(pull.number)
        if now is None or now.merged == held:
            what = "is merged by the host, and held" if held else "is not merged by the host"
            raise RuleViolated(RULE, f"the end of {name} {what}")
        if now.merged:
            self._loop.log("%s: the host merges pull request %d", operators.fleet, pull.number)
            self._merged(operators, now)

    # When the faults have ended

    def check(self) -> None:
        """Let a cluster reach its end, perhaps later or never, and perhaps end it; raise RuleViolated."""
        operators = self._chance.choice(self._everybody)
        able = [cluster for cluster in operators.now.clusters.values() if self._can_end(operators, cluster)]
        if not able or self._replaced[operators.fleet] or operators.now.staging or operators.now.invalid:
            return
        self.acts += 1
        cluster = self._chance.choice(able)
        wanted = replace(cluster, lifetime=10, protected=self._chance.random() < 0.3)
        if self._by_host.random() < BY_HOST:
            wanted = replace(wanted, ends_by_host=True)
            host = operators.cloud.repository.pulls
            host.allows_auto_merge, host.required_checks = True, (REQUIRED,)
        desired = operators.now.with_cluster(wanted)
        if self._freezes.random() < FROZEN:
            desired = replace(desired, staging=self._frozen(cluster.name))
        former = operators.cloud.state.cluster(cluster.name)
        operators.push(desired)
        self._pass(timedelta(minutes=3))
        if self._chance.random() < 0.7:
            self._extend(operators, cluster.name)
        self._pass(QUIET)
        if operators.now.staging:
            operators.push(replace(operators.now, staging=None))
            self._pass(timedelta(minutes=10))
        record = operators.cloud.state.cluster(cluster.name)
        spec = record.document["spec"] if record else {}
        if record is None or record.phase is not Phase.READY or spec.get("lifetime") != "10m":
            return
        pulls = [pull for pull in self._pulls(operators) if f"/{cluster.name}-" in pull.head]
        pull = record.azure.lifetime.pull
        proposed = pull is not None
        if proposed and former is not None and pull == former.azure.lifetime.pull:
            return  # of this end already before the commit, which closes no pull request
        if proposed == wanted.protected:
            state = "is proposed" if proposed else "is not proposed"
            raise RuleViolated(RULE, f"the end of {cluster.name} has come, and {state}")
        if pulls and wanted.ends_by_host:
            self._merged_by_host(operators, pulls[0])
        elif pulls and self._chance.random() < 0.5:
            self._merge(operators, pulls[0])

    def _frozen(self, name: str) -> Staging:
        """Return stages of which one has a cluster that no commit deletes for a time from now on."""
        now = self._loop.clock().replace(second=0, microsecond=0)
        freeze = Shut(now, now + FREEZE, freeze=True, of=("deletes",))
        return (StagedStage("frozen", (name,), (StagedGroup(0, 1, 1),), shut=freeze),)

    def _pass(self, lasts: timedelta) -> None:
        """Let time pass, and the timer run."""
        end = self._loop.clock() + lasts
        while self._loop.clock() < end:
            self._loop.run_until(min(end, self._loop.clock() + timedelta(seconds=EVERY)))
            self._look()

    def _can_end(self, operators: Operators, cluster: DesiredCluster) -> bool:
        if cluster.invalid or cluster.suspended or cluster.adopt or cluster.protected:
            return False
        record = operators.cloud.state.cluster(cluster.name)
        return record is not None and record.phase is Phase.READY and not record.job.active


def _ending(operators: Operators, pull: PullRecord) -> str:
    """Return the cluster that a pull request removes."""
    return pull.head.removeprefix(f"{BRANCH}{operators.fleet}/").rpartition("-")[0]


def _may_be_merged(operators: Operators, pull: PullRecord) -> bool:
    """Return whether the plan of a pull request can pass: no system names the cluster, which git has."""
    name = _ending(operators, pull)
    wanted = files_of(operators.now.without(name), operators.fleet)
    same = all(wanted.get(path) == text for path, text in _rest(operators, name).items())
    return name in operators.now.clusters and same


def _rest(operators: Operators, name: str) -> Mapping[str, bytes]:
    """Return the files of a fleet but those of a cluster's folder."""
    files = files_of(operators.now, operators.fleet)
    return {path: text for path, text in files.items() if not path.startswith(f"clusters/{name}/")}
