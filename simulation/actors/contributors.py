"""The authors of pull requests: from branches and forks, changed while they are planned."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache

from localcloud.git.world.pull_requests import PullRecord
from shared.app.intake.accept import accept
from shared.app.intake.webhook import PullChange
from shared.ports import Ports
from simulation.actors.kinds import PULL_REQUESTS
from simulation.desired_files import files_of
from simulation.desired_state import DesiredCluster, RequestedFleet
from simulation.operators import Operators

ACTS = (2, 6)
BETWEEN_PUSHES = (1, 5, 11, 60)
"""Seconds until the next push to a pull request: before, while and after it is planned."""
LATE = timedelta(minutes=15)
"""How long somebody waits for a check before the event is delivered again."""
PROPOSALS = "roadstead/"
"""The beginning of the branches of the app, whose pull requests are not theirs."""
OVERSIZED_MIB, MANY = 33, 501
"""More than one pull request may add: docs/reference.md, limits."""


@dataclass(frozen=True)
class ContributedCommit:
    """What a commit of a pull request proposes; ``refused``: its check has to fail."""

    fork: bool
    refused: bool


class Contributors:
    """They propose changes to one fleet; ``proposals`` has what each of their commits proposes."""

    def __init__(self, seed: int, operators: Operators) -> None:
        self._chance = random.Random(f"{seed} {PULL_REQUESTS}")  # noqa: S311
        self._operators, self._loop, self._cloud = operators, operators.loop, operators.cloud
        self._pulls = self._cloud.repository.pulls
        self._undelivered: dict[int, str] = {}
        self.proposals: dict[str, ContributedCommit] = {}
        self.acts = 0
        self._cloud.git_host.is_app = self._chance.random() < 0.5

    def schedule(self, seconds: float) -> None:
        """Let them act at some moments of so many seconds."""
        for _ in range(self._chance.randint(*ACTS)):
            self._loop.schedule(self._chance.uniform(0, seconds), self._act)

    def deliver_again(self) -> None:
        """Deliver every event again, in GitHub, that was lost, or whose request is a dead letter, or late.

        A wrong clock makes a request late by an hour or a month; nobody waits that long for a check.
        """
        soon = self._loop.clock() + LATE
        requests = [letter.shown for letter in self._cloud.dead_letters if letter.queue == "previews"]
        requests += [
            message.body
            for cloud, queue, message in self._loop.sent
            if cloud is self._cloud and queue == "previews" and message.at is not None and message.at > soon
        ]
        for pull in self._open():
            if pull.number in self._undelivered or any(f'"pull":{pull.number},' in body for body in requests):
                self._deliver(pull, "synchronize")

    def _open(self) -> list[PullRecord]:
        return [pull for pull in self._pulls.listed() if not pull.head.startswith(PROPOSALS)]

    def _act(self) -> None:
        self.acts += 1
        acts: list[Callable[[], None]] = [self._propose, self._propose, self._push, self._push]
        self._chance.choice([*acts, self._close])()

    def _propose(self) -> None:
        git, branch = self._cloud.repository, f"topic-{self.acts}"
        git.reset(git.head("main"), branch)
        fork = self._chance.random() < 0.5
        head = self._commit(branch, fork=fork)
        pull = self._pulls.open("A change", branch, "main", fork=fork)
        origin = "a fork" if pull.fork else "a branch"
        self._loop.log(
            "%s: pull request %d from %s: %s", self._operators.fleet, pull.number, origin, head[:8]
        )
        self._announce(pull, "opened")

    def _push(self) -> None:
        """Push to a pull request, and a moment later again."""
        pulls = self._open()
        if not pulls:
            return
        pull = self._chance.choice(pulls)
        self._push_to(pull)
        if self._chance.random() < 0.5:
            self._loop.schedule(self._chance.choice(BETWEEN_PUSHES), lambda: self._push_to(pull))

    def _push_to(self, pull: PullRecord) -> None:
        head = self._commit(pull.head, fork=pull.fork)
        self._loop.log("%s: pull request %d is at %s", self._operators.fleet, pull.number, head[:8])
        changed = self._pulls.get(pull.number)
        if changed is not None and changed.state == "open":
            self._announce(changed, "synchronize")

    def _close(self) -> None:
        pulls = self._open()
        if pulls:
            pull = self._chance.choice(pulls)
            self._loop.log("%s: pull request %d is closed", self._operators.fleet, pull.number)
            self._pulls.change(pull.number, state="closed")

    def _commit(self, branch: str, *, fork: bool) -> str:
        """Commit a change of what the head of the fleet asks for."""
        desired, refused, more = self._change(self._operators.now)
        desired = replace(desired, note=1000 + len(self.proposals))
        files = {**files_of(desired, self._operators.fleet), **more}
        head = self._cloud.repository.push(files, branch=branch)
        self.proposals[head] = ContributedCommit(fork, refused)
        return head

    def _change(self, now: RequestedFleet) -> tuple[RequestedFleet, bool, dict[str, bytes]]:
        """Return a change of a fleet, whether it must be refused, and more files of it."""
        name = self._chance.choice(self._operators.names)
        cluster = now.clusters.get(name, DesiredCluster(name))
        match self._chance.choice(("change", "change", "remove", "mistake", "mistake", "large", "many")):
            case "remove":
                return now.without(name), False, {}
            case "mistake":
                mistaken = replace(cluster, invalid=True, tag=self._chance.choice("uvw"))
                # The head may be as invalid already, and valid when the pull request is planned.
                return now.with_cluster(mistaken), mistaken != now.clusters.get(name), {}
            case "large":
                return now, True, {f"docs/video-{len(self.proposals)}.mp4": _large()}
            case "many":
                number = len(self.proposals)
                return (
                    now,
                    True,
                    {f"clusters/x{n}/cluster.yaml": f"{number}.{n}".encode() for n in range(MANY)},
                )
        changed = replace(cluster, tag=self._chance.choice("uvw"), version="1.36")
        return now.with_cluster(changed), False, {}

    def _announce(self, pull: PullRecord, action: str) -> None:
        if self._loop.peaceful or self._chance.random() < 0.8:
            self._deliver(pull, action)
        else:
            self._loop.log("    the event is lost")
            self._undelivered[pull.number] = pull.sha

    def _deliver(self, pull: PullRecord, action: str) -> None:
        """Deliver an event; GitHub shows one that was not accepted.

        When a frozen instance accepts it, the event of a later commit may have been lost meanwhile.
        """
        event = PullChange("p1", f"pull-{self._chance.getrandbits(64)}", pull.number, pull.sha, action)
        self._undelivered[pull.number] = pull.sha

        def accepted(ports: Ports) -> None:
            accept(event, ports)
            if self._undelivered.get(pull.number) == pull.sha:
                del self._undelivered[pull.number]

        self._loop.run_function(self._cloud, accepted)


@cache
def _large() -> bytes:
    return bytes(OVERSIZED_MIB << 20)
