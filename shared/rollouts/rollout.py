"""The record of a rollout: its strategy as it was when it began, its clusters, and what people decided.

Which clusters have started, failed or are verified is not in it: their own records say so. So no crash can
make the two disagree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from shared.frozen import dataclass, field, replace
from shared.language.pin import Pin
from shared.plan.holds import HoldKind
from shared.rollouts.calendar import Freeze, Window
from shared.rollouts.strategy import (
    NO_GATE,
    NO_LINE,
    Gate,
    GateCheck,
    Line,
    RefusedStrategy,
    StrategyChoice,
)


class RolloutState(StrEnum):
    """Whether a rollout still starts clusters."""

    ACTIVE = "active"
    COMPLETED = "completed"
    ABORTED = "aborted"
    SUPERSEDED = "superseded"


@dataclass(frozen=True)
class Group:
    """A group with its numbers of clusters.

    ``least`` clusters must be Ready for it to pass; ``all_able``: so must every one that can take part.
    """

    concurrency: int
    budget: int
    least: int
    all_able: bool = True
    soak: timedelta = timedelta(0)

    @property
    def bound(self) -> int:
        """How many of its clusters can be changing and failed, together."""
        return min(self.concurrency, self.budget)


@dataclass(frozen=True)
class HeldStage:
    """A stage of which no cluster gets what a commit gives Flux: a ``guard`` keeps the pins of ``clusters``.

    The guard is that of a plan, or that their manifests are invalid.
    """

    stage: str
    clusters: tuple[str, ...]
    guard: HoldKind


@dataclass(frozen=True)
class Stage:
    """A stage that has clusters; one without groups is the gate after the last one.

    ``back``: they go back to what they had before the rollout that was superseded. No pause and no failure of
    that one keeps them from it. ``ahead``: the paused rollout that was superseded does not hold them back.
    ``gate`` is what it waits for, and ``reached`` when the rollout that was superseded reached it, None if it
    did not, or if a stage before it has changed since. ``commit`` is what it releases where nothing but pins
    moves in it, "" for what its rollout does. ``apart``: neither it nor those after it wait for a stage
    before it. ``after`` are clusters of stages before it that get the commit, or get it later, with other
    changes; ``held`` are stages before it that do not get it at all.
    """

    name: str
    groups: tuple[Group, ...]
    back: bool = False
    ahead: bool = False
    gate: Gate = NO_GATE
    reached: datetime | None = None
    commit: str = ""
    apart: bool = False
    after: tuple[str, ...] = ()
    held: tuple[HeldStage, ...] = ()

    @property
    def plain(self) -> str:
        """Its name as written; that of a stage with a commit begins with that."""
        return self.name.removeprefix(f"{self.commit[:8]}:") if self.commit else self.name

    @property
    def is_final(self) -> bool:
        """Whether it is the gate after the last stage, which no cluster waits for."""
        return not self.groups

    @property
    def is_gated(self) -> bool:
        """Whether it waits for more than the stages before it."""
        return self.gate != NO_GATE


@dataclass(frozen=True)
class Member:
    """A cluster of a rollout, and the generation that this rollout gives it.

    ``before`` is the digest of the spec that it had. ``suspended_until`` is when a suspension ends that its
    new spec has. ``at_once``: its change waits for nobody, because Azure does not see it. ``windows`` and
    ``freezes`` are the names of those that are for it. ``earlier`` is the pin that its change moves, one
    without a commit where that is not known, and None where the pin stays. ``systems`` has the earlier pins
    of those whose pins it moves. ``back``: the cluster has gone back to all that. ``platform``: nothing but
    its pin changes; ``later``: that moves after this change.
    ``stays``: the cluster has what an earlier rollout gave it, because a guard keeps its pin.
    """

    cluster: str
    uid: str
    generation: int
    stage: int
    group: int
    before: str = ""
    suspended_until: datetime | None = None
    at_once: bool = False
    windows: tuple[str, ...] = ()
    freezes: tuple[str, ...] = ()
    earlier: Pin | None = None
    back: bool = False
    platform: bool = False
    later: bool = False
    systems: Mapping[str, Pin] = field(default_factory=dict)
    stays: bool = False

    @property
    def earlier_pins(self) -> tuple[Pin, ...]:
        """The pins that it can go back to, the cluster's first."""
        own = (self.earlier,) if self.earlier and self.earlier.commit else ()
        return (*own, *self.systems.values())

    @property
    def earlier_in_fleet(self) -> Pin | None:
        """The pin that a commit moves of a cluster that pulls the fleet's repository, None for any other."""
        return None if self.earlier is None or self.earlier.source else self.earlier


@dataclass(frozen=True)
class GroupPass:
    """A group that has passed, or only succeeded so far, and when that was found."""

    stage: int
    group: int
    at: datetime


@dataclass(frozen=True)
class StageDecision:
    """What somebody decided, of a stage or a cluster: who, when, and why.

    ``person`` is False for the holder of a key, and for an app.
    """

    by: str
    at: datetime
    reason: str = ""
    subject: str = ""
    person: bool = True


class CheckState(StrEnum):
    """What a check of a gate said; only one that has passed opens it."""

    PASSED = "passed"
    FAILED = "failed"
    RUNNING = "running"
    MISSING = "missing"
    UNKNOWN = "unknown"
    """It could not be read."""


@dataclass(frozen=True)
class GateCheckResult:
    """What a check of the gate of a stage said, and when; ``detail`` is for people alone.

    A check that asks an address counts its consecutive ``successes``, and all of its ``failures``.
    """

    stage: str
    check: str
    state: CheckState
    at: datetime
    detail: str = ""
    successes: int = 0
    failures: int = 0

    def after(self, asked: GateCheck, met: bool | None, at: datetime, detail: str) -> GateCheckResult:
        """Return it after an answer that was a success, a failure or, with None, neither."""
        successes, failures = self.successes + 1 if met else 0, self.failures + (met is False)
        state = CheckState.PASSED if successes >= asked.successes else CheckState.RUNNING
        if not met:
            state = CheckState.MISSING if met is None else CheckState.FAILED
        return replace(self, state=state, at=at, detail=detail, successes=successes, failures=failures)

    def unanswered(self, at: datetime, detail: str) -> GateCheckResult:
        """Return it after a question that got no answer: no failure, and the end of a series of successes."""
        return replace(self, state=CheckState.UNKNOWN, at=at, detail=detail, successes=0)


@dataclass(frozen=True)
class Decisions:
    """What people decided of a rollout."""

    paused: StageDecision | None = None
    """The pause that nobody has lifted, None for none."""
    inherited: bool = False
    """Whether that was one of the rollout which this one supersedes."""
    resumed: tuple[datetime, ...] = ()
    """The times of the pauses that were lifted."""
    approved: tuple[StageDecision, ...] = ()
    """The approvals of stages."""
    skipped: tuple[StageDecision, ...] = ()
    """The clusters that were taken out."""
    aborted: StageDecision | None = None
    """Who ended it, None for nobody."""
    back: StageDecision | None = None
    """Who has the pins of the clusters that it has changed go back, None for nobody."""
    overridden: StageDecision | None = None
    """Who lets it start clusters outside their windows and in freezes, None for nobody."""


@dataclass(frozen=True)
class RolloutCalendar:
    """The windows and freezes of changes; members name those that are for them."""

    windows: tuple[Window, ...] = ()
    freezes: tuple[Freeze, ...] = ()


@dataclass(frozen=True)
class Rollout:
    """What one commit does to the clusters that it changes."""

    commit: str
    began: datetime
    stages: tuple[Stage, ...]
    members: tuple[Member, ...]
    """The clusters, in the order in which they start."""
    state: RolloutState = RolloutState.ACTIVE
    passed: tuple[GroupPass, ...] = ()
    """The groups that have passed."""
    watched: tuple[GroupPass, ...] = ()
    """The groups that have succeeded, and since when they are watched."""
    people: Decisions = Decisions()
    """What people decided."""
    failures: tuple[str, ...] = ()
    """The failed clusters of a completed rollout."""
    ended: datetime | None = None
    superseded_by: str = ""
    calendar: RolloutCalendar = RolloutCalendar()
    """When its clusters may start."""
    entered: tuple[int, ...] = ()
    """The stages that started after an approval."""
    choice: StrategyChoice = StrategyChoice()
    """Its strategy."""
    refused: RefusedStrategy | None = None
    """A selection of a strategy that nobody has resumed in spite of it."""
    checked: tuple[GateCheckResult, ...] = ()
    """What the checks of its gates said last."""
    since: str = ""
    """The commit after which it began to differ from what the fleet had.

    It is the one that was planned before with a valid fleet.yaml, or that of the rollout before, if that did
    not complete or left clusters as they were.
    """
    sources: tuple[str, ...] = ()
    """What its clusters pull of sources besides the fleet repository, which move without a commit of that."""
    line: Line = NO_LINE
    """Which commit of the platform each stage is to have."""
    etag: str = field(default="", compare=False)

    def places(self) -> Iterator[tuple[int, int]]:
        """Yield the numbers of every stage and group, in order."""
        for stage, planned in enumerate(self.stages):
            yield from ((stage, group) for group in range(len(planned.groups)))

    def has_passed(self, stage: int, group: int) -> bool:
        """Return whether a group was found to have passed."""
        return any((done.stage, done.group) == (stage, group) for done in self.passed)

    def stage_has_passed(self, stage: int) -> bool:
        """Return whether each group of a stage was found to have passed."""
        return all(self.has_passed(stage, group) for group in range(len(self.stages[stage].groups)))

    def begins(self, stage: int) -> int:
        """Return the first of the stages that follow each other up to this one."""
        final = self.stages[stage].is_final  # it comes after all
        return next((place for place in range(stage, 0, -1) if self.stages[place].apart and not final), 0)

    def reached(self, stage: int) -> datetime | None:
        """Return since when a stage is the next one, None while one before it has not passed."""
        first = self.begins(stage)
        before = [place for place in self.places() if first <= place[0] < stage]
        passed = {(done.stage, done.group): done.at for done in self.passed}
        if any(place not in passed for place in before):
            return None
        return self.stages[stage].reached or max((passed[place] for place in before), default=self.began)

    def follows(self, stage: int, group: int) -> datetime:
        """Return when the last group before one was found to have passed, or when the rollout began."""
        earlier = self.stages[stage].reached if group == 0 else None
        if earlier is not None:
            return earlier
        first = (self.begins(stage), 0)
        before = (done.at for done in self.passed if first <= (done.stage, done.group) < (stage, group))
        return max(before, default=self.began)

    def said(self, stage: str) -> dict[str, GateCheckResult]:
        """Return what each check of the gate of a stage said last."""
        return {result.check: result for result in self.checked if result.stage == stage}

    def missing_approvals(self, stage: int, now: datetime) -> int:
        """Return how many more people must approve a stage; nobody once it has entered."""
        planned = self.stages[stage]
        if stage in self.entered:
            return 0
        given = {approval.by for approval in self._approvals(planned, now)}
        return max(0, planned.gate.approvers - len(given))

    def approves(self, name: str, by: str, now: datetime) -> bool:
        """Return whether an approval of a stage by somebody counts."""
        return any(approval.by == by for approval in self._approvals_of(name, now))

    def has_people(self, name: str, now: datetime) -> bool:
        """Return whether a person approves a stage, next to whom a key or an app is nobody."""
        return any(approval.person for approval in self._approvals_of(name, now))

    def _approvals_of(self, name: str, now: datetime) -> Iterator[StageDecision]:
        for stage in self.stages:
            if stage.name == name:
                yield from self._approvals(stage, now)

    def _approvals(self, stage: Stage, now: datetime) -> Sequence[StageDecision]:
        """Return what approves a stage: a key or an app is nobody next to people, one of whom may have it."""
        given = (approval for approval in self.people.approved if approval.subject == stage.name)
        own = (approval for approval in given if stage.gate.takes(approval.at))
        expires = stage.gate.expires
        found = [approval for approval in own if expires is None or now < approval.at + expires]
        return [approval for approval in found if approval.person] or found

    def skips(self, cluster: str) -> bool:
        """Return whether somebody took a cluster out of the rollout."""
        return any(decision.subject == cluster for decision in self.people.skipped)

    def held_before(self, stage: int) -> HeldStage | None:
        """Return a stage before one that gets nothing of the commit, None for none.

        Clusters that somebody took out keep nobody waiting.
        """
        for held in self.stages[stage].held:
            left = tuple(name for name in held.clusters if not self.skips(name))
            if left:
                return replace(held, clusters=left)
        return None

    @property
    def clusters(self) -> Sequence[str]:
        """Its clusters, and those whose pins guards keep: all that somebody can take out."""
        held = (name for stage in self.stages for known in stage.held for name in known.clusters)
        return [*dict.fromkeys((*(member.cluster for member in self.members), *held))]
