"""What an event of Flux does: it is stored, it ends the wait of a step, and it has the cluster checked.

It decides nothing else. What is so is read from the cluster, by the step or by the check: an event that is
late, comes twice or is lost changes no more than when that happens.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from shared.app.http_result import MAX_NAME, HttpResult, rejected
from shared.app.intake.flux_event import MAX_BODY_BYTES, EventKeys, FluxEvent, read_event
from shared.app.outbox import send_all
from shared.app.records import Transition, change
from shared.cluster.failures.errors import ReconcileError
from shared.cluster.findings.conditions import FLUX_REPORTS, is_at_rest
from shared.cluster.findings.health import HealthCondition
from shared.cluster.job import Delay
from shared.cluster.queues.envelopes import checks_of, copy_of
from shared.cluster.recipes import IN_THE_CLUSTER
from shared.cluster.record import ClusterRecord
from shared.cluster.reporting.events import reported_event
from shared.language.model.base import shown
from shared.logs import about_record
from shared.ports import Ports

log = logging.getLogger(__name__)

PAUSE = timedelta(seconds=2)
"""How long after the last run of a step an event has it run again: Flux reports several things at once."""
CHECK_SECONDS = 60
"""How often the events of one cluster have it checked at most."""
PRUNED = 0.02
"""The part of the events with which the oldest of a cluster are removed."""
UNSIGNED = "the signature is not that of the key of this cluster"


def receive(
    cluster: str, headers: Mapping[str, str], body: bytes, keys: EventKeys, ports: Ports
) -> HttpResult:
    """Take an event of Flux; the case of ``headers`` does not matter.

    The size is checked first, then the signature: an unknown cluster and a wrong key have the same answer.
    """
    if len(body) > MAX_BODY_BYTES:
        return rejected(413, f"the body has {len(body)} bytes; at most {MAX_BODY_BYTES} are read")
    header = {name.lower(): value for name, value in headers.items()}
    try:
        verified = keys.verifies(cluster, body, header.get("x-signature", ""))
    except ReconcileError as error:  # nobody has proved anything: why is for the log alone
        log.warning("the key of %s cannot be read: %s: %s", shown(cluster, MAX_NAME), error.kind, error)
        return rejected(503, "the key of this cluster cannot be read now")
    if not verified:
        return rejected(401, UNSIGNED)
    if not keys.take(cluster):
        return rejected(429, "this cluster reports too much; its events of the next seconds are dropped")
    event = read_event(body, ports.clock())
    if isinstance(event, str):
        return rejected(400, event)
    record = ports.state.cluster(cluster)
    if record is None:
        return rejected(401, UNSIGNED)
    with about_record(record):
        _take(event, record, ports)
    return HttpResult(202, {"cluster": cluster})


def _take(event: FluxEvent, record: ClusterRecord, ports: Ports) -> None:
    stored = reported_event(record, event.line, event.at, event.number, warning=event.error)
    ports.state.append([stored])
    if ports.random() < PRUNED:
        ports.state.prune_events(record.name, ports.config.events_kept)
    if is_at_rest(record):
        if event.error or not _is_known(record):
            now = ports.clock()
            moment = f"flux:{record.uid}:{int(now.timestamp()) // CHECK_SECONDS}"
            send_all(checks_of([record.name], moment, _until_next(now)), ports)
    elif record.job.active:
        _end_wait(record, ports)


def _until_next(now: datetime) -> float:
    """Return the seconds until the next moment at which events have a cluster checked, one for all."""
    return CHECK_SECONDS - now.timestamp() % CHECK_SECONDS


def _is_known(record: ClusterRecord) -> bool:
    """Return whether the record says already that Flux is healthy, and that its events arrive."""
    reports, flux = record.condition(FLUX_REPORTS), record.condition(HealthCondition.FLUX)
    return reports is not None and bool(reports.status) and (flux is None or bool(flux.status))


def _end_wait(record: ClusterRecord, ports: Ports) -> None:
    """Let a step run now that waits for what happens inside the cluster."""
    change(record.name, partial(_at_once, now=ports.clock()), ports, known=(record,))


def _at_once(record: ClusterRecord | None, *, now: datetime) -> Transition | None:
    if record is None:
        return None
    job, at = record.job, max(now, record.updated + PAUSE)
    waits = job.step.name in IN_THE_CLUSTER and job.next_run.delay is Delay.WAIT and job.lease is None
    if not (job.active and waits) or job.next_run.at <= at or at > now + PAUSE:
        return None
    sooner = replace(record, job=replace(job, next_run=replace(job.next_run, at=at)))
    return Transition(sooner, then=copy_of(sooner, now))
