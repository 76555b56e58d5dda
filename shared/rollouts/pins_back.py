"""The pins that go back because somebody aborted a rollout so: of which clusters, and to which commits.

A cluster that a rollout has changed has the generation that the rollout gave it. With the next one it goes
back. The clusters' records alone say who has gone: so no crash can have a cluster go back twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from shared.cluster.record_parts import Phase
from shared.frozen import replace
from shared.language.pin import Pin
from shared.rollouts.rollout import Member, Rollout, RolloutState
from shared.rollouts.waits import Seen, StartWait, WaitReason, known_in


def goes_back(member: Member, uid: str, generation: int) -> bool:
    """Return whether a cluster has what its rollout changed, and earlier pins that are known."""
    return (member.uid, member.generation) == (uid, generation) and bool(member.earlier_pins)


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
