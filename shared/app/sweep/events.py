"""What an event of Azure does: it has just its cluster compared, once for a storm, and says who wrote.

It decides nothing else: what is so is read. So an event that is late, comes twice or out of order changes no
more than when that happens, and the next sweep finds what a lost one was about. What the app did itself costs
no read of anything. An event is foreign text: one that is not understood is dropped, and blocks no other.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta

from shared.app.outbox import send, send_all
from shared.app.records import again
from shared.app.sweep.verdicts import cluster_of
from shared.azure.companions.identity_access import CredentialCompanion
from shared.azure.drift.activity import Activity, AzureChange, changes_in, is_own
from shared.cluster.failures.errors import ReconcileError
from shared.cluster.findings.conditions import is_at_rest
from shared.cluster.queues.envelopes import checks_of
from shared.cluster.queues.messages import EVENT, SweepRequest
from shared.cluster.record import ClusterRecord
from shared.cluster.reporting.measurements import AZURE_EVENTS, Measurement
from shared.frozen import replace
from shared.ports import Ports
from shared.ports.state.clusters import readable

log = logging.getLogger(__name__)

WAIT = timedelta(seconds=5)
"""How long after an event its cluster is compared: those of one change come together."""
PAUSE = timedelta(seconds=30)
"""The time from one comparison to the next that events ask for."""
SHOWN = timedelta(seconds=2)
"""A comparison that comes so soon may read the cluster as it was before an event."""
SAME = timedelta(seconds=30)
"""A write like one of so short a time ago is not stored again."""
MOST = 20
"""So many writes of a cluster are stored."""
OLDEST = timedelta(days=7)
"""Event Grid tries for a day; what is older is nothing that it delivers."""
CHECK_SECONDS = 15
"""How often events of companions have a cluster checked at most."""


def handle(body: bytes, ports: Ports) -> None:
    """Take a message with events; raise ReconcileError where the state or a queue does not answer."""
    try:
        changes = changes_in(body, ports.clock())
    except ValueError as error:
        log.warning("a message of the queue of Azure's events is dropped: %s", error)
        _count("unreadable", ports)
        return
    for change in changes:
        try:
            _count(_take(change, ports), ports)
        except ReconcileError:
            raise
        except Exception:  # raising would bring the message back, and the next sweep finds what it is about
            log.exception("an event of Azure is dropped")
            _count("failed", ports)


def _count(result: str, ports: Ports) -> None:
    ports.services.telemetry.record([Measurement(AZURE_EVENTS, 1, {"result": result})])


def _take(change: AzureChange, ports: Ports) -> str:
    """Take a change; return what it is to the app."""
    if is_own(change, ports.config.principals, ports.config.mark):
        return "own"
    if change.activity.at < ports.clock() - OLDEST:
        return "old"
    records = _concerned(change, ports)
    for record in records:
        if change.is_of_companion:
            _ask_for_check(record, ports)
        else:
            _ask(record, change.activity, ports)
    return "taken" if records else "elsewhere"


def _concerned(change: AzureChange, ports: Ports) -> Sequence[ClusterRecord]:
    """Return the clusters that a change may be of: by its place, its group, or the name that is ours."""
    place, group, around = change.place, change.group, ""
    if place is not None:
        names, around = [place.name], place.resource.lower()
    elif group is not None:
        members = ports.state.group_members(group.key)
        names = sorted({member.cluster for member in members})
        around = f"/subscriptions/{group.subscription}/resourcegroups/{group.name}/"
    elif CredentialCompanion.segment in change.resource:
        named = ((summary.name, cluster_of(summary)) for summary in ports.state.summaries())
        names = [name for name, cluster in named if CredentialCompanion.is_ours(cluster, change.resource, {})]
    else:
        return []
    records = (readable(name, ports.state) for name in names)
    return [
        record
        for record in records
        if record is not None
        and not record.desired.is_attached
        and record.desired.id.resource.lower().startswith(around)
    ]


@again
def _ask(record: ClusterRecord, write: Activity, ports: Ports) -> None:
    """Store who wrote, and ask for a comparison unless one comes that will show it.

    A cluster on which a job works is compared at its end; the job of one that sleeps looks at it. Who stores
    the time first asks; an event that comes again asks again for the same, so that no crash in between loses
    it.
    """
    now, known = ports.clock(), ports.state.changes_of(record.name)
    asked, changes = known.asked, _with(known.changes, write)
    due = (is_at_rest(record) or record.sleep_job_runs) and (asked is None or asked <= now + SHOWN)
    if due:
        asked = max(now + WAIT, asked + PAUSE) if asked else now + WAIT
    after = replace(known, changes=changes, asked=asked)
    if after != known:
        ports.state.save_changes(after)
    if asked is not None and asked > now and (due or write in known.changes):
        send(_comparison(record.name, asked), ports, after=(asked - now).total_seconds())


def _comparison(name: str, at: datetime) -> SweepRequest:
    return SweepRequest(sweep=f"{EVENT}{int(at.timestamp())}", clusters=(name,))


def _with(known: tuple[Activity, ...], write: Activity) -> tuple[Activity, ...]:
    """Return the writes with another one, by their times; of those that are alike the newest is enough."""

    def is_like(other: Activity) -> bool:
        same = (other.resource, other.caller, other.operation) == (
            write.resource,
            write.caller,
            write.operation,
        )
        return same and abs(other.at - write.at) < SAME

    if any(map(is_like, known)):
        return known
    return tuple(sorted((*known, write), key=lambda other: other.at))[-MOST:]


def _ask_for_check(record: ClusterRecord, ports: Ports) -> None:
    """Have the companions of a cluster read, which no list of clusters has."""
    if is_at_rest(record):
        now = ports.clock().timestamp()
        moment = f"{EVENT}{record.uid}:{int(now) // CHECK_SECONDS}"
        send_all(checks_of([record.name], moment, CHECK_SECONDS - now % CHECK_SECONDS), ports)
