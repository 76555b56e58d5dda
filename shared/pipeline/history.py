"""The events of a cluster are stored with its record, in the same write, while its job is active.

So an event costs no write of its own, and no crash comes between a change of a record and its event. They
move to the table of events when the job ends, and when they are many: first they are appended there, then the
record is saved without them. A crash in between leaves them in both, where they count once.
"""

from __future__ import annotations

from collections.abc import Iterable

from shared.frozen import replace
from shared.jobs.event import Event
from shared.jobs.outcomes import Done
from shared.jobs.record import ClusterRecord
from shared.jobs.reporting.rebuild_time import rebuild_time, replacement_time
from shared.ports import Ports

MOST = 16
"""How many events a record has; each has 1,000 characters at most."""
PRUNE_EVERY = 50
"""After about this many numbers of a record its old events are removed: a query and some deletes."""


def with_events(record: ClusterRecord, events: Iterable[Event], ports: Ports) -> ClusterRecord:
    """Return the record as it is to be saved together with these events."""
    earlier, new = record.recent_events, tuple(events)
    moved: tuple[Event, ...] = ()
    if not record.job.active:
        moved = earlier + new
    elif len(earlier) + len(new) > MOST:
        moved = earlier  # the new ones are true only once the record is saved
    if moved:
        ports.state.append(moved)
    kept = (earlier + new)[len(moved) :]
    return record if kept == earlier else replace(record, recent_events=kept)


def prune_events(record: ClusterRecord, before: int, ports: Ports) -> None:
    """Remove the oldest events of a cluster if its sequence has passed another ``PRUNE_EVERY``."""
    if record.job.sequence // PRUNE_EVERY != before // PRUNE_EVERY:
        ports.state.prune_events(record.name, ports.config.events_kept)


def with_rebuild_time(record: ClusterRecord, outcome: Done, ports: Ports) -> Done:
    """Return the outcome that makes a cluster Ready for the first time, with how long that took.

    It is said of a cluster that was rebuilt, and of one that replaces another.
    """
    old = str(record.document.get("replaces", ""))
    later = record.observed_generation or record.deleting or record.rebuilding
    if later or not (record.rebuilt_for or old):
        return outcome
    events = [*ports.state.events(record.name, ports.config.events_kept), *record.recent_events]
    took = rebuild_time(events, record.uid, ports.clock()) if record.rebuilt_for else ""
    if old and not took:
        took = replacement_time(events, record.uid, old, ports.clock())
    return replace(outcome, note="; ".join(filter(None, (outcome.note, took))))
