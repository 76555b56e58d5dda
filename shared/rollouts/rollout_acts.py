"""What a person can do to a rollout, and what its record is after that."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from shared.frozen import replace
from shared.rollouts.rollout import Rollout, RolloutState, StageDecision


class ActKind(StrEnum):
    """What a person can do to a rollout."""

    PAUSE = "pause"
    RESUME = "resume"
    APPROVE = "approve"
    SKIP = "skip"
    ABORT = "abort"
    BACK = "back"
    """To abort it, and to have the pins go back that it has moved."""
    OVERRIDE = "override"


def act_on(rollout: Rollout, kind: ActKind, decided: StageDecision, lifts: datetime | None = None) -> Rollout:
    """Return the rollout after an act; the same one twice, in whatever order, changes nothing.

    A resume ``lifts`` the pause of that time, and no other one. The pins of an aborted rollout may go back.
    """
    active = rollout.state is RolloutState.ACTIVE or (
        kind is ActKind.BACK and rollout.state is RolloutState.ABORTED
    )
    if not active or is_as_asked(rollout, kind, decided, lifts):
        return rollout
    people, refused = rollout.people, rollout.refused
    match kind:
        case ActKind.PAUSE:
            people = replace(people, paused=decided, inherited=False)
        case ActKind.RESUME:
            if refused is not None and refused.at == lifts:
                resumed = replace(people, resumed=(*people.resumed, refused.at))
                return replace(rollout, refused=None, people=resumed)
            if people.paused is None or people.paused.at != lifts:
                return rollout
            lifted = (*people.resumed, people.paused.at)
            people = replace(people, paused=None, inherited=False, resumed=lifted)
        case ActKind.APPROVE:
            others = (approval for approval in people.approved if not _is_by_same(approval, decided))
            people = replace(people, approved=(*others, decided))
        case ActKind.SKIP:
            people = replace(people, skipped=(*people.skipped, decided))
        case ActKind.OVERRIDE:
            people = replace(people, overridden=decided)
        case ActKind.ABORT | ActKind.BACK:
            back = decided if kind is ActKind.BACK else None
            people = replace(people, aborted=people.aborted or decided, back=back)
            ended = rollout.ended or decided.at
            return replace(rollout, state=RolloutState.ABORTED, people=people, ended=ended)
    return replace(rollout, people=people)


def is_as_asked(
    rollout: Rollout, kind: ActKind, decided: StageDecision, lifts: datetime | None = None
) -> bool:
    """Return whether a rollout is as an act asks for, by this act or by another one."""
    people = rollout.people
    match kind:
        case ActKind.PAUSE:
            return decided.at in people.resumed or bool(people.paused and not people.inherited)
        case ActKind.RESUME:
            return lifts in people.resumed
        case ActKind.APPROVE:
            return any(_is_by_same(known, decided) and known.at >= decided.at for known in people.approved)
        case ActKind.SKIP:
            return rollout.skips(decided.subject)
        case ActKind.OVERRIDE:
            return people.overridden is not None
        case ActKind.ABORT:
            return people.aborted is not None
        case ActKind.BACK:
            return people.back is not None


def _is_by_same(approval: StageDecision, other: StageDecision) -> bool:
    return (approval.subject, approval.by) == (other.subject, other.by)
