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

from shared.app.access.companions import WINDOWS
from shared.app.access.context import ClusterAccess, StepContext
from shared.app.access.rate_limiter import RateLimited, RateLimiter
from shared.app.check.companions import SharedReads, read_companions
from shared.app.check.conclusions import conclude, findings, unknown
from shared.app.check.reading import read, renewed_facts
from shared.app.check.secrets import check_secrets
from shared.app.outbox import next_check_of, send, send_all
from shared.app.runs import record_end
from shared.app.worker.steps.bootstrap_secrets import VaultReads
from shared.azure.rate_limits import AKS_OTHER
from shared.cluster.failures.errors import ReconcileError, Retryable, Unexpected
from shared.cluster.findings.conditions import found_of, is_at_rest, is_closed
from shared.cluster.findings.health import needs_check
from shared.cluster.outcomes import Done, Retry
from shared.cluster.queues.envelopes import checks_of
from shared.cluster.queues.messages import CheckMessage
from shared.cluster.record import ClusterRecord
from shared.cluster.reporting.measurements import of_read, of_reservation
from shared.kubernetes.flux_objects import ComponentsError
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
    access = ClusterAccess(record)
    try:
        context = StepContext.of(record, access.over(limiter.over(ports)))
        reading, secrets = read(context), check_secrets(context, reads)
        renewed = renewed_facts(context, reading) | (secrets.events if secrets else {})
    except RateLimited as limited:
        log.info("%s cannot be read yet: %s", record.name, limited)
        ports.telemetry.record(of_reservation("check"))
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
    ports.telemetry.record(of_read("check", kind))
    server, companions = (
        access.server_after(Retry(failed)),
        read_companions(record, lists, limiter.over(ports)),
    )
    conclude(record, unknown(f"{kind}: {text}", record), server, message, ports, companions=companions)
    return True
