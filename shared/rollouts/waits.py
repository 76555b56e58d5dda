"""Where a cluster stands in a rollout, and why it waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from shared.cluster.forms import UnreadableRecord
from shared.cluster.record import of_health
from shared.cluster.record_parts import Phase
from shared.cluster.reporting.summary import ClusterSummary
from shared.frozen import dataclass, replace
from shared.plan.holds import Closure, HoldKind
from shared.rollouts.calendar import closed
from shared.rollouts.rollout import (
    CheckState,
    GateCheckResult,
    Group,
    Member,
    Rollout,
    StageDecision,
)
from shared.rollouts.strategy import NO_GATE, CheckKind, Gate, GateCheck, RefusedStrategy

# Where a cluster stands in a rollout, by what is recorded of it.

Seen = Mapping[str, ClusterSummary | UnreadableRecord]
"""What is recorded of clusters; one that it lacks was deleted, and one that cannot be read was not."""
_WORKING = (Phase.PROVISIONING, Phase.UPDATING, Phase.STALLED)


class MemberStanding(StrEnum):
    """What a cluster counts as."""

    WAITING = "waiting"
    BUSY = "busy"
    """It waits, and a job of an earlier generation changes it."""
    ASIDE = "set aside"
    """It waits, and cannot take part."""
    IN_FLIGHT = "changing"
    UNKNOWN = "unknown"
    """Its record cannot be read: it counts as one that changes."""
    SUSPENDED = "suspended"
    """It has this rollout's generation, and its suspension, or its sleep, ends first."""
    VERIFIED = "ready"
    FAILED = "failed"
    OUT = "left out"
    """It was deleted, or somebody took it out of the rollout."""


def standing(member: Member, rollout: Rollout, seen: Seen, now: datetime) -> MemberStanding:
    """Return where a member stands; only the generation that the rollout gave it counts as its success."""
    record = seen.get(member.cluster)
    if isinstance(record, UnreadableRecord):
        return MemberStanding.UNKNOWN
    gone = record is None or record.uid != member.uid or record.phase is Phase.DELETING
    if record is not None and record.uid == member.uid and _takes_back(member, record):
        return MemberStanding.WAITING
    if record is None or gone or rollout.skips(member.cluster):
        return MemberStanding.OUT
    if record.generation < member.generation:
        if _cannot_start(member, record, now):
            return MemberStanding.ASIDE
        works = record.phase in _WORKING and not record.settled
        return MemberStanding.BUSY if works else MemberStanding.WAITING
    if record.tried:
        return MemberStanding.ASIDE
    if record.phase is Phase.SUSPENDED or (record.phase is Phase.SLEEPING and not record.settled):
        return MemberStanding.SUSPENDED
    if record.phase is Phase.FAILED or (record.phase is Phase.STALLED and record.times.failed_since):
        return MemberStanding.FAILED
    verified = record.settled and record.observed_generation >= member.generation
    return MemberStanding.VERIFIED if verified and not record.lost else MemberStanding.IN_FLIGHT


def known_in(seen: Seen, cluster: str) -> ClusterSummary | None:
    """Return what is recorded of a cluster, None where that is nothing, or cannot be read."""
    found = seen.get(cluster)
    return None if isinstance(found, UnreadableRecord) else found


def _takes_back(member: Member, record: ClusterSummary) -> bool:
    """Return whether a change waits for nobody, as one that takes a delete back."""
    return member.at_once and record.generation < member.generation


def _cannot_start(member: Member, record: ClusterSummary, now: datetime) -> bool:
    """Return whether a cluster cannot take part now: it is suspended, asleep, stopped, missing or contested.

    One that is unhealthy inside can: the change may be what repairs it.
    """
    suspended = member.suspended_until is not None and member.suspended_until > now
    if record.phase is Phase.SUSPENDED and suspended:
        return True
    lost = bool(record.finding) and not of_health(record.finding)
    return record.contested or lost or record.stays_asleep(now)


class WaitReason(StrEnum):
    """Why a cluster waits."""

    STAGE = "stage"
    """An earlier group has clusters that have not ended, or not succeeded."""
    GUARD = "guard"
    """No cluster of an earlier stage gets what the commit gives Flux: a guard keeps their pins."""
    SOAK = "soak"
    """An earlier group has succeeded, and is watched for a time."""
    APPROVAL = "approval"
    TIME = "time"
    """The gate of its stage opens later."""
    CHECK = "check"
    """A check of the gate of its stage has not passed."""
    CONCURRENCY = "concurrency"
    """As many clusters of its group change as may at a time."""
    BUDGET = "budget"
    """So many clusters of a group have failed that the rollout is paused."""
    STRATEGY = "strategy"
    """The commit names a strategy that it may not select."""
    PAUSED = "paused"
    ABORTED = "aborted"
    BACK = "back"
    """The rollout was aborted, and the pin of the cluster goes back to what it was before."""
    ASIDE = "aside"
    """The cluster itself cannot take part: it is suspended, stopped, missing or contested."""
    WINDOW = "window"
    """None of its change windows is open, or one is and others start first."""
    FREEZE = "freeze"
    SKIPPED = "skipped"
    FLEET_FILE = "fleet-file"
    """The fleet.yaml of a newer commit is invalid, so that no cluster changes."""
    NEXT = "next"
    """Nothing holds it back: it starts with the next message of the planner."""


@dataclass(frozen=True)
class StartWait:
    """Why a cluster does not start: the reason, and the stage and group that it is about.

    ``clusters`` are those that it waits for, or that have failed; ``until`` is when a soak or a freeze ends,
    a window opens or the time of a stage has come, ``since`` when the wait began, by what is recorded; None
    where that is not known.
    ``by`` is who paused or skipped, or answers for a gate or for a freeze, whose name is its subject.
    ``window`` is the name of one, ``missing`` how many people have not approved yet, and ``refused`` what the
    commit selects and may not. ``checks`` is what those said that have not passed, ``asked`` how the address
    of each is asked that asks one, and ``spent`` are the names of those that are not asked again.
    ``stuck`` is where those stand that keep a group from its success in which nothing changes: they have
    failed, or cannot take part; None while something changes.
    ``gate`` is that of a stage that waits for an approval: who gives it, and when. ``pin`` is the commit to
    which a pin goes back, "" where that is not known, and in a wait for a stage the one that its clusters
    get with other changes, or after these. ``guard`` is what keeps the pins of all clusters of a stage, and
    with that those of later ones.
    """

    reason: WaitReason
    stage: str = ""
    group: int = 0
    clusters: tuple[str, ...] = ()
    until: datetime | None = None
    by: StageDecision | None = None
    window: str = ""
    missing: int = 0
    refused: RefusedStrategy | None = None
    since: datetime | None = None
    checks: tuple[GateCheckResult, ...] = ()
    asked: tuple[GateCheck, ...] = ()
    spent: tuple[str, ...] = ()
    stuck: MemberStanding | None = None
    gate: Gate = NO_GATE
    pin: str = ""
    guard: HoldKind | None = None


_SOONEST, _LATEST = timedelta(seconds=30), timedelta(minutes=15)
"""How long after an answer a check is read again: a tenth of the time that its stage has waited."""


def check_again_at(
    said: GateCheckResult | None, check: GateCheck, reached: datetime, now: datetime
) -> datetime:
    """Return when a check of a gate is to be read; a moment from now for one that never was.

    An address is asked once in its interval while its answers count, and less and less otherwise.
    """
    if said is None:
        return now + timedelta(seconds=1)
    pause = min(max((said.at - reached) / 10, _SOONEST), _LATEST)
    if check.asks:
        pause = check.interval if said.state in _COUNTED else max(check.interval, pause)
    return said.at + pause


_COUNTED = (CheckState.RUNNING, CheckState.FAILED)


def unpassed(rollout: Rollout, stage: int) -> tuple[str, ...]:
    """Return the checks of the gate of a stage that have not passed."""
    planned = rollout.stages[stage]
    said = rollout.said(planned.name)
    names = (check.name for check in planned.gate.checks)
    return tuple(name for name in names if name not in said or said[name].state is not CheckState.PASSED)


def spent_checks(rollout: Rollout, stage: int) -> tuple[str, ...]:
    """Return the checks of the gate of a stage that failed too often: they are not asked again."""
    planned = rollout.stages[stage]
    said = rollout.said(planned.name)
    asked = (check for check in planned.gate.checks if check.name in said)
    return tuple(check.name for check in asked if said[check.name].failures > check.failures)


def to_be_read(rollout: Rollout, stage: int) -> Sequence[GateCheck]:
    """Return the checks that are read while a stage waits for any of them.

    A check run that has succeeded is not read again. An address that has answered is, and so is whether
    clusters are ready for upgrades: no answer is old when the stage begins. Once a check has failed too often
    none is, because the stage does not begin.
    """
    left = unpassed(rollout, stage)
    if not left or spent_checks(rollout, stage):
        return ()
    checks = rollout.stages[stage].gate.checks
    return [check for check in checks if check.name in left or check.kind is not CheckKind.RUN]


def checks_due(rollout: Rollout, stage: int, reached: datetime, now: datetime) -> Mapping[str, datetime]:
    """Return when each check is to be read that is read again."""
    said = rollout.said(rollout.stages[stage].name)
    return {
        check.name: check_again_at(said.get(check.name), check, reached, now)
        for check in to_be_read(rollout, stage)
    }


def gate_wait(rollout: Rollout, stage: int, reached: datetime, now: datetime) -> StartWait | None:
    """Return what a stage waits for that was ``reached`` at a time, None if nothing keeps it from beginning.

    Checks are read last, so that their answers are new when the stage begins. Who lets a rollout start
    outside its windows opens the gates that wait for a time or for a check, and none that waits for an
    approval.
    """
    planned = rollout.stages[stage]
    gate, opens = planned.gate, planned.gate.opens(reached)
    by = StageDecision(gate.owner, reached, gate.reason, planned.name) if gate.owner else None
    missing = rollout.missing_approvals(stage, now)
    if missing:
        return StartWait(WaitReason.APPROVAL, planned.name, missing=missing, by=by, since=reached, gate=gate)
    if now < opens and not rollout.people.overridden and stage not in rollout.entered:
        return StartWait(WaitReason.TIME, planned.name, until=opens, by=by, since=reached)
    left = unpassed(rollout, stage)
    if left and not rollout.people.overridden and stage not in rollout.entered:
        said = rollout.said(planned.name)
        again = min(checks_due(rollout, stage, reached, now).values(), default=None)
        found = tuple(
            said.get(name) or GateCheckResult(planned.name, name, CheckState.MISSING, reached)
            for name in left
        )
        spent = spent_checks(rollout, stage)
        about = StartWait(WaitReason.CHECK, planned.name, until=again, by=by, since=reached, checks=found)
        return replace(about, asked=tuple(check for check in gate.checks if check.asks), spent=spent)
    return None


def shut_members(
    rollout: Rollout, standings: Mapping[str, MemberStanding], now: datetime
) -> Mapping[str, Closure]:
    """Return the clusters that could start, if it were not for a window or a freeze."""
    windows = {window.name: window for window in rollout.calendar.windows}
    freezes = {freeze.name: freeze for freeze in rollout.calendar.freezes}
    found = dict[str, Closure]()
    for member in rollout.members:
        waits = (
            standings[member.cluster] in (MemberStanding.WAITING, MemberStanding.BUSY) and not member.at_once
        )
        if rollout.people.overridden or not waits or not (member.windows or member.freezes):
            continue
        own = [windows[name] for name in member.windows]
        reason = closed(own, [freezes[name] for name in member.freezes], member.uid, now)
        if reason is not None:
            found[member.cluster] = reason
    return found


def shut_wait(stage: str, group: int, shut: Closure, reached: datetime) -> StartWait:
    """Return the wait of a cluster for a window or the end of a freeze, whose group was ``reached`` then."""
    since = max(filter(None, (reached, shut.since)))
    if not shut.owner:
        return StartWait(WaitReason.WINDOW, stage, group, until=shut.until, window=shut.name, since=since)
    by = StageDecision(shut.owner, shut.since or since, shut.reason, shut.name)
    return StartWait(WaitReason.FREEZE, stage, group, until=shut.until, by=by, since=since)


# Where the clusters of each group stand, and what the next group waits for.

CHANGING = (MemberStanding.IN_FLIGHT, MemberStanding.UNKNOWN)
WAITS = (MemberStanding.WAITING, MemberStanding.BUSY)
NOT_STARTED = (MemberStanding.WAITING, MemberStanding.BUSY, MemberStanding.ASIDE)


@dataclass(frozen=True)
class GroupStanding:
    """A group with where each of its clusters stands, and since when those that succeeded have been Ready.

    ``reached`` is when it became the next one, and ``failed`` since when clusters of it have failed, or were
    found not to be able to take part.
    """

    stage: int
    number: int
    name: str
    rule: Group
    members: Sequence[Member]
    standings: Mapping[str, MemberStanding]
    ready: Sequence[datetime | None]
    reached: datetime
    failed: Mapping[str, datetime]

    @property
    def spent(self) -> datetime | None:
        """Since when so many clusters have failed that the budget is spent, None where that is not known."""
        times = sorted(self.failed[name] for name in self.named(MemberStanding.FAILED) if name in self.failed)
        return times[self.rule.budget - 1] if len(times) >= self.rule.budget else None

    def named(self, *kinds: MemberStanding) -> tuple[str, ...]:
        """Return the clusters that stand so."""
        return tuple(member.cluster for member in self.members if self.standings[member.cluster] in kinds)

    def counts(self) -> Counter[MemberStanding]:
        """Return how many clusters stand where."""
        return Counter(self.standings[member.cluster] for member in self.members)

    def unfinished(self) -> StartWait | None:
        """Return which clusters the next group waits for, None once enough of them have succeeded."""
        counts = self.counts()
        unfinished = self.named(MemberStanding.WAITING, MemberStanding.BUSY, *CHANGING)
        if unfinished:
            return StartWait(WaitReason.STAGE, self.name, self.number, unfinished, since=self.reached)
        failed = self.named(MemberStanding.FAILED)
        most = len(self.members) - counts[MemberStanding.OUT]
        if counts[MemberStanding.VERIFIED] < min(self.rule.least, most) or (self.rule.all_able and failed):
            left = failed or self.named(MemberStanding.ASIDE, MemberStanding.SUSPENDED)
            stuck = MemberStanding.FAILED if failed else MemberStanding.ASIDE
            return StartWait(WaitReason.STAGE, self.name, self.number, left, since=self.reached, stuck=stuck)
        return None

    def soaking(self, watched: datetime, now: datetime) -> StartWait | None:
        """Return until when the next group waits although this one has succeeded, None if it does not.

        A cluster that has been Ready for longer than the group is ``watched`` counts from then on.
        """
        if not self.rule.soak or not self.ready:
            return None
        known = [watched if at is None else at for at in self.ready]
        ends = max(known) + self.rule.soak
        soak = StartWait(WaitReason.SOAK, self.name, self.number, until=ends, since=watched)
        return soak if ends > now else None


def groups_of(
    rollout: Rollout, standings: Mapping[str, MemberStanding], seen: Seen
) -> Sequence[GroupStanding]:
    """Return the groups of a rollout in their order."""
    members: dict[tuple[int, int], list[Member]] = {place: [] for place in rollout.places()}
    for member in rollout.members:
        members[member.stage, member.group].append(member)
    return [
        GroupStanding(
            stage,
            group,
            rollout.stages[stage].name,
            rollout.stages[stage].groups[group],
            own,
            standings,
            [
                record.times.ready_since
                for member in own
                if standings[member.cluster] is MemberStanding.VERIFIED
                and (record := known_in(seen, member.cluster))
            ],
            rollout.follows(stage, group),
            {
                member.cluster: since
                for member in own
                if (record := known_in(seen, member.cluster)) and (since := record.times.failed_since)
            },
        )
        for (stage, group), own in members.items()
    ]
