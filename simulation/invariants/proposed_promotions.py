"""The rules of promotions and channels: what is proven, or what a channel has, is proposed, and nothing else.

Never what was withdrawn or declined; and no app writes its branch. They are those of docs/fleet.md,
"Promotions", and of docs/how-to/keep-up-with-versions.md. When a cluster is Ready is known from its records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.ports import FleetRecord
from simulation.channel_values import CHANNEL, given_in, in_spec, what_follows
from simulation.desired_files import path_of
from simulation.desired_state import IMAGE, VERSION, RequestedFleet, SharedEnvironment
from simulation.history import LONG_AGO
from simulation.invariants.azure_writes import KNOWN
from simulation.invariants.context import CLOCKS, Context
from simulation.rule import RuleViolated

RULE, MAIN = "promotion", "main branch"
PROMOTED = "roadstead/promote"
CHANNELED = {"roadstead/versions": VERSION, "roadstead/images": IMAGE}
"""How the branches of channels begin, and the field that each gives an environment."""
BY_HAND = b'"promotion":{'
"""What the message has in it of a promotion that somebody asked for."""
NOW = datetime.max.replace(tzinfo=UTC)


@dataclass
class ReadySpan:
    """Since when a generation of a cluster is Ready, and until when."""

    uid: str
    generation: int
    since: datetime
    until: datetime = NOW


class PromotionInvariant:
    """Checks every commit that an app gives to a branch."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._ready: dict[tuple[str, str], ReadySpan] = {}
        self._planned: dict[str, str] = {}
        """The commit of each fleet that was planned last."""
        self._withdrawn = dict[tuple[str, str, str], tuple[datetime, datetime]]()
        """By fleet, environment and value: the time of the plan that took it from there, and of its save."""
        self.withheld: list[Set[str]] = []
        """The versions that no list had yet, at first and after each change of that."""

    def saved(self, cloud: MemoryCloud, record: ClusterRecord) -> None:
        """Note since when a cluster is Ready; its sleep ends that no more than a soak."""
        key, now = (cloud.ports.config.fleet, record.name), self._context.loop.clock()
        verified = record.phase is Phase.READY and record.observed_generation == record.generation
        known = self._ready.get(key)
        same = known is not None and (known.uid, known.generation) == (record.uid, record.generation)
        if not (verified and not record.job.active):
            if known is not None and known.until == NOW and not (same and record.sleep_job_runs):
                known.until = now
        elif known is None or not same or known.until != NOW:
            self._ready[key] = ReadySpan(record.uid, record.generation, now)

    def planned(self, cloud: MemoryCloud, record: FleetRecord) -> None:
        """Note what a plan that has ended takes from environments."""
        fleet, history = cloud.ports.config.fleet, self._context.history(cloud)
        before, now = self._planned.get(fleet, ""), record.commit
        if not now or record.planning or now == before or not history.desired(now).environments:
            return
        desired = history.desired(now)
        if desired.invalid:
            return
        self._planned[fleet] = now
        former = history.desired(before).environments if before else ()
        for environment in desired.environments:
            own = next((found for found in former if found.name == environment.name), environment)
            for field, has in environment.values.items():
                if own.values[field] != has:
                    taken = (record.at or LONG_AGO, self._context.loop.clock())
                    self._withdrawn[fleet, environment.name, own.values[field]] = taken
                self._withdrawn.pop((fleet, environment.name, has), None)
                history.declined.pop((environment.name, has), None)

    def proposed(self, cloud: MemoryCloud, branch: str, commit: str) -> None:
        """Check a commit that an app gives to a branch."""
        fleet, actor = cloud.ports.config.fleet, self._context.loop.actor
        if branch == cloud.ports.config.branch:
            raise RuleViolated(MAIN, f"{fleet} writes {commit[:8]} to {branch}")
        start = branch.partition(f"/{fleet}/")[0]
        if start not in (PROMOTED, *CHANNELED) or self._context.replaced[fleet]:
            return
        history, known = self._context.history(cloud), cloud.state.fleet().commit
        candidates = {*history.heads_since(actor.since - KNOWN), known} - {""}  # of tables without a plan
        wrong = [self._wrong(cloud, candidate, branch, commit) for candidate in sorted(candidates)]
        if all(wrong):
            rule = RULE if start == PROMOTED else CHANNEL
            raise RuleViolated(rule, f"{fleet} writes {commit[:8]} to {branch}, and {wrong[0]}")

    def _wrong(self, cloud: MemoryCloud, candidate: str, branch: str, commit: str) -> str:
        """Return what is wrong with a commit for the branch, if a candidate was the head, "" for nothing."""
        fleet, desired = cloud.ports.config.fleet, self._context.history(cloud).desired(candidate)
        start, _, target = branch.partition(f"/{fleet}/")
        environment = next((found for found in desired.environments if found.name == target), None)
        if environment is None:
            return f"{candidate[:8]} has no {target}"
        files, path = cloud.repository.files(commit), path_of(environment)
        if {**cloud.repository.files(candidate), path: files[path]} != files:
            return f"it changes more of {candidate[:8]} than {path}"
        had = environment.values
        new = {field: value for field, value in given_in(files, environment).items() if value != had[field]}
        if start != PROMOTED:
            return self._not_followed(desired, environment, CHANNELED[start], new) or self._on_hold(
                cloud, target, new
            )
        by_hand = BY_HAND in self._context.loop.actor.request
        missing = (self._missing(cloud, desired, *item, by_hand=by_hand) for item in new.items())
        found = next(filter(None, missing), "") if new else f"{target} has all that"
        return found or ("" if by_hand else self._on_hold(cloud, target, new))

    def _not_followed(
        self, desired: RequestedFleet, environment: SharedEnvironment, field: str, new: Mapping[str, str]
    ) -> str:
        """Return why a channel does not give an environment some values, "" where it does."""
        if environment != desired.environments[0] or new.keys() != {field}:
            return f"{environment.name} gets {new}"
        now, since = self._context.loop.clock(), self._context.loop.actor.since
        days = {moment.date() for moment in (since - CLOCKS, now - CLOCKS, now + CLOCKS)}
        listed = [what_follows(environment, withheld, day) for withheld in self.withheld for day in days]
        return "" if any(found.get(field) == new[field] for found in listed) else f"{new} is of no list"

    def _missing(
        self, cloud: MemoryCloud, desired: RequestedFleet, field: str, value: str, *, by_hand: bool
    ) -> str:
        """Return what a value lacks to be proven by what a commit asks for, "" for nothing."""
        source = desired.environments[0]
        here = desired.clusters  # one that is invalid, and was never valid, is in no environment
        names = [
            n
            for n in source.clusters
            if n in here and (not here[n].invalid or cloud.state.cluster(n) is not None)
        ]
        if source.values.get(field) != value:
            return f"{source.name} has not {value} but {source.values}"
        if not by_hand and desired.soak is None:
            return "there is no rule"
        soak = 0 if by_hand else desired.soak or 0
        wrong = (self._unready(cloud, name, field, value, soak) for name in names)
        return next(filter(None, wrong), "") if names else f"{source.name} has no cluster"

    def _unready(self, cloud: MemoryCloud, name: str, field: str, value: str, soak: int) -> str:
        loop, record = self._context.loop, cloud.state.cluster(name)
        ready = self._ready.get((cloud.ports.config.fleet, name))
        if record is None or ready is None or ready.until < loop.actor.since:
            return f"{name} is not Ready"
        if in_spec(record.document["spec"], field) != value and ready.until == NOW:
            return f"{name} has another value"
        if loop.clock() + CLOCKS < ready.since + timedelta(seconds=soak):
            return f"{name} is Ready since {ready.since}, and is watched for {soak} s"
        return ""

    def _on_hold(self, cloud: MemoryCloud, target: str, new: Mapping[str, str]) -> str:
        """Return which value a commit took back, or somebody declined, since somebody promoted it."""
        fleet, history = cloud.ports.config.fleet, self._context.history(cloud)
        for value in new.values():
            declined = history.declined.get((target, value))
            for what, at, known in self._holds((fleet, target, value), declined):
                lifted = history.promoted.get(value, LONG_AGO) + CLOCKS >= at
                if known < self._context.loop.actor.since and not lifted:
                    return f"{target} gets {value}, which {what} at {at}"
        return ""

    def _holds(
        self, given: tuple[str, str, str], declined: datetime | None
    ) -> Iterator[tuple[str, datetime, datetime]]:
        if given in self._withdrawn:
            yield "a commit took back", *self._withdrawn[given]
        if declined is not None:
            yield "somebody declined", declined, declined
