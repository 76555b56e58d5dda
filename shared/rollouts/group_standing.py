"""Where the clusters of each group of a rollout stand, and what the next group waits for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime

from shared.frozen import dataclass
from shared.rollouts.rollout import Group, Member, Rollout
from shared.rollouts.waits import MemberStanding, Seen, StartWait, WaitReason, known_in

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
