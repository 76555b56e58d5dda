"""Readings of clusters before an upgrade or a removal: one message each, in the queue of the worker.

Somebody asks for them, or a stage of a rollout, or a plan that removes a definition; no check and no job
does. A reading writes nothing to the cluster, and nothing to its record. What is read is stored as a fact
with its time. It reads page by page, and of pods their metadata. Each part that cannot be read is unknown,
and the others are read all the same; after an API server that does not answer, nothing else is asked.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from shared.app.access.context import ClusterAccess, StepContext
from shared.app.access.rate_limiter import RateLimited, RateLimiter
from shared.app.offers import offer_to
from shared.app.outbox import send, send_all
from shared.azure.availability.offers import OfferRequest
from shared.azure.availability.upgrade_room import UpgradeRoom, failed_parts, room_of
from shared.azure.changes.upgrades import POOL_LABEL
from shared.cluster.failures.errors import Dependency, ReconcileError, Stale, Unauthenticated, Unavailable
from shared.cluster.queues.envelopes import readings_of
from shared.cluster.queues.messages import ReadinessMessage
from shared.cluster.record import ClusterRecord
from shared.frozen import replace
from shared.json_tree import Json
from shared.kubernetes.flux_objects import EXTENSION_NAME, KUSTOMIZATION
from shared.kubernetes.inside import API_VERSION as APPS
from shared.kubernetes.readiness import webhooks
from shared.kubernetes.readiness.budgets import Budgets, LoneWorkload, PodInTheWay
from shared.kubernetes.readiness.observation import (
    METRIC,
    AppliedApi,
    ObjectCount,
    Observation,
    ReadGap,
    RequestedApi,
    applied_apis,
    named,
    pool_nodes,
    requested_apis,
)
from shared.kubernetes.readiness.webhooks import NodeWebhook, Service, node_webhooks, ready_endpoints
from shared.logs import about_record
from shared.masking import cut
from shared.platform.changes.counts import DefinedKind
from shared.ports import KubernetesApi, Ports
from shared.ports.azure import GetCluster, GetExtension
from shared.ports.state.clusters import readable
from shared.ports.state.readiness import ReadinessRecord

T = TypeVar("T")
Named = tuple[tuple[T, ...], int]
"""What is named of some objects, and how many more there are."""
READ_SECONDS = 120.0
"""After so many seconds nothing more is read: less than half of ``functionTimeout``."""
MOST_PAGES = 200
"""So many pages of a kind are read: with 500 objects each, of 100,000 pods."""
MOST_SERVICES = 50
"""The endpoints of so many Services that webhooks call are read, each by itself."""
LIVING = "status.phase!=Succeeded,status.phase!=Failed"
"""Pods that have ended are in nobody's way."""
_MESSAGE = 300


class _Unfinished(Exception):
    """There was more than is read."""


def observe(context: StepContext) -> Observation:
    """Return what a cluster shows; raise RateLimited where a credential of Azure is not to be had now."""
    now = context.ports.clock()
    if not context.enters:
        why = "it is private, and the app is in no network that reaches it"
        return Observation(now, unread=(ReadGap("the cluster", why),))
    try:
        api = context.kubernetes()
    except ReconcileError as error:
        return Observation(now, unread=(ReadGap("the cluster", _why(error)),))
    return _Reading(context, api).whole()


def room_for(context: StepContext) -> UpgradeRoom | None:
    """Return what Azure has for the upgrade of a cluster, None for an attached one; raise RateLimited.

    One read of the cluster, one of its Flux extension where it has that, and the lists of its region.
    """
    desired = context.desired
    if desired.is_attached:
        return None
    offer, subjects = offer_to(OfferRequest.of(desired, None), context.ports)
    unread = [ReadGap(subject, "Azure did not say") for subject in subjects]
    failed: tuple[tuple[str, str], ...] = ()
    try:
        live = context.azure(GetCluster(context.cluster))
        wants = desired.has_extension and live is not None
        extension = context.azure(GetExtension(context.cluster, EXTENSION_NAME)) if wants else None
        failed = tuple(failed_parts(live, extension)) if live else (("the cluster", "gone"),)
    except ReconcileError as error:
        unread.append(ReadGap("the state of the cluster in Azure", _why(error)))
    return room_of(desired.spec, offer, failed, unread)


class _Reading:
    """One reading of one cluster."""

    def __init__(self, context: StepContext, api: KubernetesApi) -> None:
        self._context, self._api = context, api
        self._end = context.ports.elapsed() + READ_SECONDS
        self._unread = list[ReadGap]()
        self._stopped = ""
        self._reads = 0

    def whole(self) -> Observation:
        """Read all parts."""
        found, more = Observation(self._context.ports.clock()), dict[str, int]()

        def take(field: str, what: str, read: Callable[[], Named[T]]) -> tuple[T, ...]:
            nothing: Named[T] = ((), 0)
            values, beyond = self._part(what, read, nothing)
            more.update({field: beyond} if beyond else {})
            return values

        budgets = self._part("PodDisruptionBudgets", self._budgets, None)
        if budgets is not None:
            tight = take("budgets", "PodDisruptionBudgets", lambda: named(budgets.tight()))
            found = replace(found, budgets=tight)
            self._unread += [
                ReadGap(f"what the PodDisruptionBudget {name} allows", "its pods were not counted yet")
                for name in named(budgets.uncounted())[0]
            ]
            pods = take("pods", "pods", lambda: named(self._pods(budgets)))
            lone = take("lone", "workloads", lambda: named(self._lone(budgets)))
            found = replace(found, pods=pods, lone=lone)
        found = replace(
            found,
            webhooks=take("webhooks", "admission webhooks", self._webhooks),
            nodes=self._part("nodes", lambda: pool_nodes(self._all("v1", "Node"), POOL_LABEL), ()),
            requested=self._part("the metrics of the API server", self._requested, ()),
            applied=self._part("what Flux applies", self._applied, ()),
        )
        return replace(found, unread=tuple(self._unread), more=more, reads=self._reads)

    def _part(self, what: str, read: Callable[[], T], nothing: T) -> T:
        try:
            if not self._stopped:
                return read()
        except _Unfinished as error:
            self._unread.append(ReadGap(what, str(error)))
            return nothing
        except ReconcileError as error:
            if not isinstance(error, Unavailable | Unauthenticated):
                self._unread.append(ReadGap(what, _why(error)))
                return nothing
            self._stopped = _why(error)
        self._unread.append(ReadGap(what, self._stopped))
        return nothing

    def _all(
        self,
        api_version: str,
        kind: str,
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        metadata_only: bool = False,
    ) -> Iterator[Json]:
        """Yield the objects of a kind, one page at a time."""
        after = ""
        for _ in range(MOST_PAGES):
            if self._context.ports.elapsed() > self._end:
                raise _Unfinished(f"that took more than {READ_SECONDS:g} seconds")
            self._reads += 1
            page = self._api.page(
                api_version,
                kind,
                namespace=namespace,
                labels=labels,
                fields=fields,
                after=after,
                metadata_only=metadata_only,
            )
            yield from page.objects
            after = page.after
            if not after:
                return
        raise _Unfinished(f"there are more than {MOST_PAGES} pages")

    def _budgets(self) -> Budgets:
        return Budgets(self._all("policy/v1", "PodDisruptionBudget"))

    def _pods(self, budgets: Budgets) -> Iterator[PodInTheWay]:
        return budgets.pods_in_the_way(self._all("v1", "Pod", fields=LIVING, metadata_only=True))

    def _lone(self, budgets: Budgets) -> Iterator[LoneWorkload]:
        """Yield the workloads with one replica; nothing is read of them where there is no budget."""
        for kind in ("Deployment", "StatefulSet") if budgets else ():
            yield from budgets.lone(self._all(APPS, kind))

    def _webhooks(self) -> Named[NodeWebhook]:
        found = [
            webhook
            for kind in webhooks.KINDS
            for webhook in node_webhooks(self._all(webhooks.API_VERSION, kind))
        ]
        services = list(dict.fromkeys(webhook.service for webhook in found))
        ready = {service: self._ready(service) for service in services[:MOST_SERVICES]}
        if len(services) > MOST_SERVICES:
            why = f"webhooks call more than {MOST_SERVICES} Services"
            self._unread.append(ReadGap("the endpoints of some Services", why))
        return named(webhooks.unanswered(found, ready))

    def _ready(self, service: Service) -> int:
        labels = f"{webhooks.SERVICE_LABEL}={service.name}"
        slices = self._all("discovery.k8s.io/v1", "EndpointSlice", namespace=service.namespace, labels=labels)
        return ready_endpoints(slices)

    def _requested(self) -> tuple[RequestedApi, ...]:
        self._reads += 1
        return requested_apis(self._api.metric(METRIC))

    def _applied(self) -> tuple[AppliedApi, ...]:
        try:
            return applied_apis(self._all(KUSTOMIZATION.api_version, KUSTOMIZATION.kind))
        except Dependency as error:
            if error.code != "NotFound":
                raise
            return ()


def _why(error: ReconcileError) -> str:
    return cut(f"{error.kind}: {error}", _MESSAGE)


# Counts the objects of kinds whose definitions a plan removes: only then, because a plan asked for it.


MOST_COUNTED_PAGES = 40
"""So many pages of a kind are counted, with 500 objects each; beyond there are "at least" as many."""


def count(context: StepContext, kinds: Sequence[DefinedKind]) -> dict[str, ObjectCount]:
    """Return how many objects of each kind a cluster has, by the names of the definitions.

    Raise RateLimited where a credential of Azure is not to be had now.
    """
    now = context.ports.clock()
    found = {definition: ObjectCount(now) for definition, _, _ in kinds}
    if not context.enters:
        return found
    try:
        api = context.kubernetes()
        for definition, api_version, kind in kinds:
            after, objects = "", 0
            for _ in range(MOST_COUNTED_PAGES):
                page = api.page(api_version, kind, after=after, metadata_only=True)
                objects, after = objects + len(page.objects), page.after
                if not after:
                    break
            found[definition] = ObjectCount(now, objects, more=bool(after))
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
        context = StepContext.of(record, ClusterAccess(record, limited).ports)
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
        counted = {definition: ObjectCount(now) for definition, _, _ in message.counting}
        return ReadinessRecord(record.name, record.uid, counted=counted)
    return ReadinessRecord(record.name, record.uid, Observation(now, unread=(ReadGap("the cluster", why),)))


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
