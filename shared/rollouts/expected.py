"""The stages of a rollout before it begins, as a plan shows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from shared.rollouts.estimate import Work
from shared.rollouts.rollout import Group, Rollout, Stage
from shared.rollouts.strategy import Gate


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
        return self.stage.approvers if self.stage.approval and self.number == 0 else 0

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
        own = (each for each in rollout.members if (each.stage, each.group) == (stage, group))
        names = tuple(each.cluster for each in own if not each.at_once)
        one = rollout.stages[stage]
        if names:
            yield ExpectedGroup(one, group, one.groups[group], names)


def work_of(groups: Iterable[ExpectedGroup]) -> Iterator[Work]:
    """Yield what is to be done in groups of which no cluster has started."""
    for each in groups:
        yield Work(len(each.clusters), each.rule.bound, each.rule.soak)


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
        yield f"waits {_duration(int(gate.after.total_seconds()))}"
    if gate.not_before:
        yield f"{verb} after {gate.not_before:%Y-%m-%d %H:%M} UTC"
    if checks := len(gate.names):
        yield f"waits for {checks} check{'s' * (checks > 1)}"


def is_one_step(rollout: Rollout, groups: Sequence[ExpectedGroup]) -> bool:
    """Return whether a rollout has no order to show: its clusters start together, and it waits for nobody."""
    if groups and final_gate(rollout) is not None:
        return False
    alone = len(groups) == 1 and len(groups[0].clusters) <= groups[0].rule.concurrency
    return not groups or (alone and not groups[0].asking)


def at_once(rollout: Rollout) -> tuple[str, ...]:
    """Return the clusters whose change waits for no stage."""
    return tuple(each.cluster for each in rollout.members if each.at_once)


def describe_bounds(group: ExpectedGroup) -> str:
    """Return how many clusters of a group change at a time, and what the next group waits for."""
    rule = group.rule
    text = f"{rule.concurrency} at a time, failure budget {rule.budget}"
    if rule.soak:
        text += f", then watched for {_duration(int(rule.soak.total_seconds()))}"
    return text


def _duration(seconds: int) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
