"""What a sweep concludes of one cluster, saved in its record: it is not Ready any more, or is so again."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import datetime, timedelta

from shared.fleet.json_tree import Json
from shared.jobs.apply_outcome import apply_outcome
from shared.jobs.events import events_between
from shared.jobs.failures.errors import Stale
from shared.jobs.outcomes import Done, Fail
from shared.jobs.record import ClusterRecord, Phase
from shared.pipeline.facts import store_fact
from shared.pipeline.sweep.verdicts import finding_of_sweep, verdict
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

    Return whether the record changed.
    """
    record = ports.state.cluster(name)
    if record is None or not is_idle(record) or record.updated >= listed_at - SETTLED:
        return False
    return conclude(record, existing, ports)


def conclude(record: ClusterRecord, existing: Json | None, ports: Ports) -> bool:
    """Save what Azure shows of an idle cluster, if its record says something else; return whether it did.

    A record that somebody else writes meanwhile is left to them, and to the next sweep.
    """
    found = verdict(existing, StepContext.of(record, ports).owner)
    if (found.error.kind if found else "") == finding_of_sweep(record.finding):
        return False
    outcome = Fail(found.error) if found else Done("a sweep found the cluster as it was verified")
    after = apply_outcome(record, outcome, now=ports.clock(), jitter=0)
    if found:
        next_run = replace(after.job.next_run, contest=found.contest)
        after = replace(after, job=replace(after.job, next_run=next_run))
    log.warning("%s: %s", record.name, found.error if found else "as it was verified again")
    ports.state.append(list(events_between(record, after, outcome)))
    store_fact(record, after, ports)
    try:
        ports.state.save(after)
    except Stale:
        current = written_beside(record, ports)
        return current is not None and conclude(current, existing, ports)
    return True


def written_beside(record: ClusterRecord, ports: Ports) -> ClusterRecord | None:
    """Return what somebody wrote over a record, None unless its job is the same as before.

    A sweep and a check may end at one moment: neither loses what the other one found.
    """
    current = ports.state.cluster(record.name)
    same = current is not None and (current.uid, current.job) == (record.uid, record.job)
    if not same:
        log.info("%s: its record was written meanwhile", record.name)
    return current if same else None
