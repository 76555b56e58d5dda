"""Azure's token buckets: how many calls a subscription takes, and when the next one may be sent. Pure.

Limits: learn.microsoft.com/azure/azure-resource-manager/management/request-limits-and-throttling (per
subscription, identity and region of the caller) and learn.microsoft.com/azure/aks/quotas-skus-regions (per
subscription). An app has one identity and calls from one region, so its buckets are named by subscription.
AKS also limits the operations on one cluster or pool; a cluster has one session, so workers never share them.

A part of each limit is set aside for small changes, in a bucket of its own: they do not wait behind the
reservations of a large one.

A bucket hands out moments, also future ones, each to one caller: a reservation that no other caller can take.
It is the generic cell rate algorithm: ``full_at`` is when the bucket would be full again if no more tokens
were taken.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import cached_property

from shared.frozen import dataclass, field, replace

LONGEST = 3600
"""The most seconds by which a service or an operator can delay an attempt."""
SLACK = 6.0
"""Seconds by which a call may come early: clocks differ by up to 5, and a message may run 1 early."""

SET_ASIDE_BURST, SET_ASIDE_RATE = 0.2, 0.02
"""The parts of a limit that are set aside for small changes. The first lets five clusters through at once.
The second fills it again; it is lost to large changes even if no small one uses it."""


@dataclass(frozen=True)
class Limit:
    """A limit: ``burst`` calls at once, and ``per_second`` after that.

    ``description`` is what a step waits for, before the name of whose limit it is. Of one that is not
    ``divided`` nothing is set aside for small changes.
    """

    name: str
    description: str
    burst: int
    per_second: float
    divided: bool = True

    @cached_property
    def usable(self) -> int:
        """How many calls may be sent at once, less those that may come early by ``SLACK``."""
        return max(1, int(self.burst - SLACK * self.per_second))

    @cached_property
    def set_aside(self) -> Limit:
        """The part that is set aside for small changes."""
        burst, per_second = int(self.burst * SET_ASIDE_BURST), self.per_second * SET_ASIDE_RATE
        return replace(self, name=f"{self.name}-set-aside", burst=burst, per_second=per_second)

    @cached_property
    def common(self) -> Limit:
        """The rest, which every call may use."""
        if not self.divided:
            return self
        other = self.set_aside
        return replace(self, burst=self.burst - other.burst, per_second=self.per_second - other.per_second)

    @cached_property
    def interval(self) -> timedelta:
        """The time between two calls when the bucket is empty."""
        return timedelta(seconds=1 / self.per_second)

    @cached_property
    def lapse(self) -> timedelta:
        """How long an unused reservation stays valid: Azure's bucket fills again in this time."""
        return timedelta(seconds=self.burst / self.per_second)


ARM_READ = Limit("arm-read", "Azure's read limit of subscription", 250, 25)
ARM_WRITE = Limit("arm-write", "Azure's write limit of subscription", 200, 10)
ARM_DELETE = Limit("arm-delete", "Azure's delete limit of subscription", 200, 10)
AKS_OTHER = Limit("aks-other", "Azure's limit for credentials, versions and deletes of subscription", 60, 1)
"""AKS: everything but PUT and GET of a cluster, PUT of a pool, operation statuses and lists."""
IN_NETWORK = Limit(
    "in-network", "a place among the creations in the virtual network", 1, 1 / 15, divided=False
)
"""AKS marks a virtual network at the beginning of a creation, and fails while somebody else changes it:
"multiple parallel cluster deployments" (MicrosoftDocs/SupportArticles-docs, error-codes/
virtualnetworknotinsucceededstate-error.md). No page says how long the network is busy: the 15 seconds are
assumed, and a creation that meets it nevertheless is repeated."""


@dataclass(frozen=True)
class Bucket:
    """The state of a bucket; ``etag`` is the version that was read, "" when it was never saved."""

    full_at: datetime
    etag: str = field(default="", compare=False)


def reserve(bucket: Bucket, limit: Limit, *, now: datetime) -> tuple[Bucket, datetime]:
    """Take the next token; return the bucket without it, and when it may be used: now, or later."""
    reservation = max(now, bucket.full_at - (limit.usable - 1) * limit.interval)
    return replace(bucket, full_at=max(bucket.full_at, reservation) + limit.interval), reservation


def take(bucket: Bucket, limit: Limit, *, now: datetime, most: int) -> tuple[Bucket, int]:
    """Take up to ``most`` tokens that may be used now; return the bucket without them, and how many."""
    taken = 0
    while taken < most:
        after, reservation = reserve(bucket, limit, now=now)
        if reservation > now:
            break
        bucket, taken = after, taken + 1
    return bucket, taken


def spare(bucket: Bucket, limit: Limit, *, now: datetime) -> bool:
    """Return whether half of a limit is unused now: what is not urgent leaves the rest to others."""
    return bucket.full_at <= now + limit.usable // 2 * limit.interval


def correct(bucket: Bucket, limit: Limit, *, now: datetime, seconds: float) -> Bucket:
    """Return the bucket after Azure refused a call: no token for so many seconds, then one at a time.

    As a retry does, it waits an hour at most: every cluster of the subscription shares the bucket.
    """
    empty = now + timedelta(seconds=min(seconds, LONGEST)) + (limit.usable - 1) * limit.interval
    return replace(bucket, full_at=max(bucket.full_at, empty))
