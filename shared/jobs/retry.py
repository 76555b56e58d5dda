"""How often and how long apart each class of error is tried again."""

from __future__ import annotations

from dataclasses import dataclass

from shared.jobs.errors import (
    Conflict,
    Dependency,
    ReconcileError,
    Retryable,
    Throttled,
    Unauthenticated,
    Unauthorized,
    Unexpected,
)


@dataclass(frozen=True)
class RetryPolicy:
    """Exponential waits from ``first`` to ``longest`` seconds; ``attempts`` None: for ever."""

    first: float
    longest: float
    attempts: int | None

    def wait(self, attempt: int, jitter: float) -> float:
        """Return the seconds before the next try after failed ``attempt`` (from 1); jitter is 0 to 1."""
        backoff = min(self.longest, self.first * 2.0 ** min(attempt - 1, 20))
        return backoff * (0.5 + jitter / 2)


_POLICIES: dict[type[ReconcileError], RetryPolicy] = {
    Throttled: RetryPolicy(5, 120, None),
    Conflict: RetryPolicy(10, 60, None),
    Dependency: RetryPolicy(5, 120, 30),
    Unauthenticated: RetryPolicy(15, 300, 6),
    Unexpected: RetryPolicy(15, 300, 6),
    Unauthorized: RetryPolicy(15, 300, 6),
}
_DEFAULT = RetryPolicy(5, 300, 15)


def policy_for(error: ReconcileError) -> RetryPolicy:
    """Return the policy of an error's class."""
    for kind, policy in _POLICIES.items():
        if isinstance(error, kind):
            return policy
    return _DEFAULT


def wait_before_retry(error: ReconcileError, attempt: int, jitter: float) -> float | None:
    """Return the seconds until the next try, None when the tries are used up.

    The service's own ``Retry-After`` wins over the backoff, up to an hour.
    """
    policy = policy_for(error)
    if policy.attempts is not None and attempt >= policy.attempts:
        return None
    if isinstance(error, Retryable) and error.retry_after is not None:
        return min(3600.0, max(1.0, error.retry_after))
    return policy.wait(attempt, jitter)
