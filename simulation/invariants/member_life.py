"""What was seen of a life of a cluster that is a member of rollouts."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from shared.cluster.record import ClusterRecord, of_health
from shared.cluster.record_parts import Phase
from shared.rollouts.rollout import Member
from simulation.history import LONG_AGO

NOW = datetime.max.replace(tzinfo=UTC)
"""The end of what has not ended."""


@dataclass
class MemberLife:
    """What was seen of a life of a cluster; ``verified`` has when each generation was verified first.

    ``failed`` is when it failed last, ``failures`` the generations at which it did. ``found`` is since when a
    sweep says that it is missing or stopped, or it is contested; None for neither. ``aside`` has until when
    it could not take part at each generation, and ``suspended`` until when it was suspended; ``NOW`` if so.
    """

    verified: dict[int, datetime] = field(default_factory=dict)
    failed: datetime = LONG_AGO
    failures: set[int] = field(default_factory=set)
    found: datetime | None = None
    aside: dict[int, datetime] = field(default_factory=dict)
    suspended: datetime = LONG_AGO
    started: dict[int, datetime] = field(default_factory=dict)

    def was_aside(self, member: Member, since: datetime) -> bool:
        """Return whether it could not take part before it got the generation of a member, or is suspended."""
        before = (until for generation, until in self.aside.items() if generation < member.generation)
        return self.suspended >= since or any(until >= since for until in before)

    def is_verified(self, member: Member) -> bool:
        """Return whether it was verified at the generation of a member, or at a later one."""
        return any(generation >= member.generation for generation in self.verified)

    def stands(self, record: ClusterRecord, now: datetime) -> None:
        """Note whether it can take part from now on."""
        self.aside = {generation: min(until, now) for generation, until in self.aside.items()}
        self.suspended = (
            NOW if record.phase in (Phase.SUSPENDED, Phase.SLEEPING) else min(self.suspended, now)
        )
        if record.contested or (record.finding and not of_health(record.finding)):
            self.aside[record.generation] = NOW
