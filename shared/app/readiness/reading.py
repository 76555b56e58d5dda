"""What is read of a cluster before an upgrade: pages, no more of them in memory than one.

Of pods their metadata is enough. Each part that cannot be read is unknown, and the others are read all the
same; after an API server that does not answer, nothing else is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from shared.app.access.context import StepContext
from shared.app.offers import offer_to
from shared.azure.availability.offers import Request
from shared.azure.availability.upgrade_room import Room, failed_parts, room_of
from shared.azure.changes.upgrades import POOL_LABEL
from shared.cluster.failures.errors import Dependency, ReconcileError, Unauthenticated, Unavailable
from shared.frozen import replace
from shared.json_tree import Json
from shared.kubernetes.flux_objects import EXTENSION_NAME, KUSTOMIZATION
from shared.kubernetes.inside import API_VERSION as APPS
from shared.kubernetes.readiness import webhooks
from shared.kubernetes.readiness.budgets import Budgets, LoneWorkload, PodInTheWay
from shared.kubernetes.readiness.observation import (
    METRIC,
    AppliedApi,
    Observation,
    RequestedApi,
    Unread,
    applied_apis,
    named,
    pool_nodes,
    requested_apis,
)
from shared.kubernetes.readiness.webhooks import NodeWebhook, Service, node_webhooks, ready_endpoints
from shared.masking import cut
from shared.ports import KubernetesApi
from shared.ports.azure import GetCluster, GetExtension

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
        return Observation(now, unread=(Unread("the cluster", why),))
    try:
        api = context.kubernetes()
    except ReconcileError as error:
        return Observation(now, unread=(Unread("the cluster", _why(error)),))
    return _Reading(context, api).whole()


def room_for(context: StepContext) -> Room | None:
    """Return what Azure has for the upgrade of a cluster, None for one elsewhere; raise RateLimited.

    One read of the cluster, one of its Flux extension where it has that, and the lists of its region.
    """
    desired = context.desired
    if desired.is_attached:
        return None
    offer, subjects = offer_to(Request.of(desired, None), context.ports)
    unread = [Unread(subject, "Azure did not say") for subject in subjects]
    failed: tuple[tuple[str, str], ...] = ()
    try:
        live = context.azure(GetCluster(context.cluster))
        wants = desired.has_extension and live is not None
        extension = context.azure(GetExtension(context.cluster, EXTENSION_NAME)) if wants else None
        failed = tuple(failed_parts(live, extension)) if live else (("the cluster", "gone"),)
    except ReconcileError as error:
        unread.append(Unread("the state of the cluster in Azure", _why(error)))
    return room_of(desired.spec, offer, failed, unread)


class _Reading:
    """One reading of one cluster."""

    def __init__(self, context: StepContext, api: KubernetesApi) -> None:
        self._context, self._api = context, api
        self._end = context.ports.elapsed() + READ_SECONDS
        self._unread = list[Unread]()
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
                Unread(f"what the PodDisruptionBudget {name} allows", "its pods were not counted yet")
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
            self._unread.append(Unread(what, str(error)))
            return nothing
        except ReconcileError as error:
            if not isinstance(error, Unavailable | Unauthenticated):
                self._unread.append(Unread(what, _why(error)))
                return nothing
            self._stopped = _why(error)
        self._unread.append(Unread(what, self._stopped))
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
            self._unread.append(Unread("the endpoints of some Services", why))
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
