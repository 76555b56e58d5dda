"""How long a rollout takes, and its stages before it begins.

Of each kind of change the fleet keeps the durations of its newest clusters: from the start of the job until
the cluster was verified. A rollout adds its own when it has completed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta

from shared.cluster.reporting.summary import ClusterSummary
from shared.frozen import dataclass
from shared.rollouts.rollout import Group, Rollout, RolloutState, Stage
from shared.rollouts.strategy import Gate
from shared.rollouts.waits import Seen, known_in

Durations = Mapping[str, tuple[int, ...]]
"""Seconds by the kind of change, oldest first."""
KEPT = 50
"""So many durations of a kind are stored."""
ENOUGH = 5
"""With fewer durations of a kind, what is assumed counts."""
MINUTE = 60
ASSUMED: Mapping[str, tuple[int, int, int]] = {
    "versions": (15 * MINUTE, 30 * MINUTE, 90 * MINUTE),
    "nodePools": (5 * MINUTE, 15 * MINUTE, 45 * MINUTE),
    "any": (2 * MINUTE, 5 * MINUTE, 15 * MINUTE),
    "platform": (1 * MINUTE, 3 * MINUTE, 10 * MINUTE),
}
"""A short, a usual and a long change of one cluster, for a fleet that has changed too few."""


@dataclass(frozen=True)
class GroupWork:
    """What is left of a group: how many clusters, how many of them at a time, and how long it is watched."""

    clusters: int
    at_a_time: int
    soak: timedelta = timedelta(0)


@dataclass(frozen=True)
class Estimate:
    """How long a rollout takes at best, usually and at worst, in seconds.

    ``samples`` is how many changes of the ``kind`` that comes from, 0 for what is assumed.
    """

    kind: str
    low: int
    likely: int
    high: int
    samples: int = 0


def estimate(kind: str, groups: Iterable[GroupWork], durations: Durations) -> Estimate:
    """Return how long groups take, one after the other; nothing of approvals, windows and freezes."""
    known = sorted(durations.get(kind, ()))
    enough = len(known) >= ENOUGH
    span = _spread(known) if enough else ASSUMED.get(kind, ASSUMED["any"])
    rounds, soaked = 0, 0
    for group in groups:
        rounds += math.ceil(group.clusters / max(1, group.at_a_time))
        soaked += int(group.soak.total_seconds())
    low, likely, high = (rounds * seconds + soaked for seconds in span)
    return Estimate(kind, low, likely, high, len(known) if enough else 0)


def with_completed(durations: Durations, rollout: Rollout, seen: Seen) -> Durations:
    """Return the durations with those of a rollout that has completed, the newest of its kind.

    What an older rollout had started may be of another kind, and adds nothing.
    """
    if rollout.state is not RolloutState.COMPLETED or not rollout.choice.kind:
        return durations
    members = ((member, known_in(seen, member.cluster)) for member in rollout.members if not member.at_once)
    took = [
        found.times.took
        for member, found in members
        if found is not None
        and found.times.took
        and found.uid == member.uid
        and found.generation == found.observed_generation == member.generation
        and _is_started_by(rollout, found)
    ]
    return {**durations, rollout.choice.kind: (*durations.get(rollout.choice.kind, ()), *took)[-KEPT:]}


def _is_started_by(rollout: Rollout, found: ClusterSummary) -> bool:
    ready, took = found.times.ready_since, timedelta(seconds=found.times.took)
    return ready is not None and ready - took >= rollout.began


def describe_estimate(found: Estimate) -> str:
    """Return an estimate as a sentence that says what it is based on."""
    low, likely, high = (span(seconds) for seconds in (found.low, found.likely, found.high))
    spread = f"about {likely}" if low == high else f"about {likely}, {low} to {high}"
    what = "other changes" if found.kind == "any" else f"changes of {found.kind}"
    if found.samples:
        basis = f"by the last {found.samples} {what} in this fleet"
    else:
        basis = f"assumed, because fewer than {ENOUGH} {what} have ended in this fleet"
    return f"{spread} ({basis}); approvals, gates, windows and freezes come on top"


def span(seconds: int) -> str:
    """Return a duration as text, in minutes, or in seconds below one."""
    if seconds < MINUTE:
        return f"{seconds}s"
    days, rest = divmod(round(seconds / MINUTE), 24 * 60)
    parts = ((days, "d"), (rest // 60, "h"), (rest % 60, "m"))
    return " ".join(f"{number}{unit}" for number, unit in parts if number)


def _spread(known: Sequence[int]) -> tuple[int, int, int]:
    """Return the tenth, the fiftieth and the ninetieth percentile of sorted seconds."""
    last = len(known) - 1
    low, likely, high = (known[round(last * share)] for share in (0.1, 0.5, 0.9))
    return low, likely, high


# The stages of a rollout before it begins, as a plan shows them.


@dataclass(frozen=True)
class ExpectedGroup:
    """A group with its clusters, in the order in which they start."""

    stage: Stage
    number: int
    rule: Group
    clusters: tuple[str, ...]

    @property
    def asks(self) -> int:
        """How many people are asked to approve its stage before it begins."""
        return self.stage.gate.approvers if self.number == 0 else 0

    @property
    def asking(self) -> str:
        """What its stage waits for once those before it have passed, as text, "" for nothing."""
        if self.number:
            return ""
        several = f"waits for {self.asks} approvals" if self.asks else ""
        asked = "waits for an approval" if self.asks == 1 else several
        return ", ".join(filter(None, (asked, *_opening(self.stage.gate, "begins"))))


def groups_of(rollout: Rollout) -> Iterator[ExpectedGroup]:
    """Yield the groups in order, without clusters that wait for no stage."""
    for stage, group in rollout.places():
        own = (member for member in rollout.members if (member.stage, member.group) == (stage, group))
        names = tuple(member.cluster for member in own if not member.at_once)
        planned = rollout.stages[stage]
        if names:
            yield ExpectedGroup(planned, group, planned.groups[group], names)


def work_of(groups: Iterable[ExpectedGroup]) -> Iterator[GroupWork]:
    """Yield what is to be done in groups of which no cluster has started."""
    for group in groups:
        yield GroupWork(len(group.clusters), group.rule.bound, group.rule.soak)


def final_gate(rollout: Rollout) -> Gate | None:
    """Return the gate after the last stage, None for none."""
    last = rollout.stages[-1] if rollout.stages else None
    return last.gate if last is not None and last.is_final else None


def describe_final(gate: Gate) -> str:
    """Return what a rollout waits for after its last stage, without what its owner wrote."""
    return ", ".join(_opening(gate, "ends"))


def _opening(gate: Gate, verb: str) -> Iterator[str]:
    """Yield what opens a gate besides approvals."""
    if gate.after:
        yield f"waits {span(int(gate.after.total_seconds()))}"
    if gate.not_before:
        yield f"{verb} after {gate.not_before:%Y-%m-%d %H:%M} UTC"
    if checks := len(gate.checks):
        yield f"waits for {checks} check{'s' * (checks > 1)}"


def is_one_step(rollout: Rollout, groups: Sequence[ExpectedGroup]) -> bool:
    """Return whether a rollout has no order to show: its clusters start together, and it waits for nobody."""
    if groups and final_gate(rollout) is not None:
        return False
    alone = len(groups) == 1 and len(groups[0].clusters) <= groups[0].rule.concurrency
    return not groups or (alone and not groups[0].asking)


def at_once(rollout: Rollout) -> tuple[str, ...]:
    """Return the clusters whose change waits for no stage."""
    return tuple(member.cluster for member in rollout.members if member.at_once)


def describe_bounds(group: ExpectedGroup) -> str:
    """Return how many clusters of a group change at a time, and what the next group waits for."""
    rule = group.rule
    text = f"{rule.concurrency} at a time, failure budget {rule.budget}"
    if rule.soak:
        text += f", then watched for {span(int(rule.soak.total_seconds()))}"
    return text
