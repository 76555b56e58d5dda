"""A recovery: the tables were lost, or restored from an older moment. One procedure for both.

Each record compares its cluster with git, and writes nothing. Where a job would write or delete, it waits for
a person. The jobs begin once every record is a part of it and the head is planned. It ends when every record
was compared.
"""

from __future__ import annotations

import logging
from functools import partial

from shared.app.outbox import send
from shared.app.records import Transition, change
from shared.cluster.failures.errors import Stale, Unreadable
from shared.cluster.queues.messages import PlanRequest
from shared.cluster.record import ClusterRecord
from shared.cluster.reporting.events import recovery_event
from shared.cluster.transitions.acceptance import accept_recovery
from shared.frozen import replace
from shared.ports import FleetRecord, Ports
from shared.ports.state.fleet import Recovery

log = logging.getLogger(__name__)


def begin_recovery(fleet: FleetRecord, epoch: int, ports: Ports) -> FleetRecord:
    """Have every record only compare, or go on with that. ``epoch`` is that outside the tables."""
    if not fleet.is_behind:
        log.warning("the tables are of epoch %d, and %d began: a recovery begins", fleet.tables.epoch, epoch)
        fleet = ports.state.save_fleet(
            replace(fleet, tables=replace(fleet.tables, recovery=Recovery(ports.clock(), epoch)))
        )
    names = [record.name for record in ports.state.clusters() if not record.recovering]
    ports.together(partial(_recover, ports=ports), names)
    return fleet


def _recover(name: str, ports: Ports) -> None:
    def decide(record: ClusterRecord | None) -> Transition | None:
        if record is None or record.recovering:
            return None
        after = accept_recovery(record, now=ports.clock())
        return Transition(after, [recovery_event(after)])

    try:
        change(name, decide, ports)
    except Unreadable as error:
        log.warning("%s: %s", name, error)


def end_recovery(ports: Ports) -> None:
    """End a recovery whose records were all compared, and have the head planned as usual."""
    fleet = ports.state.fleet()
    if fleet.tables.recovery is None or fleet.is_behind or fleet.planning:
        return
    if any(record.to_compare for record in ports.state.clusters()):
        return
    try:
        saved = ports.state.save_fleet(replace(fleet, tables=replace(fleet.tables, recovery=None)))
    except Stale:
        return  # the next tick finds it again
    log.warning("the recovery has ended: every record was compared")
    send(PlanRequest(again=True, reason="a recovery has ended"), ports, message_id=f"recovered:{saved.etag}")
