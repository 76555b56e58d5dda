"""Rollouts without a cloud: clusters as summaries, and what a planner would do with a decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from shared.cluster.recipes import Step
from shared.cluster.record_parts import Phase
from shared.cluster.reporting.summary import ClusterSummary, SummaryPlace, SummaryTimes
from shared.rollouts.begin import Candidate, begin
from shared.rollouts.decide import Decision, decide
from shared.rollouts.rollout import Member, Rollout
from shared.rollouts.shut import ClusterPlace
from shared.rollouts.strategy import Gate, GroupRule, StageRule

NOW = datetime(2027, 1, 2, 3, 4, 5, tzinfo=UTC)
A_MOMENT = timedelta(seconds=1)


def summary(name: str, *, generation: int = 1, phase: Phase = Phase.READY) -> ClusterSummary:
    """Return a cluster that has been Ready at its generation since before any rollout."""
    observed = generation if phase is Phase.READY else generation - 1
    ready_since = NOW - timedelta(days=1) if phase is Phase.READY else None
    return ClusterSummary(
        name, f"uid-{name}", phase, phase, Step.VERIFY, "", generation, observed, False,
        SummaryPlace("", "eastus", "", ""),
        times=SummaryTimes(ready_since=ready_since),
    )  # fmt: skip


def candidate(name: str, environment: str = "", *, generation: int = 2) -> Candidate:
    """Return a cluster that a commit changes."""
    member = Member(name, f"uid-{name}", generation, 0, 0, "old")
    return Candidate(member, ClusterPlace(name, environment, "eastus", {}), "new")


def stage(name: str, *groups: GroupRule, approval: bool = False) -> StageRule:
    """Return a stage that has the clusters of the environment of its name."""
    gate = Gate(approvers=int(approval))
    return StageRule(name, environments=(name,), gate=gate, groups=groups or (GroupRule(),))


class Fleet:
    """The clusters of a fleet and its rollout; each call is what one message does in the app.

    Clusters that are ``aside`` were found stopped before the rollout began.
    """

    def __init__(
        self, strategy: tuple[StageRule, ...], environments: Mapping[str, str], *, aside: Sequence[str] = ()
    ) -> None:
        self.now, self.strategy = NOW, strategy
        self.seen = {name: summary(name) for name in environments}
        self.environments = environments
        for name in aside:
            self._set(name, phase=Phase.FAILED, finding="ClusterStopped")
        candidates = [replace(candidate(name, of), aside=name in aside) for name, of in environments.items()]
        self.rollout: Rollout = begin("a" * 40, strategy, candidates, None, NOW)

    def decide(self) -> Decision:
        """Return what may happen now, and keep the record as the planner saves it."""
        decision = decide(self.rollout, self.seen, self.now)
        self.rollout = decision.rollout
        return decision

    def start(self) -> tuple[str, ...]:
        """Start what may start."""
        names = self.decide().start
        for name in names:
            known = self.seen[name]
            times = replace(known.times, ready_since=None)
            self._set(name, generation=known.generation + 1, phase=Phase.UPDATING, times=times)
        return names

    def end(self, name: str, phase: Phase = Phase.READY) -> None:
        """Let the job of a cluster end."""
        ready = phase is Phase.READY
        observed = self.seen[name].generation if ready else self.seen[name].observed_generation
        at, failed = self.now if ready else None, self.now if phase is Phase.FAILED else None
        times = replace(self.seen[name].times, ready_since=at, failed_since=failed)
        self._set(name, phase=phase, observed_generation=observed, times=times)

    def wait(self, time: timedelta = A_MOMENT) -> None:
        """Let time pass."""
        self.now += time

    def changing(self) -> list[str]:
        """Return the clusters whose jobs run."""
        return [name for name, record in self.seen.items() if record.phase is Phase.UPDATING]

    def _set(self, name: str, **fields: object) -> None:
        self.seen[name] = replace(self.seen[name], **fields)  # type: ignore[arg-type]
