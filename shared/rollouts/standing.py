"""Where a cluster stands in a rollout, by what is recorded of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from shared.jobs.listed import UnreadableRecord
from shared.jobs.record import Phase, of_health
from shared.jobs.reporting.summary import ClusterSummary
from shared.rollouts.rollout import Member, Rollout

Seen = Mapping[str, ClusterSummary | UnreadableRecord]
"""What is recorded of clusters; one that it lacks was deleted, and one that cannot be read was not."""
_WORKING = (Phase.PROVISIONING, Phase.UPDATING, Phase.STALLED)


class Standing(StrEnum):
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
    """It has this rollout's generation, and its suspension ends first."""
    VERIFIED = "ready"
    FAILED = "failed"
    OUT = "left out"
    """It was deleted, or somebody took it out of the rollout."""


def standing(member: Member, rollout: Rollout, seen: Seen, now: datetime) -> Standing:
    """Return where a member stands; only the generation that the rollout gave it counts as its success."""
    record = seen.get(member.cluster)
    if isinstance(record, UnreadableRecord):
        return Standing.UNKNOWN
    gone = record is None or record.uid != member.uid or record.phase is Phase.DELETING
    if record is not None and record.uid == member.uid and _takes_back(member, record):
        return Standing.WAITING
    if record is None or gone or rollout.skips(member.cluster):
        return Standing.OUT
    if record.generation < member.generation:
        if _cannot_start(member, record, now):
            return Standing.ASIDE
        return Standing.BUSY if record.phase in _WORKING else Standing.WAITING
    if record.phase is Phase.SUSPENDED:
        return Standing.SUSPENDED
    if record.phase is Phase.FAILED:
        return Standing.FAILED
    verified = record.phase is Phase.READY and record.observed_generation >= member.generation
    return Standing.VERIFIED if verified and not record.lost else Standing.IN_FLIGHT


def known_in(seen: Seen, cluster: str) -> ClusterSummary | None:
    """Return what is recorded of a cluster, None where that is nothing, or cannot be read."""
    found = seen.get(cluster)
    return None if isinstance(found, UnreadableRecord) else found


def _takes_back(member: Member, record: ClusterSummary) -> bool:
    """Return whether a change waits for nobody, as one that takes a delete back."""
    return member.at_once and record.generation < member.generation


def _cannot_start(member: Member, record: ClusterSummary, now: datetime) -> bool:
    """Return whether a cluster cannot take part now: it is suspended, stopped, missing or contested.

    One that is unhealthy inside can: the change may be what repairs it.
    """
    suspended = member.suspended_until is not None and member.suspended_until > now
    if record.phase is Phase.SUSPENDED and suspended:
        return True
    return record.contested or (bool(record.finding) and not of_health(record.finding))
