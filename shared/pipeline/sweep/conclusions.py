"""What a sweep concludes of one cluster, saved in its record: it is not Ready any more, or is so again."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import datetime, timedelta

from shared.fleet.aks.ownership import Owner
from shared.fleet.drift.differences import drift_of, unmanaged_names
from shared.fleet.drift.live_digest import live_digest
from shared.fleet.json_tree import Json
from shared.jobs.apply_comparison import apply_comparison
from shared.jobs.apply_outcome import apply_outcome
from shared.jobs.drift import Verified
from shared.jobs.events import Event, drift_event, events_between
from shared.jobs.failures.errors import Stale
from shared.jobs.outcomes import Done, Fail
from shared.jobs.record import ClusterRecord, Phase
from shared.pipeline.sweep.verdicts import Found, verdict
from shared.pipeline.worker.steps.azure_state import busy
from shared.pipeline.worker.steps.context import StepContext
from shared.ports import Ports

log = logging.getLogger(__name__)

SETTLED = timedelta(minutes=2)
"""How long before a list a record must have been written: Azure may list a cluster as it was a moment ago."""


def is_idle(record: ClusterRecord) -> bool:
    """Return whether a sweep says how the cluster is: it was verified Ready, and has had no job since."""
    return bool(record.finding) or (record.phase is Phase.READY and not record.job.active)


def conclude_from_list(name: str, existing: Json, listed_at: datetime, ports: Ports) -> bool:
    """Conclude what a list shows of a cluster, unless its record was written at about that time.

    Return whether the cluster is not Ready any more, or is so again.
    """
    record = ports.state.cluster(name)
    if record is None or not is_idle(record) or record.updated >= listed_at - SETTLED:
        return False
    return conclude(record, existing, ports)


def conclude(record: ClusterRecord, existing: Json | None, ports: Ports) -> bool:
    """Save what Azure shows of an idle cluster, if its record says something else.

    Return whether the cluster is not Ready any more, or is so again. A record that somebody else writes
    meanwhile is left to them, and to the next sweep.
    """
    owner, now = StepContext.of(record, ports).owner, ports.clock()
    found, after, events = verdict(existing, owner), record, list[Event]()
    turned = (found.error.kind if found else "") != record.finding
    if turned:
        after, events = _turned(record, found, now)
    if found is None and existing is not None:
        compared = _compared(after, existing, owner, now)
        events += drift_event(after, compared)
        after = compared
    if after == record:
        return False
    ports.state.append(events)
    try:
        ports.state.save(after)
    except Stale:
        log.info("%s: its record was written meanwhile", record.name)
        return False
    return turned


def _turned(record: ClusterRecord, found: Found | None, now: datetime) -> tuple[ClusterRecord, list[Event]]:
    """Return the record of a cluster that is not Ready any more, or is so again, and the events."""
    outcome = Fail(found.error) if found else Done("a sweep found the cluster as it was verified")
    after = apply_outcome(record, outcome, now=now, jitter=0)
    if found:
        next_run = replace(after.job.next_run, contest=found.contest)
        after = replace(after, job=replace(after.job, next_run=next_run))
    log.warning("%s: %s", record.name, found.error if found else "as it was verified again")
    return after, list(events_between(record, after, outcome))


def _compared(record: ClusterRecord, existing: Json, owner: Owner, now: datetime) -> ClusterRecord:
    """Return the record after a comparison of every property that its manifest owns.

    A cluster on which an operation runs is left to the next sweep, and so is one whose manifest this version
    refuses.
    """
    desired, before = record.desired, record.verified
    if busy(existing["properties"]) or desired.problem:
        return record
    differences = drift_of(desired, owner, existing, before.unmanaged if before else None)
    unmanaged = before.unmanaged if before else unmanaged_names(desired, owner, existing)
    digest = "" if differences else live_digest(existing)
    return apply_comparison(record, differences, Verified(digest, unmanaged), now=now)
