"""What a sweep concludes of a cluster, read, decided and saved, and where git sets what differs."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property

from shared.app.access.azure_state import azure_names
from shared.app.access.context import StepContext
from shared.app.followed import SourceFiles
from shared.app.notifications import notifications_of
from shared.app.outbox import next_check_of, send_all
from shared.app.records import Transition, change
from shared.app.repository import open_files, read_shared
from shared.app.sweep.activity import ActivityLog
from shared.app.sweep.corrections import Sighting, compare, correct, is_news
from shared.app.sweep.verdicts import verdict
from shared.cluster.divergence.drift import DriftedField, attributed
from shared.cluster.failures.errors import ClusterMissing, ReconcileError
from shared.cluster.findings.conditions import is_at_rest, is_unfinished
from shared.cluster.queues.envelopes import Envelope
from shared.cluster.record import ClusterRecord
from shared.frozen import replace
from shared.json_tree import Json
from shared.language.resolve.cluster_resolver import ClusterResolver
from shared.language.resolve.desired_fleet import source_of
from shared.language.resolve.layers import Layers
from shared.language.resolve.repository_layout import cluster_path
from shared.language.yaml.nodes import Node
from shared.logs import about_record
from shared.ports import Ports
from shared.ports.state.clusters import readable

MOST_MANIFESTS = 100
"""How many manifests one message of a sweep reads; later sweeps read the others."""


class Sources:
    """Where git sets the values that a sweep reports: file and line, in the commit that was planned last.

    That is read for a report, and not for each cluster: the commit once for a message of a sweep, and a
    manifest for each cluster with a new report.
    """

    def __init__(self, commit: str, ports: Ports) -> None:
        self._commit, self._ports = commit, ports
        self._left = MOST_MANIFESTS

    def added(self, record: ClusterRecord) -> ClusterRecord:
        """Return the record with the source of each value of git that differs and has none yet."""
        drift = record.divergence.drift
        if drift is None or not self._left or not any(map(_lacks_source, drift.fields)):
            return record
        self._left -= 1
        try:
            node = self._tree(record.name)
        except ReconcileError as error:
            log.warning("where git sets what differs is not known: %s: %s", error.kind, error)
            self._left = 0
            return record
        if node is None:
            return record
        fields = tuple(_with_source(field, node) for field in drift.fields)
        return replace(record, divergence=replace(record.divergence, drift=replace(drift, fields=fields)))

    def _tree(self, name: str) -> Node | None:
        """Return the manifest of a cluster with its layers, None where there is none, or an invalid one."""
        path, files = cluster_path(name), self._opened.files
        if path not in files.blobs:
            return None
        return ClusterResolver(self._layers, files, self._opened.read([path])).tree(name)

    @cached_property
    def _opened(self) -> SourceFiles:
        return open_files(self._commit, self._ports)

    @cached_property
    def _layers(self) -> Layers:
        return read_shared(self._opened, self._ports)


def _lacks_source(field: DriftedField) -> bool:
    return bool(field.git) and not field.source


def _with_source(field: DriftedField, node: Node) -> DriftedField:
    return replace(field, source=source_of(node, f"spec.{field.path}")) if _lacks_source(field) else field


log = logging.getLogger(__name__)

SETTLED = timedelta(minutes=2)
"""How long before a list a record must have been written: Azure may list a cluster as it was a moment ago."""


def conclude_from_list(
    name: str, live: Json, listed_at: datetime, sources: Sources, activity: ActivityLog, ports: Ports
) -> bool | None:
    """Conclude what a list shows of a cluster, unless its record was written at about that time.

    Return whether the cluster is not Ready any more, or is so again; None where only a newer read decides.
    """
    record = readable(name, ports.state)
    if record is None or not is_at_rest(record):
        return False
    if listed_at - record.updated <= SETTLED:
        return None
    return conclude(record, live, sources, activity, ports)


def conclude_still_missing(name: str, sources: Sources, activity: ActivityLog, ports: Ports) -> bool:
    """Conclude what is known meanwhile of a cluster that was found missing, and that a list lacks as well."""
    record = readable(name, ports.state)
    if record is None or record.finding != ClusterMissing.__name__:
        return False
    return conclude(record, None, sources, activity, ports)


def conclude(
    record: ClusterRecord,
    live: Json | None,
    sources: Sources,
    activity: ActivityLog,
    ports: Ports,
    read_at: datetime | None = None,
) -> bool:
    """Save what Azure shows of a cluster at rest, if its record says something else, and start a correction.

    Return whether the cluster is not Ready any more, or not in sync with git, or is so again. A sweep and a
    check may end at one moment, and neither loses what the other found; after a newer job, the next sweep
    reads the cluster. ``read_at`` is when the cluster was read by itself: whoever waits for that, and each
    view, knows by the time in its record. None for one of a list.
    """
    news = False

    def decide(current: ClusterRecord | None) -> Transition | tuple[Envelope, ...]:
        nonlocal news
        news = False
        if current is None or not is_beside(current, record):
            return ()
        decided, is_new = _conclusion(current, live, sources, activity, ports)
        after = compared_again(decided.record, read_at)
        if decided.record == current:
            return tuple(decided.first) if after == current else Transition(after, first=decided.first)
        news = is_new
        return replace(decided, record=after)

    with about_record(record):
        saved = change(record.name, decide, ports, known=(record,))
        if not isinstance(saved, ClusterRecord):
            send_all(saved, ports)
    return news


def compared_again(record: ClusterRecord, read_at: datetime | None) -> ClusterRecord:
    """Return the record with the time of a comparison, unless there is none or a later one is known."""
    known = record.observation.compared
    if read_at is None or (known is not None and known >= read_at):
        return record
    return replace(record, observation=replace(record.observation, compared=read_at))


def is_beside(current: ClusterRecord, record: ClusterRecord) -> bool:
    """Return whether a record has the same job as when it was read, whatever somebody wrote over it since."""
    same = (current.uid, current.job) == (record.uid, record.job)
    if not same:
        log.info("%s: its record was written meanwhile", record.name)
    return same


def _conclusion(
    record: ClusterRecord, live: Json | None, sources: Sources, activity: ActivityLog, ports: Ports
) -> tuple[Transition, bool]:
    context, now = StepContext.of(record, ports), ports.clock()
    found = verdict(live, context.owner, unfinished=is_unfinished(record))
    if found:
        found = replace(found, error=activity.named(found.error, record, now))
    shown = Sighting(live, found, context.owner, lambda: ports.state.fleet().rules.calendar, now)
    compared = compare(record, shown)
    if compared.turned:
        log.warning("%s: %s", record.name, found.error if found else "as it was before")
    if live is not None and compared.of_values:
        names = azure_names(live, context.owner, record.observation.running)
        known = _attributed(sources.added(compared.record), record, names, now, activity)
        compared = replace(compared, record=known)
    decided = correct(record, compared, shown)
    between, after = compared.concluded, decided.record
    told = [*notifications_of(record, between, ports), *notifications_of(between, after, ports)]
    checks = next_check_of(after, ports) if compared.turned else ()
    decided = replace(decided, notifications=told, first=[*decided.first, *checks])
    return decided, is_news(record, compared, after)


def _attributed(
    compared: ClusterRecord,
    before: ClusterRecord,
    pools: Mapping[str, Sequence[str]],
    now: datetime,
    activity: ActivityLog,
) -> ClusterRecord:
    """Return the record with who changed what has differed for some hours at most, as the log has it."""
    since = activity.asked_since(before.desired.id.subscription, now)
    drift = attributed(
        compared.divergence.drift, since, lambda field: activity.change(before, field, pools, now)
    )
    return (
        compared
        if drift == compared.divergence.drift
        else replace(compared, divergence=replace(compared.divergence, drift=drift))
    )
