"""The readings of clusters before an upgrade or a removal: one message each, in the queue of the worker.

Somebody asks for them, or a stage of a rollout, or a plan that removes a definition; no check and no job
does. A reading writes nothing to the cluster, and nothing to its record. What is read is stored as a fact
with its time.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from shared.app.access.context import ClusterAccess, StepContext
from shared.app.access.rate_limiter import RateLimited, RateLimiter
from shared.app.outbox import send, send_all
from shared.app.readiness.reading import observe, room_for
from shared.cluster.failures.errors import ReconcileError, Stale
from shared.cluster.queues.envelopes import readings_of
from shared.cluster.queues.messages import ReadinessMessage
from shared.cluster.record import ClusterRecord
from shared.frozen import replace
from shared.kubernetes.readiness.observation import Counted, Observation, Unread
from shared.logs import about_record
from shared.platform.changes.counts import DefinedKind
from shared.ports import Ports
from shared.ports.state.clusters import readable
from shared.ports.state.readiness import ReadinessRecord

# Counts the objects of kinds whose definitions a plan removes: only then, because a plan asked for it.


MOST_PAGES = 40
"""So many pages of a kind are counted, with 500 objects each; beyond there are "at least" as many."""


def count(context: StepContext, kinds: Sequence[DefinedKind]) -> dict[str, Counted]:
    """Return how many objects of each kind a cluster has, by the names of the definitions.

    Raise RateLimited where a credential of Azure is not to be had now.
    """
    now = context.ports.clock()
    found = {definition: Counted(now) for definition, _, _ in kinds}
    if not context.enters:
        return found
    try:
        api = context.kubernetes()
        for definition, api_version, kind in kinds:
            after, objects = "", 0
            for _ in range(MOST_PAGES):
                page = api.page(api_version, kind, after=after, metadata_only=True)
                objects, after = objects + len(page.objects), page.after
                if not after:
                    break
            found[definition] = Counted(now, objects, more=bool(after))
    except ReconcileError as error:
        log.info("%s does not count: %s: %s", context.record.name, error.kind, error)
    return found


log = logging.getLogger(__name__)

WAIT_SECONDS = 60.0
"""How long a cluster waits for which there is no token."""
MOST_WAITS = 10
"""How often, at most."""


def handle(message: ReadinessMessage, ports: Ports) -> None:
    """Read a cluster and store what it shows, or have all clusters read; raise Retryable of the state."""
    if not message.cluster:
        names = [summary.name for summary in ports.state.summaries()]
        send_all(readings_of(names, message.reading), ports)
        return
    record = readable(message.cluster, ports.state)
    if record is None or record.deleting:
        return
    with about_record(record):
        seen = _read(record, message, ports)
        if seen is not None:
            _store(record, seen, ports)


def _read(record: ClusterRecord, message: ReadinessMessage, ports: Ports) -> ReadinessRecord | None:
    """Return what a cluster shows and what Azure has for it, or what was counted; None: a minute later."""
    if record.desired.problem:
        why = f"this version refuses what was accepted: {record.desired.problem}"
        return _unread(record, message, why, ports)
    limited = RateLimiter(None, ports).over(ports)
    try:
        context = StepContext.of(record, ClusterAccess(record).over(limited))
        if message.counting:
            counted = count(context, message.counting)
            return ReadinessRecord(record.name, record.uid, counted=counted)
        return ReadinessRecord(record.name, record.uid, observe(context), room_for(context))
    except RateLimited as waits:
        if message.attempt < MOST_WAITS:
            later = message.model_copy(update={"attempt": message.attempt + 1})
            send(later, ports, after=WAIT_SECONDS)
            return None
        why = f"{waits}: jobs have the tokens first"
    except Exception as error:  # what is not understood is unknown
        log.exception("%s cannot be read", record.name)
        why = f"{type(error).__name__}: the log has the details"
    return _unread(record, message, why, ports)


def _unread(record: ClusterRecord, message: ReadinessMessage, why: str, ports: Ports) -> ReadinessRecord:
    now = ports.clock()
    if message.counting:
        counted = {definition: Counted(now) for definition, _, _ in message.counting}
        return ReadinessRecord(record.name, record.uid, counted=counted)
    return ReadinessRecord(record.name, record.uid, Observation(now, unread=(Unread("the cluster", why),)))


def _store(record: ClusterRecord, found: ReadinessRecord, ports: Ports) -> None:
    """Store a reading, unless a later one is stored; what was counted before stays."""
    known = ports.state.readiness_of(record.name).of(record.uid)
    if found.seen is None:
        known = replace(known, counted={**known.counted, **found.counted})
    elif known.seen is None or known.seen.at <= found.seen.at:
        known = replace(known, seen=found.seen, room=found.room)
    try:
        ports.state.save_readiness(known)
    except Stale:  # another reading of the same minute
        log.info("%s: another reading was stored meanwhile", record.name)
