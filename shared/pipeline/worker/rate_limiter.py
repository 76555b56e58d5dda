"""Azure's limits, kept before Azure has to refuse: every call of a step takes its tokens first.

A step that finds none gets a turn, which its row remembers, and comes back for it: that is no failed attempt,
and nobody else is given that turn. A refusal (429) all the same, because others use the subscription too,
empties the bucket until the service's Retry-After.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from shared.fleet.resource_ids import ClusterId
from shared.jobs.errors import Retryable, Stale, Throttled
from shared.jobs.lease import EARLY
from shared.jobs.rate_limits import (
    AKS_OTHER,
    ARM_DELETE,
    ARM_READ,
    ARM_WRITE,
    Bucket,
    Limit,
    correct,
    reserve,
    take,
)
from shared.jobs.record import ClusterRecord
from shared.ports import GroupWrite, Json, Kubernetes, KubernetesApi, ManagedClusters, Ports, ResourceGroups

BATCH = 5
"""How many tokens for reads are taken in one go."""
BATCH_SECONDS = 5.0
"""How long they are held; far less than Azure's bucket takes to fill again."""
TRIES = 20
"""How often a bucket is tried that other workers take from at the same time."""
CROWDED_SECONDS = 2.0
RETRY_AFTER = 10.0
"""Seconds that a bucket stays empty when a refusal does not say how long."""
_OF_ARM = "SubscriptionRequestsThrottled"
"""ARM's code for its own limits of a subscription."""
_OF_AKS = "Throttled"
"""The code of AKS: its limits are of one cluster, but for those of ``AKS_OTHER``."""

log = logging.getLogger(__name__)

T = TypeVar("T")


class RateLimited(Exception):
    """There is no token now; the step's turn comes at ``at``."""

    def __init__(self, limit: Limit, subscription: str, at: datetime) -> None:
        when = f"{at:%Y-%m-%d %H:%M:%S} UTC"
        super().__init__(f"waits for Azure's {limit.words} of subscription {subscription}, a turn at {when}")
        self.at = at


class RateLimiter:
    """What one run of a step may spend; ``turns`` are those it still has, by bucket.

    ``request_ids`` are the cloud's ids of the writes that it made.
    """

    def __init__(self, record: ClusterRecord, ports: Ports) -> None:
        self._ports = ports
        self._called: Counter[tuple[Limit, str]] = Counter()
        self.reservations = {key: list(reservations) for key, reservations in record.job.reserved.items()}
        self.request_ids: list[str] = []

    def over(self, ports: Ports) -> Ports:
        """Return the ports with every call to Azure counted."""
        aks = _Clusters(ports.aks, self)
        kubernetes = _Kubernetes(ports.kubernetes, aks)
        return replace(ports, groups=_Groups(ports.groups, self), aks=aks, kubernetes=kubernetes)

    def call(self, subscription: str, limits: Sequence[Limit], make: Callable[[], T]) -> T:
        """Take a token of each limit, then make the call; raise Turn when one has to be waited for."""
        for number, limit in enumerate(limits):
            reservation = self._spend(limit, subscription)
            if reservation is not None:
                raise self._wait(limit, subscription, reservation, unused=limits[:number])
        self._called.update((limit, subscription) for limit in limits)
        try:
            return make()
        except Throttled as error:
            self._correct(error, limits, subscription)
            raise

    def write(self, subscription: str, limits: Sequence[Limit], make: Callable[[], str]) -> str:
        """Make a call that changes something, and note its request id."""
        request_id = self.call(subscription, limits, make)
        self.note(request_id)
        return request_id

    def note(self, request_id: str) -> None:
        """Note the id of a request that changed something, if it has one."""
        if request_id:
            self.request_ids.append(request_id)

    @property
    def reserved(self) -> Mapping[str, tuple[datetime, ...]]:
        """The turns that it still has, as a row keeps them."""
        return {key: tuple(reservations) for key, reservations in self.reservations.items() if reservations}

    def _spend(self, limit: Limit, subscription: str) -> datetime | None:
        """Take a token; return None, or the turn that has to be waited for."""
        key, now = _key(limit, subscription), self._ports.clock()
        reservations = self.reservations.get(key, [])
        while reservations:
            reservation = reservations[0]
            if now < reservation - EARLY:
                return reservation
            reservations.pop(0)
            if now <= reservation + limit.lapse:
                return None
        if limit is ARM_READ and (
            self._ports.token_cache.take(key, now) or self._take_batch(key, limit, now)
        ):
            return None
        reservation = self._reserve(key, limit, now)
        if reservation <= now + EARLY:
            return None
        self.reservations.setdefault(key, []).append(reservation)
        return reservation

    def _wait(
        self, limit: Limit, subscription: str, reservation: datetime, *, unused: Sequence[Limit]
    ) -> RateLimited:
        """Return the turn to come back for, with tokens for all the calls that have to be made again.

        The step begins from its start, so the calls that it made are made once more: without turns of their
        own, two calls on one empty bucket would take each other's for ever.
        """
        now = self._ports.clock()
        for each in unused:
            self.reservations.setdefault(_key(each, subscription), []).insert(0, now)
        last, at = (limit, subscription), reservation
        for (spent, owner), count in self._called.items():
            for _ in range(count):
                more = self._reserve_if_empty(_key(spent, owner), spent, now)
                if more is None:
                    break
                self.reservations.setdefault(_key(spent, owner), []).append(more)
                if more > at:
                    last, at = (spent, owner), more
        return RateLimited(*last, at)

    def _reserve_if_empty(self, key: str, limit: Limit, now: datetime) -> datetime | None:
        """Return the next turn if it is to come, None when tokens are there."""
        reservation: datetime | None = None

        def one(bucket: Bucket) -> Bucket:
            nonlocal reservation
            after, reservation = reserve(bucket, limit, now=now)
            if reservation > now + EARLY:
                return after
            reservation = None
            return bucket

        return reservation if self._change(key, one, now) else None

    def _take_batch(self, key: str, limit: Limit, now: datetime) -> bool:
        taken = 0

        def some(bucket: Bucket) -> Bucket:
            nonlocal taken
            after, taken = take(bucket, limit, now=now, most=BATCH)
            return after

        if not self._change(key, some, now) or not taken:
            return False
        self._ports.token_cache.put(key, taken - 1, now + timedelta(seconds=BATCH_SECONDS))
        return True

    def _reserve(self, key: str, limit: Limit, now: datetime) -> datetime:
        reservation = now

        def one(bucket: Bucket) -> Bucket:
            nonlocal reservation
            after, reservation = reserve(bucket, limit, now=now)
            return after

        if not self._change(key, one, now):
            return now + timedelta(seconds=CROWDED_SECONDS * (1 + self._ports.random()))
        return reservation

    def _change(self, key: str, change: Callable[[Bucket], Bucket], now: datetime) -> bool:
        """Write a bucket by compare-and-swap, unless nothing changes; False when others are always faster."""
        state = self._ports.state
        for _ in range(TRIES):
            before = state.bucket(key) or Bucket(now)
            after = change(before)
            if after == before:
                return True
            try:
                state.save_bucket(key, after)
            except Stale:
                continue
            return True
        return False

    def _correct(self, error: Throttled, limits: Sequence[Limit], subscription: str) -> None:
        """Empty the buckets that may have refused: all of the call, where the code does not tell which.

        It never hides the refusal: what cannot be written now, the next refusal writes.
        """
        spared = {_OF_ARM: [AKS_OTHER], _OF_AKS: [ARM_READ, ARM_WRITE, ARM_DELETE]}.get(error.code, [])
        refused = [limit for limit in limits if limit not in spared]
        now, seconds = self._ports.clock(), error.retry_after or RETRY_AFTER
        for limit in refused:
            key = _key(limit, subscription)
            self._ports.token_cache.drop(key)
            try:
                self._change(key, partial(correct, limit=limit, now=now, seconds=seconds), now)
            except Retryable as away:
                log.warning("the bucket %s could not be emptied: %s", key, away)


def _key(limit: Limit, subscription: str) -> str:
    return f"{subscription.lower()}|{limit.name}"


@dataclass(frozen=True)
class _Groups:
    inner: ResourceGroups
    budget: RateLimiter

    def get(self, subscription: str, name: str) -> Json | None:
        return self.budget.call(subscription, [ARM_READ], lambda: self.inner.get(subscription, name))

    def put(self, subscription: str, name: str, body: Json) -> GroupWrite:
        written = self.budget.call(
            subscription, [ARM_WRITE], lambda: self.inner.put(subscription, name, body)
        )
        self.budget.note(written.request_id)
        return written

    def delete(self, subscription: str, name: str) -> str:
        return self.budget.write(subscription, [ARM_DELETE], lambda: self.inner.delete(subscription, name))

    def resources(self, subscription: str, name: str) -> Sequence[str]:
        return self.budget.call(subscription, [ARM_READ], lambda: self.inner.resources(subscription, name))


@dataclass(frozen=True)
class _Clusters:
    inner: ManagedClusters
    budget: RateLimiter

    def get(self, cluster: ClusterId) -> Json | None:
        return self.budget.call(cluster.subscription, [ARM_READ], lambda: self.inner.get(cluster))

    def put(self, cluster: ClusterId, body: Json, *, etag: str | None) -> str:
        return self._write([ARM_WRITE], cluster, lambda: self.inner.put(cluster, body, etag=etag))

    def delete(self, cluster: ClusterId, *, etag: str | None) -> str:
        return self._write([AKS_OTHER, ARM_DELETE], cluster, lambda: self.inner.delete(cluster, etag=etag))

    def put_pool(self, cluster: ClusterId, pool: str, body: Json, *, etag: str | None) -> str:
        return self._write([ARM_WRITE], cluster, lambda: self.inner.put_pool(cluster, pool, body, etag=etag))

    def delete_pool(self, cluster: ClusterId, pool: str, *, etag: str | None) -> str:
        limits = [AKS_OTHER, ARM_DELETE]
        return self._write(limits, cluster, lambda: self.inner.delete_pool(cluster, pool, etag=etag))

    def upgrade_node_image(self, cluster: ClusterId, pool: str) -> str:
        limits = [AKS_OTHER, ARM_WRITE]
        return self._write(limits, cluster, lambda: self.inner.upgrade_node_image(cluster, pool))

    def upgrade_profile(self, cluster: ClusterId) -> Json:
        return self._read(cluster, lambda: self.inner.upgrade_profile(cluster))

    def versions(self, subscription: str, location: str) -> Json:
        limits = [AKS_OTHER, ARM_READ]
        return self.budget.call(subscription, limits, lambda: self.inner.versions(subscription, location))

    def maintenance(self, cluster: ClusterId) -> Mapping[str, Json]:
        return self._read(cluster, lambda: self.inner.maintenance(cluster))

    def put_maintenance(self, cluster: ClusterId, name: str, body: Json) -> str:
        limits = [AKS_OTHER, ARM_WRITE]
        return self._write(limits, cluster, lambda: self.inner.put_maintenance(cluster, name, body))

    def kubeconfig(self, cluster: ClusterId) -> str:
        return self._read(cluster, lambda: self.inner.kubeconfig(cluster))

    def _read(self, cluster: ClusterId, make: Callable[[], T]) -> T:
        return self.budget.call(cluster.subscription, [AKS_OTHER, ARM_READ], make)

    def _write(self, limits: Sequence[Limit], cluster: ClusterId, make: Callable[[], str]) -> str:
        return self.budget.write(cluster.subscription, limits, make)


@dataclass(frozen=True)
class _Kubernetes:
    inner: Kubernetes
    aks: ManagedClusters

    def connect(
        self, cluster: ClusterId, *, kubeconfig: Callable[[ClusterId], str] | None = None
    ) -> KubernetesApi:
        return self.inner.connect(cluster, kubeconfig=kubeconfig or self.aks.kubeconfig)
