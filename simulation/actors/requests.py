"""People who ask for clusters, two at the same moment at times, and a git host that merges these requests.

A fleet of theirs allows one cluster at a time, below a list price in some fleets. What the host merges is one
folder, and never a second cluster of a person. A request over the limit opens no pull request.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import yaml

from localcloud.git.world.pull_requests import PullRecord
from shared.app.api.access import Principal, Role
from shared.app.api.acts.request_limits import ClusterRequest
from shared.app.api.acts.requests import request_cluster
from shared.frozen import replace
from shared.ports import CommitStatus, Ports
from simulation.actors.kinds import REQUESTS
from simulation.actors.lifetimes import REQUIRED
from simulation.actors.upkeep import ActorUpkeep, Surroundings
from simulation.desired_state import ASKED_CLASS, ASKED_FOR, ASKED_PRICE, DesiredCluster, RequestedFleet
from simulation.operators import Operators
from simulation.rule import RuleViolated

RULE, BRANCH = "request limit", "roadstead/request/"
ACTS, AT_ONCE = (3, 6), 1
LIMITS = (ASKED_PRICE, ASKED_PRICE, ASKED_PRICE - 1)
PERSON = Principal("7", "somebody@example.com", frozenset({Role.OPERATOR}))
RACED, CALLS = 0.6, 16
"""How many requests meet another one, and before which call to the git host at the latest."""


class MeetsAnother:
    """A git host of one request; the ``other`` one runs before some call to it."""

    def __init__(self, inner: Any, calls: int, other: Callable[[], None]) -> None:
        self._inner, self._left, self._other = inner, calls, other

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if callable(found):
            self._left -= 1
            if self._left == 0:
                self._other()
        return found


class Requests(ActorUpkeep):
    """They act on all fleets, whose git host merges by itself."""

    kind = REQUESTS

    def __init__(self, around: Surroundings) -> None:
        super().__init__(around)
        self._asked, self._noted = 0, set[tuple[str, int]]()
        self._random = self._stream("meetings of requests")

    def prepared(self, operators: Operators, wanted: RequestedFleet) -> RequestedFleet:
        """Return a fleet whose people may ask for clusters, on a host that merges these."""
        host = operators.cloud.repository.pulls
        host.allows_auto_merge, host.required_checks = True, (REQUIRED,)
        return replace(wanted, asked_at_once=AT_ONCE, asked_limit=self._random.choice(LIMITS))

    def schedule(self, seconds: float) -> None:
        """Let them ask at some moments, and the plans of their pull requests pass."""
        for _ in range(self._chance.randint(*ACTS)):
            act = partial(self._act, self._chance.choice((self._ask, self._ask, self._pass)))
            self._loop.schedule(self._chance.uniform(0, max(seconds, 900.0)), act)

    def _act(self, act: Callable[[Operators], None]) -> None:
        operators = self._chance.choice(self._everybody)
        if not self._loop.peaceful and not operators.now.invalid:
            self.acts += 1
            act(operators)

    def _ask(self, operators: Operators) -> None:
        """Ask for a cluster, and perhaps for another one while that is at work."""
        self._ask_for(operators, self._random.randint(1, CALLS) if self._random.random() < RACED else 0)

    def _ask_for(self, operators: Operators, calls: int) -> None:
        """Ask for a cluster, and for another one before so many calls of the first one to the git host."""
        request, other = self._request(operators), self._request(operators) if calls else None

        def act(ports: Ports) -> None:
            if other is not None:
                meets: Any = MeetsAnother(ports.git_host, calls, partial(other, ports))
                ports = replace(ports, git_host=meets)
            request(ports)

        before = {pull.number for pull in self._pulls(operators, "open")}
        self._loop.run_function(operators.cloud, act)
        opened = {pull.number for pull in self._pulls(operators, "open")} - before
        if opened and operators.now.asked_limit < ASKED_PRICE:
            raise RuleViolated(
                RULE, f"{operators.fleet}: pull requests {opened} are over the limit of a price"
            )
        self._note(operators)

    def _request(self, operators: Operators) -> Callable[[Ports], None]:
        self._asked += 1
        name = f"{operators.fleet}-asked-{self._asked}"
        asked = ClusterRequest(name, ASKED_CLASS, ASKED_FOR, "", "", "a test")

        def act(ports: Ports) -> None:
            answer = request_cluster(asked, PERSON, ports)
            self._loop.log("%s: somebody asks for %s: %s", operators.fleet, name, answer.body)

        return act

    def _pass(self, operators: Operators) -> None:
        """Let the plans of all open pull requests of theirs pass: the host merges those that it is to.

        Somebody closes one that would bring back what a push by force has dropped (docs/limits.md).
        """
        repository = operators.cloud.repository
        for pull in self._pulls(operators, "open"):
            if len(repository.commits_of(repository.head(pull.base), pull.sha)) > 1:
                repository.pulls.change(pull.number, state="closed")
                continue
            passed = CommitStatus("success", "planned", REQUIRED)
            operators.cloud.ports.git_host.set_status(pull.sha, passed)
            self._note(operators)

    def _pulls(self, operators: Operators, state: str) -> list[PullRecord]:
        start = f"{BRANCH}{operators.fleet}/"
        listed = operators.cloud.repository.pulls.listed(state=state)
        return [pull for pull in listed if pull.head.startswith(start)]

    def _note(self, operators: Operators) -> None:
        """Note what the host has merged: one folder each, and no cluster too many."""
        for pull in sorted(self._pulls(operators, "closed"), key=lambda pull: pull.number):
            if not pull.merged or (operators.fleet, pull.number) in self._noted:
                continue
            self._noted.add((operators.fleet, pull.number))
            name = pull.head.rpartition("/")[2].rpartition("-")[0]
            place, files = (
                f"clusters/{name}/cluster.yaml",
                operators.cloud.repository.files(pull.merge_commit),
            )
            if files != {
                **operators.cloud.repository.files(operators.history.head_line[-1]),
                place: files[place],
            }:
                raise RuleViolated(RULE, f"pull request {pull.number} changes more than the folder of {name}")
            desired = operators.now.with_cluster(DesiredCluster(name, request=files[place].decode()))
            self._loop.log("%s: the host merges pull request %d", operators.fleet, pull.number)
            operators.merged(pull.merge_commit, desired)
            self._within(operators)

    def _within(self, operators: Operators) -> None:
        texts = [cluster.request for cluster in operators.now.clusters.values() if cluster.is_as_asked]
        labels = [yaml.safe_load(text)["metadata"]["labels"] for text in texts]
        own = [label for label in labels if label["requested-by-id"] == PERSON.id]
        if len(own) > AT_ONCE:
            raise RuleViolated(RULE, f"{operators.fleet} has {len(own)} clusters of one person by request")

    # When the faults have ended

    def check(self) -> None:
        """Let somebody who has none ask for two clusters at the same moment, and get one at most."""
        operators = self._chance.choice(self._everybody)
        self._pass(operators)
        if operators.now.invalid or operators.cloud.state.fleet().commit != operators.history.head_line[-1]:
            return
        if any(cluster.is_as_asked for cluster in operators.now.clusters.values()):
            return
        limit = self._random.choice(LIMITS)
        operators.push(replace(operators.now, asked_limit=limit))
        self._loop.run_until(self._loop.clock() + timedelta(hours=1), done=lambda: self._loop.idle)
        self.acts, seen = self.acts + 1, 0
        for calls in range(1, CALLS, 2):
            self._ask_for(operators, calls)
            opened = self._pulls(operators, "open")
            if len(opened) > AT_ONCE and all(pull.auto_merge for pull in opened):
                raise RuleViolated(RULE, f"{operators.fleet}: the host merges {len(opened)} at once")
            seen += len(opened)
            for pull in opened if calls < CALLS - 2 else ():
                operators.cloud.repository.pulls.change(pull.number, state="closed")
        self._pass(operators)
        if not seen and limit == ASKED_PRICE:
            raise RuleViolated(RULE, f"{operators.fleet}: nobody gets the one cluster that each may have")
