"""Corrections that a freeze or a change window holds: none starts, and a sweep compares again then."""

from __future__ import annotations

from dataclasses import replace

from shared.jobs.messages import CLOCKS_DIFFER, SweepPart
from shared.jobs.record import ClusterRecord
from shared.pipeline.outbox import request_sweep
from shared.ports import Ports
from shared.rollouts.calendar import Start
from shared.rollouts.shut.held_jobs import held_start

AFTER_SECONDS = 2 * CLOCKS_DIFFER.total_seconds()
"""How long after a freeze has ended the cluster is compared, also by an instance whose clock is behind.

Nobody asks again: by a clock that is still before the end, the cluster would wait for the next whole sweep.
"""


def unless_held(record: ClusterRecord, started: ClusterRecord, start: Start, ports: Ports) -> ClusterRecord:
    """Return the record with the job that a sweep ``started``, or without it and with what holds that."""
    if started is record:
        return replace(record, held=None) if record.held else record
    held = held_start(record, start, ports.state.fleet().calendar, ports.clock())
    return replace(record, held=held) if held else started


def sweep_when_it_opens(before: ClusterRecord, saved: ClusterRecord, ports: Ports) -> None:
    """Ask for a sweep of a cluster for when its correction may start, once for each such time."""
    until = saved.held.until if saved.held else None
    if until is None or saved.held == before.held:
        return
    part = SweepPart(sweep=f"opens:{int(until.timestamp())}", clusters=(saved.name,))
    after = (until - ports.clock()).total_seconds() + AFTER_SECONDS
    request_sweep(part, ports, after=max(after, AFTER_SECONDS))
