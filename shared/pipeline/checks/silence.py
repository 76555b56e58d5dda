"""Whether what Flux reports arrives: a cluster that has done something and has not reported it is silent."""

from __future__ import annotations

from datetime import timedelta

from shared.jobs.findings.conditions import FLUX_REPORTS, with_condition, without_condition
from shared.jobs.record import ClusterRecord, Condition
from shared.jobs.reporting.events import FLUX_REPORTED
from shared.pipeline.checks.readings import Reading
from shared.ports import Ports

PATIENCE = timedelta(minutes=10)
"""How long after a source has something new the event of it may come."""
CLOCKS = timedelta(minutes=2)
"""What happened so soon after the Alert was applied may have come before the controller knew it."""
READ = 200
"""How many of the newest events are looked at: a cluster with so many since then is left as it was."""


def with_reports(record: ClusterRecord, reading: Reading | None, ports: Ports) -> ClusterRecord:
    """Return the record with the condition of its reports; without it where Flux is to report nothing.

    Nothing is concluded from a cluster that could not be read, or in which nothing has happened since.
    """
    if reading is None:
        return record
    if not (record.document["spec"].get("flux") or {}).get("events"):
        return without_condition(record, FLUX_REPORTS)
    reporting, now = reading.reporting, ports.clock()
    if reporting is None or reporting.newest is None or reporting.newest < reporting.since + CLOCKS:
        return record
    moment = reporting.newest - CLOCKS
    events = ports.state.events(record.name, READ)
    heard = next((one.at for one in events if one.reason == FLUX_REPORTED and one.at >= moment), None)
    generation = record.observed_generation
    if heard is not None:
        message = f"Flux reported last at {heard:%Y-%m-%d %H:%M:%S} UTC"
        new = Condition(FLUX_REPORTS, True, "Reporting", message, now, generation, now)
        return with_condition(record, new)
    if now - reporting.newest < PATIENCE or (len(events) == READ and events[-1].at > moment):
        return record
    message = f"a source of Flux has stored something new at {reporting.newest:%Y-%m-%d %H:%M:%S} UTC"
    message = f"{message}, and no event of that, or later, has come"
    return with_condition(record, Condition(FLUX_REPORTS, False, "Silent", message, now, generation, now))
