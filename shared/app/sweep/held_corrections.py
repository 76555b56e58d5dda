"""Corrections that a freeze or a change window holds: none starts, and a sweep compares again then."""

from __future__ import annotations

from dataclasses import replace

from shared.app.outbox import request_sweep_at
from shared.cluster.drift import HeldStart
from shared.cluster.record import ClusterRecord
from shared.ports import Ports
from shared.rollouts.calendar import Start
from shared.rollouts.shut import held_start


def unless_held(record: ClusterRecord, started: ClusterRecord, start: Start, ports: Ports) -> ClusterRecord:
    """Return the record with the job that a sweep ``started``, or without it and with what holds that.

    A sweep of the cluster is asked for, for when its job may start.
    """
    if started is record:
        return replace(record, held=None) if record.held else record
    held = _held(record, start, ports)
    return started if held is None else replace(record, held=held)


def still_held(record: ClusterRecord, start: Start, ports: Ports) -> ClusterRecord:
    """Return the record of a cluster that was not compared: what keeps its job from starting still does."""
    return replace(record, held=_held(record, start, ports)) if record.held else record


def _held(record: ClusterRecord, start: Start, ports: Ports) -> HeldStart | None:
    held = held_start(record, start, ports.state.fleet().calendar, ports.clock())
    if held is not None and held.until is not None:
        request_sweep_at(held.until, record.name, ports)
    return held


def is_held_on(record: ClusterRecord, ports: Ports) -> bool:
    """Return whether nothing has changed about what holds a job; a sweep is asked for again then.

    A message for the end of a freeze comes sooner, every hour: thousands of clusters are not read in Azure
    for that. What somebody puts back there, the next list shows.
    """
    held, calendar, now = record.held, ports.state.fleet().calendar, ports.clock()
    if held is None or held.until is None:
        return False
    if held not in (held_start(record, start, calendar, now) for start in (Start.CORRECTION, Start.CREATION)):
        return False
    request_sweep_at(held.until, record.name, ports)
    return True
