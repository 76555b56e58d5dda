"""What a person can do to a rollout, and what its record is after that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from enum import StrEnum

from shared.cluster.record_parts import Phase
from shared.frozen import replace
from shared.language.pin import Pin
from shared.rollouts.rollout import Member, Rollout, RolloutState, StageDecision
from shared.rollouts.waits import Seen, StartWait, WaitReason, known_in


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


# The pins that go back because somebody aborted a rollout so: of which clusters, and to which commits.
#
# A cluster that a rollout has changed has the generation that the rollout gave it. With the next one it goes
# back. The clusters' records alone say who has gone: so no crash can have a cluster go back twice.


def goes_back(member: Member, uid: str, generation: int) -> bool:
    """Return whether a cluster has what its rollout changed, and earlier pins that are known.

    One that has gone back, and whose pin a guard keeps where it is, may have the generation of its member.
    """
    has = (member.uid, member.generation) == (uid, generation)
    return has and not member.back and bool(member.earlier_pins)


def pins_back(rollout: Rollout, seen: Seen) -> Mapping[str, tuple[Pin, ...]]:
    """Return the pins to which clusters are still to go back; none unless somebody has them go back."""
    if rollout.state is not RolloutState.ABORTED or rollout.people.back is None:
        return {}
    return {
        member.cluster: member.earlier_pins
        for member in rollout.members
        if (record := known_in(seen, member.cluster))
        and record.phase is not Phase.DELETING
        and goes_back(member, record.uid, record.generation)
    }


def waits_back(rollout: Rollout, seen: Seen) -> Iterator[tuple[str, StartWait]]:
    """Yield what is said of the clusters that go back, that went, and that cannot."""
    by = rollout.people.back
    for member in rollout.members if by else ():
        record, pins = known_in(seen, member.cluster), member.earlier_pins
        if by is None or record is None or record.uid != member.uid or not (pins or member.earlier):
            continue
        if member.back or record.generation >= member.generation:
            pin = pins[0].commit if pins else ""
            yield member.cluster, StartWait(WaitReason.BACK, by=by, since=by.at, pin=pin)


def with_gone_back(rollout: Rollout, known: Rollout, generations: Mapping[str, int]) -> Rollout:
    """Return a rollout that is planned again, with who has gone back since it was ``known``.

    ``generations`` are those of the recorded clusters.
    """
    gone = {
        member.cluster: member
        for member in known.members
        if member.back or (member.earlier_pins and generations.get(member.cluster, 0) > member.generation)
    }
    return replace(rollout, members=tuple(_gone(member, gone) for member in rollout.members))


def _gone(member: Member, gone: Mapping[str, Member]) -> Member:
    known = gone.get(member.cluster)
    return (
        member if known is None else replace(member, back=True, earlier=known.earlier, systems=known.systems)
    )
