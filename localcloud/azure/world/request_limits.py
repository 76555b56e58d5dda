"""Request limits of Azure Resource Manager and of AKS: token buckets over an injected clock.

The numbers are the documented ones. A request takes one token from each of its buckets; the first empty
bucket refuses it with 429 and the whole seconds until the next token.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import datetime

from localcloud.azure.world.arm_errors import AksError, ArmError


class TokenBucket:
    """Holds at most ``burst`` tokens and gains ``per_second`` of them; starts full."""

    def __init__(self, burst: int, per_second: float, *, now: datetime) -> None:
        self._burst, self._per_second = burst, per_second
        self._tokens, self._at, self._used_up_until = float(burst), now, now

    @property
    def left(self) -> int:
        """The whole tokens that are left, as of the last request."""
        return int(self._tokens)

    def use_up(self, until: datetime) -> None:
        """Leave no token until a time, as when somebody else takes every new one."""
        self._used_up_until = until

    def take(self, now: datetime) -> float:
        """Take a token and return 0, or take none and return the seconds until there is one."""
        if now < self._used_up_until:
            self._tokens, self._at = 0.0, now
            return (self._used_up_until - now).total_seconds()
        gained = (now - self._at).total_seconds() * self._per_second
        self._tokens = min(self._burst, self._tokens + gained)
        self._at = now
        if self._tokens >= 1 - 1e-9:
            self._tokens -= 1
            return 0.0
        return (1 - self._tokens) / self._per_second


@dataclass(frozen=True)
class RequestLimit:
    """One documented limit; ``arm``: of Azure Resource Manager, otherwise of the AKS service behind it."""

    name: str
    burst: int
    per_second: float
    arm: bool = False


ARM_READ = RequestLimit("read", 250, 25, arm=True)
ARM_WRITE = RequestLimit("write", 200, 10, arm=True)
ARM_DELETE = RequestLimit("delete", 200, 10, arm=True)
PUT_CLUSTER = RequestLimit("PutManagedClusterHandler.PUT", 20, 1 / 60)
PUT_POOL = RequestLimit("PutAgentPoolHandler.PUT", 20, 1 / 60)
GET_CLUSTER = RequestLimit("GetManagedClusterHandler.GET", 60, 1)
LIST_SUBSCRIPTION = RequestLimit("ListManagedClustersBySubscriptionHandler.GET", 500, 1)
LIST_GROUP = RequestLimit("ListManagedClustersByResourceGroupHandler.GET", 60, 1)
GET_OPERATION = RequestLimit("GetOperationStatusHandler.GET", 200, 2)
ANY_OTHER = RequestLimit("AllOtherHandlers", 60, 1)


class Limits:
    """The buckets of one principal, created at their first use; ``enabled=False`` switches limits off.

    ``counts`` has the requests of each limit, ``refusals`` which limit refused, and when.
    ``on_refusal`` is called with the limit, whose it is, and its Retry-After.
    """

    def __init__(self, *, enabled: bool) -> None:
        self.enabled = enabled
        self.counts: Counter[str] = Counter()
        self.refusals: list[tuple[str, datetime]] = []
        self.on_refusal: Callable[[str, Hashable, float], None] = lambda *_: None
        self._buckets: dict[tuple[RequestLimit, Hashable], TokenBucket] = {}

    def left(self, limit: RequestLimit, key: Hashable) -> int:
        """Return the requests that are left in a bucket."""
        bucket = self._buckets.get((limit, key))
        return bucket.left if bucket is not None else limit.burst

    def use_up(self, limit: RequestLimit, key: Hashable, until: datetime, now: datetime) -> None:
        """Let others with the same identity take every token of a bucket until a time."""
        self._bucket(limit, key, now).use_up(until)

    def _bucket(self, limit: RequestLimit, key: Hashable, now: datetime) -> TokenBucket:
        bucket = self._buckets.get((limit, key))
        if bucket is None:
            bucket = self._buckets[(limit, key)] = TokenBucket(limit.burst, limit.per_second, now=now)
        return bucket

    def take(self, limit: RequestLimit, key: Hashable, now: datetime) -> None:
        """Take a token from the bucket of ``limit`` for ``key`` (a subscription, a cluster), or raise 429."""
        self.counts[limit.name] += 1
        if not self.enabled:
            return
        wait = self._bucket(limit, key, now).take(now)
        if wait > 0:
            self.refusals.append((limit.name, now))
            self.on_refusal(limit.name, key, math.ceil(wait))
            raise _throttled(limit, math.ceil(wait))


def _throttled(limit: RequestLimit, seconds: int) -> ArmError:
    if limit.arm:
        code = "SubscriptionRequestsThrottled"
        message = f"Number of '{limit.name}' requests for the subscription exceeded the limit."
    else:
        code, message = "Throttled", f"The {limit.name} request limit has been exceeded."
    error = ArmError if limit.arm else AksError
    return error(429, code, f"{message} Please retry again in {seconds} seconds.", retry_after=seconds)
