"""What a check concludes of one cluster, saved in its record: conditions, and whether it is still Ready."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from shared.app.check.companions import CompanionReading, with_companions
from shared.app.check.readings import Reading
from shared.app.check.secrets import has_secrets
from shared.app.notifications import notifications_of
from shared.app.outbox import next_check_of, unlike
from shared.app.records import Transition, change
from shared.app.sweep.conclusions import is_beside
from shared.app.worker.steps.flux.waiting import commits_behind
from shared.cluster.findings.conditions import FLUX_REPORTS, with_condition, without_condition
from shared.cluster.findings.health import (
    HEALTHY,
    HealthCondition,
    HealthFinding,
    applies_again,
    checked,
    outcome_of,
)
from shared.cluster.queues.envelopes import Envelope
from shared.cluster.queues.messages import CheckMessage, ReportRequest, StatusRequest, SweepRequest
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import AppliedRevision, Condition, RunningVersions
from shared.cluster.reporting.events import FLUX_REPORTED, events_between, renewed_event
from shared.cluster.transitions.apply_outcome import apply_outcome
from shared.kubernetes.health import Fault
from shared.kubernetes.kubeconfig import ApiServer
from shared.language.cluster_systems import system_with, systems_in
from shared.ports import Ports

# Whether what Flux reports arrives: a cluster that has done something and has not reported it is silent.

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
    heard = next((event.at for event in events if event.reason == FLUX_REPORTED and event.at >= moment), None)
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


def unknown(why: str, record: ClusterRecord) -> Sequence[HealthFinding]:
    """Return what is so of a cluster that could not be read."""
    return [
        HealthFinding(kind, None, "NotRead", why)
        for kind in HealthCondition
        if kind is not HealthCondition.SECRETS or has_secrets(record)
    ]


def findings(
    reading: Reading, secrets: HealthFinding | None, record: ClusterRecord, ports: Ports
) -> Sequence[HealthFinding]:
    """Return what a reading says of each condition, and what was found of the bootstrap ``secrets``."""
    healthy = f"Flux runs as it was applied, and none of its {reading.objects} objects has failed"
    nodes = f"{reading.nodes} of {reading.nodes} nodes are ready"
    if reading.from_azure:
        nodes = f"Azure shows {reading.nodes} node pools, none of them as failed; nodes are not read"
    return [
        _finding(HealthCondition.FLUX, reading.flux, healthy, record, ports),
        _finding(HealthCondition.PLATFORM, reading.platform, nodes, record, ports),
        *([secrets] if secrets else ()),
    ]


def _finding(
    kind: HealthCondition, faults: Sequence[Fault], healthy: str, record: ClusterRecord, ports: Ports
) -> HealthFinding:
    if not faults:
        return HealthFinding(kind, True, HEALTHY, healthy)
    more = f"; and {len(faults) - 1} more" if len(faults) > 1 else ""
    first = faults[0]
    text = f"{_owner(first, record)}{first}{commits_behind(first.attempt, record, ports)}{more}"
    return HealthFinding(kind, False, first.reason, text)


def _owner(fault: Fault, record: ClusterRecord) -> str:
    """Return the system that a fault is in, with its owners, as a beginning; "" for the platform's own."""
    ref = fault.ref
    system = system_with(systems_in(record.document), ref.name if ref.kind == "Namespace" else ref.namespace)
    return "" if system is None else f"the system {system['name']} of {', '.join(system['owners'])}: "


def _with_reading(record: ClusterRecord, reading: Reading | None) -> ClusterRecord:
    """Return the record with what was read, and with the time of that; what was not read keeps its own."""
    if reading is None:
        return record
    running, revision = record.observation.running or RunningVersions(), reading.revision
    if revision is not None:
        running = replace(running, flux=AppliedRevision(revision, reading.inside.at))
    return replace(record, observation=replace(record.observation, inside=reading.inside, running=running))


def conclude(
    record: ClusterRecord,
    found: Sequence[HealthFinding],
    server: ApiServer | None,
    message: CheckMessage,
    ports: Ports,
    reading: Reading | None = None,
    companions: CompanionReading | None = None,
    *,
    renewed: Mapping[str, str] | None = None,
) -> None:
    """Save what a check found, also where a sweep writes meanwhile; a newer job leaves it to the next check.

    ``reading`` is None when it could not read: what the one before read remains, with its time.
    ``companions`` are what Azure has of its companions, None in the same way. ``renewed`` is what it
    has applied, by the reason of its event.

    What follows is sent first, so that a crash cannot lose it. Only a correction of what Roadstead
    applied of Flux is requested last: whoever starts it reads in the record that it is to be corrected, and
    the next check, minutes later, requests it again.
    """
    now, patience = ports.clock(), timedelta(seconds=ports.config.timing.unhealthy_seconds)

    def decide(current: ClusterRecord | None) -> Transition | None:
        if current is None or not is_beside(current, record):
            return None
        read = _with_reading(current, reading)
        read = replace(read, observation=replace(read.observation, api_server=server))
        after = checked(read, found, now)
        after = with_companions(with_reports(after, reading, ports), companions, ports)
        outcome = outcome_of(after, now, patience)
        if renewed:
            after = replace(after, job=replace(after.job, sequence=after.job.sequence + 1), updated=now)
        events = [renewed_event(after, reason, what) for reason, what in (renewed or {}).items()]
        first = list[Envelope]()
        if outcome is not None:
            concluded = apply_outcome(after, outcome, now=now, jitter=0)
            events += events_between(after, concluded, outcome)
            after = concluded
            status = StatusRequest(commit=ports.state.fleet().commit)
            first.append(unlike(status, ports, after=ReportRequest.WINDOW))
        first += next_check_of(after, ports, message.at)
        sweep = SweepRequest(sweep=f"flux:{int(now.timestamp())}", clusters=(record.name,))
        then = [Envelope(sweep)] if applies_again(after, now) else []
        return Transition(after, events, notifications_of(current, after, ports), first, then)

    change(record.name, decide, ports, known=(record,))
