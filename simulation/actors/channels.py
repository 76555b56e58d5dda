"""People of a fleet that follows channels, and AKS, which offers versions and node images one after another.

The fleets have two environments, of which the first one's pull requests are the app's own. People merge and
close these and those of the promotions, write a version themselves or take one back, and start the app's
instances again. Nobody says at times what a version fixes. When the faults have ended, AKS offers the rest:
what a channel has then must be proposed, moves nothing before its merge, and reaches all clusters by it and
its promotion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

from localcloud.git.world.pull_requests import PullRecord
from shared.app.intake.accept import accept
from shared.app.intake.webhook import PullChange
from shared.app.outbox import request_whole_sweep
from shared.cluster.failures.errors import Conflict, Unavailable
from shared.ports.process import KnownAnswers
from simulation.actors.kinds import CHANNELS
from simulation.actors.promotions import idle, settled
from simulation.actors.upkeep import EnvironmentActor, Surroundings
from simulation.channel_values import CHANNEL as RULE
from simulation.channel_values import as_numbers, given_in, values_of, what_follows
from simulation.desired_files import files_of, path_of
from simulation.desired_state import (
    IMAGE,
    IMAGES_ALONE,
    NEWEST_IMAGE,
    OLDER_IMAGE,
    VERSION,
    DesiredCluster,
    RequestedFleet,
    SharedEnvironment,
)
from simulation.operators import Operators, cluster_id
from simulation.rule import RuleViolated

FIRST, LAST = "test", "prod"
BEGIN = {"rapid": "1.36.2", "stable": "1.35.6", "patch": "1.35.6", "lts": "1.33.11", IMAGES_ALONE: ""}
"""The channels, and the version that their environments have at first."""
NOT_YET = ("1.33.13", "1.35.7", "1.36.3", "1.37.1", NEWEST_IMAGE)
WITH_IMAGES, AT_FIRST = 0.5, 0.4
"""How many fleets follow node images, too, and how much of what is new AKS offers before the faults end."""
SOAKS, LOST = (0, 30, 600), 0.3
BEFORE_AN_END = datetime(2027, 1, 29, 22, 30, tzinfo=UTC)
"""So soon the channel ``patch`` leaves a minor."""
REMEMBERED = timedelta(hours=7)
"""Longer than an instance remembers a list."""


class Channels(EnvironmentActor):
    """They act on all fleets; ``replaced`` counts how often the tables of a fleet were lost."""

    kind = CHANNELS

    fewest_acts, most_acts = 5, 12

    def __init__(self, around: Surroundings) -> None:
        super().__init__(around)
        self._loop.azure.withheld.update(NOT_YET)
        self.withheld: list[Set[str]] = []

    def prepared(self, operators: Operators, wanted: RequestedFleet) -> RequestedFleet:
        """Return a fleet with its environments and their channels, and the rule that promotes."""
        middle, channel = len(operators.names) // 2, self._chance.choice([*BEGIN])
        images = self._chance.random() < WITH_IMAGES or channel == IMAGES_ALONE
        image = OLDER_IMAGE if images else ""
        names = {FIRST: operators.names[:middle], LAST: operators.names[middle:]}
        environments = tuple(
            SharedEnvironment(name, own, channel=channel, version=BEGIN[channel], image=image)
            for name, own in names.items()
        )
        found = replace(wanted, environments=environments, soak=self._chance.choice(SOAKS))
        for name in wanted.clusters:
            found = found.with_cluster(self.new_cluster(name))
        return found

    def new_cluster(self, name: str) -> DesiredCluster:
        """Return a cluster with the version of its environment."""
        return DesiredCluster(name, version="")

    def schedule(self, seconds: float) -> None:
        """Let them act at some moments of so many seconds."""
        acts = (
            *(self._decide,) * 3,
            *(self._offer, self._silence, self._write, self._take_back, self._look),
        )
        self.schedule_acts(acts, seconds)

    # AKS

    def _offer(self, operators: Operators) -> None:
        """Let the lists of all regions have something more, and an instance that starts read them."""
        new = self._withheld
        if new and self._chance.random() < AT_FIRST:
            self._offers(self._chance.choice(new))
        self._restart(operators)
        self._look(operators)

    def _offers(self, *versions: str) -> None:
        self._loop.log("AKS offers %s", ", ".join(versions))
        self._loop.azure.withheld.difference_update(versions)
        self.withheld.append({*self._loop.azure.withheld})
        for operators in self._everybody if NEWEST_IMAGE in versions else ():
            for name, cluster in operators.now.clusters.items():
                if cluster.image != NEWEST_IMAGE:  # no image ever gets older
                    operators.age_images(name)

    def _silence(self, operators: Operators) -> None:
        """Let nobody say what a version fixes, or say it again."""
        said = operators.cloud.vulnerabilities
        said.away = None if said.away else Unavailable("the vulnerability data of AKS does not answer")

    # The app

    def _restart(self, operators: Operators) -> None:
        workers = self._loop.workers[operators.cloud]
        self._loop.workers[operators.cloud] = [
            replace(ports, process=replace(ports.process, answers=KnownAnswers())) for ports in workers
        ]

    def _look(self, operators: Operators) -> None:
        self._loop.run_function(operators.cloud, request_whole_sweep)

    # People

    def _write(self, operators: Operators) -> None:
        """Write what the channel has, or a version after that, without its pull request."""
        own = operators.now.environment(FIRST)
        found = what_follows(own, self._loop.azure.withheld, self._loop.clock().date())
        operators.push(operators.now.with_channel(FIRST, found.get(VERSION, own.version), own.image))

    def _take_back(self, operators: Operators) -> None:
        """Give the first environment what it had before."""
        history, now = operators.history, operators.now.environment(FIRST)
        former = (history.desired(commit).environment(FIRST) for commit in reversed(history.head_line))
        before = next((own for own in former if own.values != now.values), now)
        operators.push(operators.now.with_channel(FIRST, before.version, before.image))

    def _decide(self, operators: Operators) -> None:
        """Merge or close a pull request."""
        opened = self._pulls(operators)
        if opened and self._chance.random() < 0.6:
            self._merge(operators, self._chance.choice(opened))
        elif opened:
            self._close(operators, self._chance.choice(opened))

    def _pulls(self, operators: Operators, *starts: str) -> list[PullRecord]:
        """Return the open pull requests of channels, and of promotions, or of some of them."""
        heads = [
            f"roadstead/{start}/{operators.fleet}/" for start in starts or ("versions", "images", "promote")
        ]
        listed = operators.cloud.repository.pulls.listed()
        return [pull for pull in listed if pull.head.startswith(tuple(heads))]

    def _given(self, operators: Operators, pull: PullRecord) -> tuple[str, Mapping[str, str]]:
        """Return the environment that a pull request is for, and what it has by that."""
        target = pull.head.rpartition("/")[2]
        environment = operators.now.environment(target)
        return target, given_in(operators.cloud.repository.files(pull.sha), environment)

    def _merge(self, operators: Operators, pull: PullRecord) -> None:
        """Merge a pull request, and check that it changes nothing else than what an environment has."""
        repository, head = operators.cloud.repository, operators.history.head_line[-1]
        try:
            merged = repository.pulls.merged_into_base(pull.number, squash=True).merge_commit
        except Conflict:
            return
        target = pull.head.rpartition("/")[2]
        environment = operators.now.environment(target)
        found, path = given_in(repository.files(merged), environment), path_of(environment)
        desired = operators.now.with_channel(target, found.get(VERSION, ""), found.get(IMAGE, ""))
        wanted = {**repository.files(head), path: files_of(desired, operators.fleet)[path]}
        if repository.files(merged) != wanted:
            raise RuleViolated(RULE, f"pull request {pull.number} changes more than what {target} has")
        self._loop.log("%s: somebody merges pull request %d", operators.fleet, pull.number)
        operators.merged(merged, desired)
        self._announce(operators, pull)

    def _close(self, operators: Operators, pull: PullRecord) -> None:
        self._loop.log("%s: somebody declines pull request %d", operators.fleet, pull.number)
        operators.cloud.repository.pulls.change(pull.number, state="closed")
        target, values = self._given(operators, pull)
        for field, value in values.items():
            if value != operators.now.environment(target).values.get(field):
                operators.history.declined[target, value] = self._loop.clock()
        self._announce(operators, pull)

    def _announce(self, operators: Operators, pull: PullRecord) -> None:
        if not self._loop.peaceful and self._chance.random() < LOST:
            self._loop.log("    the webhook is lost")
            return
        digest = f"channel-{self._chance.getrandbits(64)}"
        event = PullChange("c1", digest, pull.number, pull.sha, "closed", promotion=True)
        self._loop.run_function(operators.cloud, partial(accept, event))

    # When the faults have ended

    def check(self) -> None:
        """Let AKS offer the rest, and check its way to all clusters; raise RuleViolated."""
        operators = self._chance.choice(self._everybody)
        idle(self._everybody, self._loop)
        if self._replaced[operators.fleet] or operators.now.staging or not settled(operators):
            self._offers(*self._withheld)
            return
        for pull in self._pulls(operators):
            self._close(operators, pull)
        self._offers(*self._withheld)
        ran = self._running(operators)
        if self._chance.random() < 0.5:
            self._restart(operators)
        else:
            self._loop.run_until(self._loop.clock() + REMEMBERED)
        idle(self._everybody, self._loop)
        new = self._new(operators)
        if not new or not settled(operators):
            return
        self.acts += 1
        self._must_propose(operators, new)
        if self._running(operators) != ran:
            raise RuleViolated(RULE, f"{operators.fleet}: clusters move before a merge of {new}")
        for start in ("versions", "images", "promote"):
            for pull in self._pulls(operators, start):
                self._merge(operators, pull)
            idle(self._everybody, self._loop)
            if not settled(operators):
                return
        self._must_have(operators, new)
        self._take_back(operators)
        idle(self._everybody, self._loop)

    @property
    def _withheld(self) -> list[str]:
        return [version for version in NOT_YET if version in self._loop.azure.withheld]

    def _must_propose(self, operators: Operators, new: Mapping[str, str]) -> None:
        pulls, has = self._pulls(operators, "versions", "images"), operators.now.environment(FIRST).values
        given = [self._given(operators, pull)[1].items() for pull in pulls]
        proposed = {field: value for values in given for field, value in values if has[field] != value}
        if {**proposed, **new} != proposed or len(pulls) != len(proposed):
            what = f"the channels have {new}, and {len(pulls)} pull requests propose {proposed}"
            raise RuleViolated(RULE, f"{operators.fleet}: {what}")

    def _new(self, operators: Operators) -> Mapping[str, str]:
        """Return what the channels have now that the first environment never had, and nobody declined."""
        own, history = operators.now.environment(FIRST), operators.history
        found = what_follows(own, self._loop.azure.withheld, self._loop.clock().date())
        former = [history.desired(commit).environments[0].values for commit in history.head_line]
        gone = {value for versions in former for value in versions.values()}
        gone |= {value for _, value in history.declined}
        return {
            field: value
            for field, value in found.items()
            if value not in gone and self._takes(operators, own, field, value)
        }

    def _takes(self, operators: Operators, environment: SharedEnvironment, field: str, value: str) -> bool:
        """Return whether some cluster follows an environment, and none runs a newer version than one."""
        running, follow = self._running(operators), self._following(operators, environment, field)
        return bool(follow) and all(as_numbers(running[name][field]) <= as_numbers(value) for name in follow)

    def _following(self, operators: Operators, environment: SharedEnvironment, field: str) -> Sequence[str]:
        now = operators.now.clusters
        own = [name for name in environment.clusters if name in now]
        return [name for name in own if values_of(now[name])[field] == environment.values[field]]

    def _must_have(self, operators: Operators, new: Mapping[str, str]) -> None:
        """Check that all clusters that follow run what was merged, also where promotions lead to.

        A promotion gives all that the first environment has, or nothing: what is not proven holds the rest.
        """
        now, running = operators.now, self._running(operators)
        had = now.environment(FIRST).values
        given, proven = {field: had[field] for field in (VERSION, IMAGE) if field in had}, True
        for environment in now.environments:
            own = [name for name in environment.clusters if name in now.clusters]
            gets = environment.name == FIRST or (proven and not self._lowers(operators, environment, given))
            for field, value in new.items():
                has = [name for name in own if values_of(now.clusters[name])[field] == value]
                old = [name for name in has if as_numbers(running[name][field]) < as_numbers(value)]
                lacks = environment.values[field] != value and self._takes(
                    operators, environment, field, value
                )
                if old or (lacks and gets):
                    what = f"{environment.name} has {environment.values}, and runs {running}"
                    raise RuleViolated(RULE, f"{operators.fleet}: {value} was merged, {what}")
            proven = proven and all(values_of(now.clusters[name]).items() >= given.items() for name in own)
            proven = proven and not any(_runs_newer(running[name], given) for name in own)

    def _lowers(self, operators: Operators, environment: SharedEnvironment, given: Mapping[str, str]) -> bool:
        """Return whether a promotion would lower something of an environment: that holds all of it."""
        running, has = self._running(operators), environment.values
        changed = {field: as_numbers(value) for field, value in given.items() if has[field] != value}
        follow = self._following(operators, environment, VERSION) if VERSION in changed else ()
        runs = [as_numbers(running[name][VERSION]) for name in follow]
        return any(as_numbers(has[field]) > value for field, value in changed.items()) or any(
            version > changed[VERSION] for version in runs
        )

    def _running(self, operators: Operators) -> Mapping[str, Mapping[str, str]]:
        """Return the version and the oldest image that each cluster runs."""
        lives = {name: self._oracle.live(cluster_id(name)) for name in operators.now.clusters}
        found = {name: live["properties"] for name, live in lives.items() if live is not None}
        return {
            name: {
                VERSION: live["currentKubernetesVersion"],
                IMAGE: min(pool["nodeImageVersion"].rpartition("-")[2] for pool in live["agentPoolProfiles"]),
            }
            for name, live in found.items()
        }


def _runs_newer(running: Mapping[str, str], given: Mapping[str, str]) -> bool:
    """Return whether a cluster runs a newer version than git has: it proves nothing of that."""
    version = as_numbers(given[VERSION]) if VERSION in given else ()
    return as_numbers(running[VERSION])[: len(version)] > version
