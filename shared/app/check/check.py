"""The check of a fleet's clusters from inside: messages of some clusters each, in the queue of the worker.

The timer asks for a check. Its first message reads the summaries of all clusters, and sends messages that
name those at rest: Ready ones, and those that were Ready and whose later job has failed or is suspended. Of
the latter two a check only reads, and the job stays the reason why they are not Ready. The messages share
some sessions, so a large fleet takes few of the workers' sessions. A cluster whose API server is known costs
no call to Azure. Any other one costs a kubeconfig: while fewer than half of the tokens for that are left, the
jobs have them, and the cluster waits.

A cluster that is not known to be healthy is checked again soon: each check of it asks for the next one.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import timedelta

from shared.app.access.companions import WINDOWS
from shared.app.access.context import ClusterAccess, StepContext
from shared.app.access.rate_limiter import RateLimited, RateLimiter
from shared.app.check.companions import CompanionReading, SharedReads, read_companions, with_companions
from shared.app.check.reading import Reading, read, renewed_facts
from shared.app.check.secrets import check_secrets, has_secrets
from shared.app.notifications import notifications_of
from shared.app.outbox import next_check_of, send, send_all, unlike
from shared.app.records import Transition, change
from shared.app.runs import record_end
from shared.app.sweep.conclusions import is_beside
from shared.app.worker.steps.bootstrap_secrets import VaultReads
from shared.app.worker.steps.flux.waiting import commits_behind
from shared.azure.rate_limits import AKS_OTHER
from shared.azure.running_versions import AppliedRevision
from shared.cluster.failures.errors import ReconcileError, Retryable, Unexpected
from shared.cluster.findings.conditions import (
    FLUX_REPORTS,
    found_of,
    is_at_rest,
    is_closed,
    with_condition,
    without_condition,
)
from shared.cluster.findings.health import (
    HEALTHY,
    HealthCondition,
    HealthFinding,
    applies_again,
    checked,
    needs_check,
    outcome_of,
)
from shared.cluster.outcomes import Done, Retry
from shared.cluster.queues.envelopes import Envelope, checks_of
from shared.cluster.queues.messages import CheckMessage, ReportRequest, StatusRequest, SweepRequest
from shared.cluster.record import ClusterRecord, at_another_moment
from shared.cluster.record_parts import Condition
from shared.cluster.reporting.events import FLUX_REPORTED, event_of, events_between
from shared.cluster.reporting.measurements import of_read, of_reservation
from shared.cluster.transitions.apply_outcome import apply_outcome
from shared.frozen import replace
from shared.kubernetes.flux_objects import ComponentsError
from shared.kubernetes.health import Fault
from shared.kubernetes.kubeconfig import ApiServer
from shared.language.cluster_systems import system_with, systems_in
from shared.logs import about_record
from shared.ports import Ports
from shared.ports.state.clusters import readable

log = logging.getLogger(__name__)

CHECK_SECONDS = 120.0
"""After so many seconds another message continues: less than half of ``functionTimeout``."""
WAIT_SECONDS = 60.0
"""How long the clusters wait for which there is no token."""
MOST_WAITS = 30
"""How often, at most."""


def handle(message: CheckMessage, ports: Ports) -> None:
    """Check some clusters, or have all of them checked; postpone that while the state does not answer.

    Raise Retryable when it cannot be postponed, or was too often: the timer begins another check.
    """
    try:
        _handle(message, ports)
    except Retryable as error:
        if message.attempt >= MOST_WAITS:
            raise
        log.warning("a check is postponed: %s: %s", error.kind, error)
        send(message.model_copy(update={"attempt": message.attempt + 1}), ports, after=WAIT_SECONDS)


def _handle(message: CheckMessage, ports: Ports) -> None:
    if not message.clusters:
        names = [summary.name for summary in ports.state.summaries() if summary.at_rest]
        send_all(checks_of(names, message.check), ports)
        if not names:
            record_end("check", ports)
        return
    end, limiter = ports.elapsed() + CHECK_SECONDS, RateLimiter(None, ports)
    reads = VaultReads(ports.vaults)
    lists: SharedReads = {}
    waiting: list[ClusterRecord] = []
    ended = message.at is None
    for position, name in enumerate(message.clusters):
        if position and ports.elapsed() > end:
            send(message.model_copy(update={"clusters": message.clusters[position:]}), ports)
            ended = False
            break
        record = readable(name, ports.state)
        if record is None:
            continue
        if not is_at_rest(record):
            if record.job.active:
                send_all(next_check_of(record, ports, message.at), ports)
            continue
        with about_record(record):
            if not _affordable(record, waiting, limiter) or not _check(
                record, message, reads, lists, limiter, ports
            ):
                waiting.append(record)
    if waiting:
        _postpone(waiting, message, ports)
        ended = ended and message.attempt >= MOST_WAITS
    if ended:
        record_end("check", ports)


def _postpone(waiting: list[ClusterRecord], message: CheckMessage, ports: Ports) -> None:
    """Have clusters checked in a minute for which there is no token, not more often than ``MOST_WAITS``.

    Then the timer's next check reads those of a whole check. Nothing is known of others, for which something
    had asked, so they are checked again soon.
    """
    if message.attempt < MOST_WAITS:
        names = tuple(record.name for record in waiting)
        rest = message.model_copy(update={"clusters": names, "attempt": message.attempt + 1})
        send(rest, ports, after=WAIT_SECONDS)
        return
    for record in waiting:
        with about_record(record):
            log.info("%s was not read: there was no token for it", record.name)
            if message.of_fleet or needs_check(record):
                send_all(next_check_of(record, ports, message.at), ports)
            else:
                why = "Azure's limit for credentials left no token for its check: jobs have them first"
                conclude(record, unknown(why, record), record.observation.api_server, message, ports)


def _affordable(record: ClusterRecord, waiting: list[ClusterRecord], limiter: RateLimiter) -> bool:
    """Return whether what a cluster needs of Azure may be read; a limit is a subscription's."""
    if record.desired.is_attached:
        return True
    subscription = record.desired.id.subscription
    return (record.observation.api_server is not None and not WINDOWS.concerns(record)) or (
        subscription not in {other.desired.id.subscription for other in waiting}
        and limiter.has_spare(AKS_OTHER, subscription)
    )


def _check(
    record: ClusterRecord,
    message: CheckMessage,
    reads: VaultReads,
    lists: SharedReads,
    limiter: RateLimiter,
    ports: Ports,
) -> bool:
    """Read one cluster, and save what is so of it; return False where a token for that is missing."""
    why = ""
    if is_closed(record):
        why = f"a sweep found {found_of(record)}"
    elif record.desired.problem:
        why = f"this version refuses what was accepted: {record.desired.problem}"
    if why:
        conclude(record, unknown(why, record), record.observation.api_server, message, ports)
        return True
    access = ClusterAccess(record, limiter.over(ports))
    try:
        context = StepContext.of(record, access.ports)
        reading, secrets = read(context), check_secrets(context, reads)
        renewed = renewed_facts(context, reading) | (secrets.events if secrets else {})
    except RateLimited as limited:
        log.info("%s cannot be read yet: %s", record.name, limited)
        ports.services.telemetry.record(of_reservation("check"))
        return False
    except (ReconcileError, ComponentsError) as error:
        log.warning("%s cannot be read: %s", record.name, error)
        kind, text = type(error).__name__, str(error)
        failed = error if isinstance(error, Retryable) else Unexpected(text)
    except Exception as error:  # one cluster that is not understood keeps no other one from its check
        log.exception("%s cannot be read", record.name)
        kind, text = type(error).__name__, "the log has the details"
        failed = Unexpected(text)
    else:
        server, companions = access.server_after(Done()), read_companions(record, lists, limiter.over(ports))
        found = findings(reading, secrets.finding if secrets else None, record, ports)
        conclude(record, found, server, message, ports, reading, companions, renewed=renewed)
        return True
    ports.services.telemetry.record(of_read("check", kind))
    server, companions = (
        access.server_after(Retry(failed)),
        read_companions(record, lists, limiter.over(ports)),
    )
    conclude(record, unknown(f"{kind}: {text}", record), server, message, ports, companions=companions)
    return True


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
    running, revision = record.running, reading.revision
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
            after = at_another_moment(after, now)
        events = [event_of(after, reason, what) for reason, what in (renewed or {}).items()]
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
