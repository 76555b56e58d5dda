"""The job of a cluster that a freeze or a change window keeps from starting."""

from __future__ import annotations

from datetime import datetime

from shared.jobs.drift import HeldStart
from shared.jobs.record import ClusterRecord
from shared.rollouts.calendar import Start
from shared.rollouts.shut.fleet_calendar import Calendar, place_in


def held_start(record: ClusterRecord, start: Start, calendar: Calendar, now: datetime) -> HeldStart | None:
    """Return what keeps a job from starting now, None for nothing.

    It is so for as long as the record says, if that has the same name.
    """
    shut = calendar.closed(start, place_in(record.name, record.document), record.uid, now)
    if shut is None:
        return None
    freeze = shut.freeze
    name = freeze.name if freeze else shut.window
    since = record.held.since if record.held and record.held.name == name else now
    if freeze is None:
        return HeldStart(name, since, shut.until)
    return HeldStart(name, since, shut.until, freeze.owner, freeze.reason)
