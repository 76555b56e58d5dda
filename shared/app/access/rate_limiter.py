"""The rate limiter: every call to Azure takes its tokens first, so that Azure rarely has to refuse one.

Without a token, a step gets a reservation, which its record stores, and runs again at that time: that is no
failed attempt, and no other step gets that reservation. Azure may refuse all the same (429), because others
use the subscription too; the refusal empties the bucket until the service's Retry-After.

A small change takes what is there for everybody, and otherwise what is set aside for small changes. It does
not compete for the first with the workers of a large change: it tries that once.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from shared.azure.rate_limits import (
    AKS_OTHER,
    ARM_DELETE,
    ARM_READ,
    ARM_WRITE,
    Bucket,
    Limit,
    correct,
    reserve,
    spare,
    take,
)
from shared.cluster.failures.errors import Retryable, Stale, Throttled
from shared.cluster.record import ClusterRecord
from shared.cluster.transitions.lease import EARLY
from shared.frozen import dataclass, replace
from shared.ports import Azure, Ports
from shared.ports.azure import AzureCall, WriteResponse

BATCHES = {ARM_READ: 5, ARM_WRITE: 2}
"""How many tokens are taken in one batch; a new cluster writes its group and itself."""
BATCH_SECONDS = 5.0
"""How long a batch stays in the token cache; Azure's bucket takes far longer to fill again."""
TRIES = 12
"""How often a write of a bucket is tried while other workers take from it."""
BACKOFF = (0.2, 0.8)
"""Seconds within which a write is tried again after its first lost race, and the most; each race doubles it.

The wait is a random part of it, so that those who lost together do not meet again
(aws.amazon.com/builders-library/timeouts-retries-and-backoff-with-jitter).
"""
CROWDED_SECONDS = 2.0
RETRY_AFTER = 10.0
"""Seconds that a bucket stays empty after a refusal without a Retry-After."""
_OF_ARM = "SubscriptionRequestsThrottled"
"""ARM's code for its own limits of a subscription."""
_OF_AKS = "Throttled"
"""The code of AKS: its limits apply to one cluster, except for those of ``AKS_OTHER``."""

log = logging.getLogger(__name__)

T = TypeVar("T")
Reservations = Mapping[str, Sequence[datetime]]
"""Reserved tokens by bucket."""


class RateLimited(Exception):
    """There is no token now; the step has a reservation for ``at``."""

    def __init__(self, limit: Limit, subscription: str, at: datetime) -> None:
        when = f"{at:%Y-%m-%d %H:%M:%S} UTC"
        super().__init__(f"waits for {limit.description} {subscription}, reserved for {when}")
        self.at = at


class RateLimiter:
    """The tokens of one run of a step; ``reservations`` are those that it has not used, by bucket.

    ``wrote`` is whether the step wrote to Azure, and ``request_ids`` are Azure's ids of these writes.
    Without a record, as in a sweep, ``reservations`` are given.
    """

    def __init__(
        self, record: ClusterRecord | None, ports: Ports, reservations: Reservations | None = None
    ) -> None:
        self._ports = ports
        self._small_change = record is not None and record.job.small_change
        self._called: Counter[tuple[Limit, str]] = Counter()
        stored = record.job.next_run.reservations if record else reservations
        self.reservations = {key: [*moments] for key, moments in (stored or {}).items()}
        self.wrote = False
        self.request_ids: list[str] = []

    @property
    def called(self) -> bool:
        """Whether this run of the step has sent a call."""
        return bool(self._called)

    def run_again(self) -> None:
        """Begin another run of the step: only its own calls are those that it may have to repeat."""
        self._called.clear()

    def over(self, ports: Ports) -> Ports:
        """Return the ports with every call to Azure rate limited."""
        return replace(ports, azure=_LimitedAzure(ports.azure, self))

    def call(self, subscription: str, limits: Sequence[Limit], send: Callable[[], T]) -> T:
        """Take a token of each limit, then send the call; raise RateLimited when a token is missing."""
        self._take_all(subscription, limits)
        self._called.update((limit, subscription) for limit in limits)
        try:
            return send()
        except Throttled as error:
            self._correct(error, limits, subscription)
            raise

    def hold(self, subscription: str, limits: Sequence[Limit]) -> None:
        """Take the tokens of a write before the reads that lead to it; raise RateLimited without one.

        Who finds none after a read has to read again.
        """
        self._take_all(subscription, limits)
        for limit in limits:
            held = self.reservations.setdefault(self._own_key(limit, subscription), [])
            held.insert(0, self._ports.clock())

    def _take_all(self, subscription: str, limits: Sequence[Limit]) -> None:
        for number, limit in enumerate(limits):
            reservation = self._take(limit, subscription)
            if reservation is not None:
                raise self._wait(limit, subscription, reservation, unused=limits[:number])

    def turn(self, limit: Limit, name: str) -> None:
        """Take the token of what is not a subscription's; raise RateLimited when it is missing."""
        reservation = self._take(limit, name)
        if reservation is not None:
            raise self._wait(limit, name, reservation, unused=())

    def has_spare(self, limit: Limit, subscription: str) -> bool:
        """Return whether half of the tokens for everybody are unused now."""
        now = self._ports.clock()
        bucket = self._ports.state.bucket(_key(limit.common, subscription)) or Bucket(now)
        return spare(bucket, limit.common, now=now)

    @property
    def reserved(self) -> Mapping[str, tuple[datetime, ...]]:
        """The reservations that the step has not used, as a record stores them."""
        return {key: tuple(reservations) for key, reservations in self.reservations.items() if reservations}

    def _take(self, limit: Limit, subscription: str) -> datetime | None:
        """Take a token; return None, or the reservation to wait for."""
        *others, own = self._shares(limit)
        key, now = _key(own, subscription), self._ports.clock()
        reservations = self.reservations.get(key, [])
        while reservations:
            reservation = reservations[0]
            if now < reservation - EARLY:
                return reservation
            reservations.pop(0)
            if now <= reservation + limit.lapse:
                return None
        most = BATCHES.get(limit, 1)
        if any(self._take_now(_key(share, subscription), share, now, most) for share in others):
            return None
        taken = now if self._ports.token_cache.take(key, now) else self._take_or_reserve(key, own, most)
        now = self._ports.clock()
        if taken is None:  # no token was taken, so there is nothing to store for later
            return now + timedelta(seconds=CROWDED_SECONDS * (1 + self._ports.random()))
        if taken <= now + EARLY:
            return None
        self.reservations.setdefault(key, []).append(taken)
        return taken

    def _wait(
        self, limit: Limit, subscription: str, reservation: datetime, *, unused: Sequence[Limit]
    ) -> RateLimited:
        """Return the last of the reservations that the step needs for all the calls that it has to repeat.

        The step starts again from its beginning and repeats its calls: without reservations of their own,
        two calls on one empty bucket would take each other's indefinitely.
        """
        now = self._ports.clock()
        for unused_limit in unused:
            self.reservations.setdefault(self._own_key(unused_limit, subscription), []).insert(0, now)
        last, at = (limit, subscription), reservation
        for (repeated, target), count in self._called.items():
            for _ in range(count):
                more = self._reserve_if_empty(repeated, target)
                if more is None:
                    break
                self.reservations.setdefault(self._own_key(repeated, target), []).append(more)
                if more > at:
                    last, at = (repeated, target), more
        return RateLimited(*last, at)

    def _shares(self, limit: Limit) -> Sequence[Limit]:
        """Return the parts of a limit that the step may use; it gets reservations of the last one."""
        divided = self._small_change and limit.divided
        return (limit.common, limit.set_aside) if divided else (limit.common,)

    def _own_key(self, limit: Limit, subscription: str) -> str:
        return _key(self._shares(limit)[-1], subscription)

    def _reserve_if_empty(self, limit: Limit, subscription: str) -> datetime | None:
        """Return a reservation for later, None when there are tokens now, or too many workers take them."""
        reservation: datetime | None = None
        *others, own = self._shares(limit)
        if any(self._has_token(share, subscription) for share in others):
            return None

        def reserve_one(bucket: Bucket, now: datetime) -> Bucket:
            nonlocal reservation
            after, reservation = reserve(bucket, own, now=now)
            if reservation > now + EARLY:
                return after
            reservation = None
            return bucket

        return reservation if self._change(_key(own, subscription), reserve_one) else None

    def _has_token(self, share: Limit, subscription: str) -> bool:
        now = self._ports.clock()
        bucket = self._ports.state.bucket(_key(share, subscription)) or Bucket(now)
        return reserve(bucket, share, now=now)[1] <= now + EARLY

    def _take_now(self, key: str, share: Limit, now: datetime, most: int) -> bool:
        """Take up to ``most`` tokens, one for now and the rest for the cache; return if there was one."""
        if self._ports.token_cache.take(key, now):
            return True
        taken = 0

        def take_some(bucket: Bucket, now: datetime) -> Bucket:
            nonlocal taken
            after, taken = take(bucket, share, now=now, most=most)
            return after

        if not self._change(key, take_some, tries=1) or not taken:
            return False
        self._keep(key, taken - 1, now)
        return True

    def _take_or_reserve(self, key: str, limit: Limit, most: int) -> datetime | None:
        """Take up to ``most`` tokens, or else reserve one; return when the first may be used.

        None when too many workers take tokens. One write does both: where there is no token for now, it
        takes the next one.
        """
        taken, first, at = 0, self._ports.clock(), self._ports.clock()

        def take_some(bucket: Bucket, now: datetime) -> Bucket:
            nonlocal taken, first, at
            at = now
            after, first = reserve(bucket, limit, now=now)
            more, taken = take(after, limit, now=now, most=most - 1) if first <= now else (after, 0)
            return more

        if not self._change(key, take_some):
            return None
        self._keep(key, taken, at)
        return first

    def _keep(self, key: str, tokens: int, now: datetime) -> None:
        """Put tokens that were taken in advance into the cache."""
        if tokens:
            self._ports.token_cache.put(key, tokens, now + timedelta(seconds=BATCH_SECONDS))

    def _change(self, key: str, change: Callable[[Bucket, datetime], Bucket], tries: int = TRIES) -> bool:
        """Write a bucket by compare-and-swap, unless nothing changes; False when each try lost the race."""
        state = self._ports.state
        within, most = BACKOFF
        for _ in range(tries):
            now = self._ports.clock()
            before = state.bucket(key) or Bucket(now)
            after = change(before, now)
            if after == before:
                return True
            try:
                state.save_bucket(key, after)
            except Stale:
                self._ports.sleep(within * self._ports.random())
                within = min(most, 2 * within)
                continue
            return True
        return False

    def _correct(self, error: Throttled, limits: Sequence[Limit], subscription: str) -> None:
        """Empty the buckets that may have refused the call: all of its buckets, unless the code names one."""
        unaffected = {_OF_ARM: [AKS_OTHER], _OF_AKS: [ARM_READ, ARM_WRITE, ARM_DELETE]}.get(error.code, [])
        refused = [limit for limit in limits if limit not in unaffected]
        seconds = error.retry_after or RETRY_AFTER
        for share in (share for limit in refused for share in (limit.common, limit.set_aside)):
            key = _key(share, subscription)
            self._ports.token_cache.drop(key)
            try:
                self._change(key, partial(_corrected, limit=share, seconds=seconds))
            except Retryable as unwritten:
                log.warning("the bucket %s could not be emptied: %s", key, unwritten)


def _corrected(bucket: Bucket, now: datetime, *, limit: Limit, seconds: float) -> Bucket:
    return correct(bucket, limit, now=now, seconds=seconds)


def _key(limit: Limit, subscription: str) -> str:
    return f"{subscription.lower()}|{limit.name}"


@dataclass(frozen=True)
class _LimitedAzure:
    inner: Azure
    limiter: RateLimiter

    def call(self, operation: AzureCall[T]) -> T:
        for limit, name in operation.turns:
            self.limiter.turn(limit, name)
        result = self.limiter.call(
            operation.target.subscription, operation.limits, lambda: self.inner.call(operation)
        )
        if isinstance(result, WriteResponse):
            self.limiter.wrote = True
            self.limiter.request_ids += filter(None, [result.request_id])
        return result
