"""How often each class of error is retried, and at what intervals; ``RETRY_LIMITS`` may change it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from shared.azure.rate_limits import LONGEST
from shared.cluster.failures.errors import (
    Conflict,
    Dependency,
    Interrupted,
    NotYetVisible,
    Obstructed,
    OutOfCapacity,
    PolicyDenied,
    ReconcileError,
    Refused,
    Retryable,
    RoleNotEffective,
    Stale,
    Throttled,
    Unauthenticated,
    Unauthorized,
    Unavailable,
    Unexpected,
    Unexplained,
    Unreadable,
    WebhookDown,
)
from shared.frozen import dataclass, replace


@dataclass(frozen=True)
class RetryPolicy:
    """Exponential waits from ``first`` to ``longest`` seconds; ``attempts`` None: retried indefinitely.

    An error whose cause is outside of git is retried after its ``attempts`` too, and counts as failed then.
    """

    first: float
    longest: float
    attempts: int | None

    def wait(self, attempt: int, jitter: float) -> float:
        """Return the seconds from failed ``attempt`` (from 1) to the next one; jitter is 0 to 1."""
        backoff = min(self.longest, self.first * 2.0 ** min(attempt - 1, 20))
        return backoff * (0.5 + jitter / 2)


Policies = Mapping[type[ReconcileError], RetryPolicy]
"""A policy per class; a class without one has the policy of its base class."""

DEFAULTS: Policies = {
    Throttled: RetryPolicy(5, 120, None),
    Conflict: RetryPolicy(10, 60, None),
    Stale: RetryPolicy(10, 60, None),
    NotYetVisible: RetryPolicy(20, 20, None),
    Unavailable: RetryPolicy(5, 300, 15),
    Dependency: RetryPolicy(5, 120, 30),
    Interrupted: RetryPolicy(60, 900, 5),
    OutOfCapacity: RetryPolicy(600, 3600, 12),
    Obstructed: RetryPolicy(600, 3600, 3),
    Refused: RetryPolicy(600, 3600, 1),
    Unexplained: RetryPolicy(300, 1800, 5),
    PolicyDenied: RetryPolicy(120, 1800, 5),
    WebhookDown: RetryPolicy(10, 300, 20),
    Unreadable: RetryPolicy(120, 300, None),
    Unexpected: RetryPolicy(15, 300, 6),
    Unauthenticated: RetryPolicy(15, 300, 6),
    Unauthorized: RetryPolicy(15, 300, 6),
    RoleNotEffective: RetryPolicy(60, 600, 16),
}
"""An assignment of a role is effective after at most 60 minutes: the shortest waits of RoleNotEffective
reach that. What is outside of git counts as failed within half an hour, or at once.
"""
_ANY_OTHER = RetryPolicy(5, 300, 15)
_SECONDS = re.compile(r"[0-9]+(\.[0-9]+)?")
_LIMIT = re.compile(r"(?P<name>\w+)=(?P<attempts>\d{1,4}|forever)(/(?P<longest>\d{1,5}))?")


def policy_for(kind: type[ReconcileError], policies: Policies = DEFAULTS) -> RetryPolicy:
    """Return the policy of a class of errors."""
    return next((policies[base] for base in kind.__mro__ if base in policies), _ANY_OTHER)


def wait_before_retry(
    error: ReconcileError, attempt: int, jitter: float, policies: Policies = DEFAULTS
) -> float | None:
    """Return the seconds until the next attempt, None when the attempts are used up.

    The service's own ``Retry-After`` wins over the backoff, up to an hour.
    """
    policy = policy_for(type(error), policies)
    if policy.attempts is not None and attempt >= policy.attempts and not error.outside:
        return None
    if isinstance(error, Retryable) and error.retry_after is not None:
        return min(LONGEST, max(1.0, error.retry_after))
    return policy.wait(attempt, jitter)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of a response's ``Retry-After``; None when it has none, or an unreadable one.

    The value is a number or a date (RFC 9110, 10.2.3); a date counts from the response's own ``Date``, so
    our clock does not matter. Retries and rate limits cap the value at an hour.
    """
    lowered = {name.lower(): value.strip() for name, value in headers.items()}
    wait = lowered.get("retry-after", "")
    if _SECONDS.fullmatch(wait):
        return float(wait)
    try:
        pause = parsedate_to_datetime(wait) - parsedate_to_datetime(lowered.get("date", ""))
    except (ValueError, TypeError):  # TypeError: one of the two names no time zone
        return None
    return max(0.0, pause.total_seconds())


def with_limits(text: str) -> Policies:
    """Return the policies with limits such as "Unexpected=3 Unavailable=forever/600": attempts, longest wait.

    Raise ValueError with an explanation when the text is not of that form.
    """
    classes = {kind.__name__: kind for kind in DEFAULTS if kind is not NotYetVisible}
    changed = dict(DEFAULTS)
    for limit in text.replace(",", " ").split():
        match = _LIMIT.fullmatch(limit)
        if match is None:
            raise ValueError(f"{limit[:60]!r} must have the form Unexpected=3 or Unavailable=forever/600")
        kind = classes.get(match["name"])
        if kind is None:
            raise ValueError(
                f"no limit can be set for {match['name'][:60]!r}, only for: {', '.join(classes)}"
            )
        attempts = None if match["attempts"] == "forever" else int(match["attempts"])
        longest = float(match["longest"] or DEFAULTS[kind].longest)
        if attempts == 0 or not 1 <= longest <= LONGEST:
            raise ValueError(f"{limit!r}: at least 1 attempt, and a longest wait of 1 to {LONGEST} seconds")
        first = min(DEFAULTS[kind].first, longest)
        changed[kind] = replace(DEFAULTS[kind], first=first, longest=longest, attempts=attempts)
    return changed
