"""The rules of promotions: what is proven is proposed, never what was withdrawn; no app writes its branch.

They are those of docs/fleet.md, "Promotions". When a cluster is Ready is known from its records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import yaml

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.ports import FleetRecord
from simulation.desired_state import RequestedFleet
from simulation.history import LONG_AGO
from simulation.invariants.azure_writes import KNOWN
from simulation.invariants.context import CLOCKS, Context
from simulation.rule import RuleViolated

RULE, MAIN = "promotion", "main branch"
BRANCHES = "roadstead/promote/"
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
        self._withdrawn: defaultdict[str, dict[str, tuple[datetime, datetime]]] = defaultdict(dict)
        """By fleet and value: the time of the plan that took it from the environment, and of its save."""

    def saved(self, cloud: MemoryCloud, record: ClusterRecord) -> None:
        """Note since when a cluster is Ready."""
        key, now = (cloud.ports.config.fleet, record.name), self._context.loop.clock()
        verified = record.phase is Phase.READY and record.observed_generation == record.generation
        known = self._ready.get(key)
        same = known is not None and (known.uid, known.generation) == (record.uid, record.generation)
        if not (verified and not record.job.active):
            if known is not None and known.until == NOW:
                known.until = now
        elif known is None or not same or known.until != NOW:
            self._ready[key] = ReadySpan(record.uid, record.generation, now)

    def planned(self, cloud: MemoryCloud, record: FleetRecord) -> None:
        """Note what a plan that has ended takes from the environment that is proposed something."""
        fleet, history = cloud.ports.config.fleet, self._context.history(cloud)
        before, now = self._planned.get(fleet, ""), record.commit
        if not now or record.planning or now == before or not history.desired(now).environments:
            return
        desired = history.desired(now)
        if desired.invalid:
            return
        self._planned[fleet] = now
        has = desired.environments[-1].components
        had = history.desired(before).environments[-1].components if before else has
        if had != has:
            self._withdrawn[fleet][had] = (record.at or LONG_AGO, self._context.loop.clock())
        self._withdrawn[fleet].pop(has, None)
        history.declined.pop(has, None)

    def proposed(self, cloud: MemoryCloud, branch: str, commit: str) -> None:
        """Check a commit that an app gives to a branch."""
        fleet, actor = cloud.ports.config.fleet, self._context.loop.actor
        if branch == cloud.ports.config.branch:
            raise RuleViolated(MAIN, f"{fleet} writes {commit[:8]} to {branch}")
        if not branch.startswith(f"{BRANCHES}{fleet}/") or self._context.replaced[fleet]:
            return
        target = branch.rpartition("/")[2]
        written = yaml.safe_load(cloud.repository.files(commit)[f"environments/{target}.yaml"])
        value, by_hand = written["spec"]["defaults"]["flux"]["components"], BY_HAND in actor.request
        history, known = self._context.history(cloud), cloud.state.fleet().commit
        candidates = {*history.heads_since(actor.since - KNOWN), known} - {""}  # of tables without a plan
        missing = [self._missing(cloud, history.desired(c), value, by_hand=by_hand) for c in candidates]
        if all(missing):
            raise RuleViolated(RULE, f"{fleet} proposes {value} to {target}, and {missing[0]}")
        if not by_hand:
            self._not_on_hold(cloud, value)

    def _missing(self, cloud: MemoryCloud, desired: RequestedFleet, value: str, *, by_hand: bool) -> str:
        """Return what a value lacks to be proven by what a commit asks for, "" for nothing."""
        if not desired.environments:
            return "there is no environment"
        source = desired.environments[0]
        here = desired.clusters  # one that is invalid, and was never valid, is in no environment
        names = [
            n
            for n in source.clusters
            if n in here and (not here[n].invalid or cloud.state.cluster(n) is not None)
        ]
        if source.components != value:
            return f"{source.name} has {source.components}"
        if not by_hand and desired.soak is None:
            return "there is no rule"
        wrong = (self._unready(cloud, name, value, 0 if by_hand else desired.soak or 0) for name in names)
        return next(filter(None, wrong), "") if names else f"{source.name} has no cluster"

    def _unready(self, cloud: MemoryCloud, name: str, value: str, soak: int) -> str:
        loop, record = self._context.loop, cloud.state.cluster(name)
        ready = self._ready.get((cloud.ports.config.fleet, name))
        if record is None or ready is None or ready.until < loop.actor.since:
            return f"{name} is not Ready"
        if record.document["spec"]["flux"]["components"] != value and ready.until == NOW:
            return f"{name} has another value"
        if loop.clock() + CLOCKS < ready.since + timedelta(seconds=soak):
            return f"{name} is Ready since {ready.since}, and is watched for {soak} s"
        return ""

    def _not_on_hold(self, cloud: MemoryCloud, value: str) -> None:
        """Check that no commit took a value back, and nobody declined it, since somebody promoted it."""
        fleet, history = cloud.ports.config.fleet, self._context.history(cloud)
        for what, at, known in self._holds(fleet, value, history.declined.get(value)):
            lifted = history.promoted.get(value, LONG_AGO) + CLOCKS >= at
            if known < self._context.loop.actor.since and not lifted:
                raise RuleViolated(RULE, f"{fleet} proposes {value}, which {what} at {at}")

    def _holds(
        self, fleet: str, value: str, declined: datetime | None
    ) -> Iterator[tuple[str, datetime, datetime]]:
        if value in self._withdrawn[fleet]:
            yield "a commit took back", *self._withdrawn[fleet][value]
        if declined is not None:
            yield "somebody declined", declined, declined
