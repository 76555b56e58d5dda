"""Which commit of the platform each stage is to have, while commits come faster than stages soak.

The first stage takes the head, and any other one the newest commit that has passed the stage before it. A
stage keeps what a cluster of it is Ready with, or what somebody has approved, until that has passed or
failed: before that, a newer commit cuts nothing short, and may be the correction. An approval keeps nothing
that the stage before it has dropped before it passed there. A stage to which
nothing new was offered is to have what the stage before it is to have, once that has passed there: so a
single commit goes through all stages in turn.

A commit that was refused as a whole is in no stage, and none keeps it: the next commit takes its place.

A stage that fails takes the head, after all stages before it: that is where its correction is. A pause, an
abort, a refused strategy and a head that takes a change back end the line: every stage takes the head, in
turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from shared.cluster.record_parts import Phase
from shared.frozen import dataclass, replace
from shared.rollouts.begin import UNDER_WAY
from shared.rollouts.decide import Decision, decide
from shared.rollouts.rollout import Member, Rollout, RolloutState
from shared.rollouts.strategy import Line, StageTarget
from shared.rollouts.waits import MemberStanding, Seen, known_in, standing


def line_of(
    names: Sequence[str],
    before: Rollout | None,
    seen: Seen,
    now: datetime,
    head: str,
    *,
    newest: str = "",
    reverts: bool = False,
) -> Line:
    """Return what each stage is to have at a head; ``names`` are the stages, in order.

    ``before`` is the rollout that is under way, of this head or an earlier one, None for none. ``newest`` is
    an earlier commit with the same platform as the head, "" for none. ``reverts``: the head takes back what
    that has changed.
    """
    if before is not None and before.commit == head and _stands(before):
        return before.line
    known = before.line.targets if before else ()
    if before is None or reverts or _stands(before) or [target.stage for target in known] != [*names]:
        return Line(head, tuple(StageTarget(name, head) for name in names))
    newest, never = newest or head, before.line.newest if before.line.refused else ""
    standings = list(_standings(before, seen, now))
    failed = max((place for place, found in enumerate(standings) if found.failed), default=-1)
    line = list[StageTarget]()
    for place, (target, found) in enumerate(zip(known, standings, strict=True)):
        released = target.commit != never
        # Clusters came since if it has passed what it is to have.
        before_it = "" if target.passed in (target.commit, never) else target.passed
        passed = target.commit if found.passed and released else before_it
        offer = line[-1].passed if line else ""
        same = place > 0 and known[place - 1].commit == target.commit
        dropped = same and target.commit not in (line[-1].commit, offer)
        if place <= failed:
            commit = newest
        elif released and (found.busy or (found.approved and not dropped)):
            commit = target.commit
        elif not line:
            commit = newest
        else:
            commit = offer if offer not in ("", passed) else line[-1].commit
        held = target.held and commit == target.commit
        line.append(StageTarget(target.stage, commit, passed, held=held))
    return Line(newest, tuple(line))


def splits(line: Line, before: Rollout | None, head: str) -> bool:
    """Return whether the platform goes through stages of its own; the rollout of a head stays so."""
    known = before if before is not None and before.commit == head else None
    stays = known is not None and (is_to_split(known) or _is_split(known))
    return stays or any(commit != head for commit in line.commits)


def is_to_split(rollout: Rollout) -> bool:
    """Return whether stages wait in it for one that does not get the platform: no manifest waits for that.

    A commit that selects its strategy has the stages of that alone.
    """
    held = any(stage.held and not stage.commit for stage in rollout.stages)
    return held and not rollout.choice.selected and not _stands(rollout)


def _is_split(rollout: Rollout) -> bool:
    """Return whether the platform has stages of its own, or gets them once manifests have changed first."""
    stages, members = rollout.stages, rollout.members
    return any(stage.commit for stage in stages) or any(member.later for member in members)


def moves(rollout: Rollout, seen: Seen, now: datetime) -> bool:
    """Return whether a plan of all clusters is due, because pins may move that it has not moved.

    That is so where a stage is to have another commit than the plan says, where a cluster has all else, and
    where all has ended without some.
    """
    ended = rollout.state is RolloutState.COMPLETED and any(stage.commit for stage in rollout.stages)
    if ended and any(target.held for target in rollout.line.targets):
        return True
    if is_to_split(rollout):
        return True
    later = (member for member in rollout.members if member.later)
    if any(standing(member, rollout, seen, now) is MemberStanding.VERIFIED for member in later):
        return True
    line = rollout.line
    names = [target.stage for target in line.targets]
    now_due = line_of(names, rollout, seen, now, rollout.commit, newest=line.newest)
    return line.lags and now_due.commits != line.commits


def _stands(rollout: Rollout) -> bool:
    """Return whether a rollout starts nothing more, or clusters come first that no stage holds."""
    first = (place for place, stage in enumerate(rollout.stages) if stage.back or stage.ahead)
    stopped = rollout.people.paused is not None or rollout.refused is not None
    over = rollout.state not in UNDER_WAY
    return over or stopped or not all(map(rollout.stage_has_passed, first))


@dataclass(frozen=True)
class _StageState:
    """Whether a stage has passed what it was to have, what keeps it there, and whether clusters failed.

    ``busy``: a cluster is Ready with it, and the stage goes on; ``approved``: somebody has approved it.
    """

    passed: bool
    busy: bool = False
    approved: bool = False
    failed: bool = False


def _standings(rollout: Rollout, seen: Seen, now: datetime) -> Iterator[_StageState]:
    """Yield how each stage of the line stands; one without clusters as that before it of its commit.

    A cluster whose pin a guard keeps shows nothing of what its stage is to have, nor does one that pulls
    another source than the fleet's repository.
    """
    decision = decide(replace(rollout, state=RolloutState.ACTIVE), seen, now)
    last: tuple[str, bool] | None = None
    for target in rollout.line.targets:
        own = [
            member
            for member in rollout.members
            if member.earlier_in_fleet is not None
            and not member.stays
            and rollout.stages[member.stage].plain == target.stage
        ]
        found = (
            _standing(own, decision, seen, now)
            if own
            else _StageState(last is None or last != (target.commit, False))
        )
        found = replace(found, passed=found.passed and not target.held)
        last = (target.commit, found.passed)
        yield found


def _standing(own: Sequence[Member], decision: Decision, seen: Seen, now: datetime) -> _StageState:
    rollout, stages = decision.rollout, {member.stage for member in own}
    if all(map(rollout.stage_has_passed, stages)):
        return _StageState(passed=True)
    standings = {decision.standings[member.cluster] for member in own}
    summaries = (known_in(seen, member.cluster) for member in own)
    if MemberStanding.FAILED in standings or any(
        found and found.phase is Phase.STALLED for found in summaries
    ):
        return _StageState(passed=False, failed=True)
    goes_on = standings & _GOES_ON or stages & {watch.stage for watch in rollout.watched}
    verified = MemberStanding.VERIFIED in standings and bool(goes_on)
    approved = any(_is_approved(rollout, stage, now) for stage in stages)
    return _StageState(passed=False, busy=verified, approved=approved)


_GOES_ON = {MemberStanding.IN_FLIGHT, MemberStanding.UNKNOWN, MemberStanding.WAITING, MemberStanding.BUSY}


def _is_approved(rollout: Rollout, stage: int, now: datetime) -> bool:
    """Return whether a stage has started after approvals, or somebody has approved it."""
    asked = rollout.stages[stage].gate.approvers
    return stage in rollout.entered or rollout.missing_approvals(stage, now) < asked
