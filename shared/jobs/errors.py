"""Errors of a job, each named for what the engine does next.

::

    ReconcileError
    ├── Retryable                the engine tries again by itself
    │   ├── Throttled            the service asked us to slow down; wait for its Retry-After
    │   ├── Conflict             another operation is in progress, or somebody wrote first; look again
    │   │   └── Stale            our own row changed since we read it; read it again
    │   ├── Unavailable          the service did not answer, or answered 5xx
    │   ├── Dependency           something this step needs is not there yet
    │   ├── NotYetVisible             Azure does not show what may be there; look once more
    │   ├── Interrupted          Azure gave up what it had begun, for a reason that passes; write it again
    │   ├── Blocked              a PodDisruptionBudget does not allow an eviction now
    │   ├── Unexpected           an error that nobody foresaw; a few tries
    │   ├── Unauthenticated      we have no valid credential; a few tries, for an identity may be late
    │   └── Unauthorized         our identity lacks a role; a few tries, for Azure takes minutes to spread one
    └── Terminal                 waits for a new commit, or for a person who replays
        ├── QuotaExceeded        the subscription has no room
        ├── InvalidManifest      the service refused what the manifest asks for
        ├── Immutable            the field cannot be changed on what exists
        ├── Aborted              somebody cancelled the operation in Azure, or undid it
        ├── Locked               a lock, or a disabled subscription, forbids the change
        ├── NotOwned             it exists, but does not belong to this fleet
        └── DeadLettered         the queue gave the job's message up; the next commit tries again

Adapters raise these and nothing else; ``str(error)`` is safe to show: it never holds a secret.
"""

from __future__ import annotations

from collections.abc import Mapping


class ReconcileError(Exception):
    """Something went wrong in a step; the class says what happens next."""

    def __init__(self, message: str, *, code: str = "", request_id: str = "") -> None:
        super().__init__(message)
        self.code = code
        """The service's own code, as "OperationNotAllowed"; empty when it gave none."""
        self.request_id = request_id
        """The service's correlation id for support; empty when it gave none."""

    @property
    def kind(self) -> str:
        """The name of the class, as stored and shown."""
        return type(self).__name__


class Retryable(ReconcileError):
    """The engine tries again; ``retry_after`` (seconds) is the service's own wish, if it had one."""

    def __init__(
        self, message: str, *, retry_after: float | None = None, code: str = "", request_id: str = ""
    ) -> None:
        super().__init__(message, code=code, request_id=request_id)
        self.retry_after = retry_after


class Terminal(ReconcileError):
    """Trying again would give the same answer."""


class Throttled(Retryable):
    """The service asked us to slow down."""


class Conflict(Retryable):
    """Another operation is in progress, or the thing changed since we looked."""


class Stale(Conflict):
    """A row of the state changed since it was read."""


class Unavailable(Retryable):
    """The service did not answer, or answered that it cannot."""


class Dependency(Retryable):
    """Something that this step needs is not there yet."""


class NotYetVisible(Retryable):
    """Azure does not show what may be there; one more look, a while later, is believed."""


class Interrupted(Retryable):
    """Azure began an operation and gave it up for a reason that passes; the same write is made again."""


class Blocked(Retryable):
    """A PodDisruptionBudget does not allow it now."""


class Unexpected(Retryable):
    """An error that nobody foresaw: a defect here, or in a library."""


class Unauthenticated(Retryable):
    """No valid credential."""


class Unauthorized(Retryable):
    """The identity lacks a role."""


class QuotaExceeded(Terminal):
    """The subscription has no room for this."""


class InvalidManifest(Terminal):
    """The service refused what the manifest asks for."""


class Immutable(Terminal):
    """The field cannot be changed on what exists."""


class Aborted(Terminal):
    """Somebody cancelled the operation in Azure, or undid it."""


class Locked(Terminal):
    """A lock, or a subscription that is disabled, forbids the change."""


class NotOwned(Terminal):
    """It exists, but it is not this fleet's."""


class DeadLettered(Terminal):
    """The queue delivered the job's message too often without an end, or could not keep it."""


_TERMINAL_CONFLICTS = ("missingsubscriptionregistration", "invalidresourcegrouplocation")
"""409s that no waiting changes."""
_QUOTA_CODES = ("quota", "skunotavailable", "insufficientcapacity", "allocationfailed")
_LOCKED_CODES = ("scopelocked", "disabledsubscription")
_POLICY_CODES = ("requestdisallowedby",)
"""A policy refuses with 403, though no role is missing."""
_PASSING_CODES = (
    "anotheroperation",
    "internalerror",
    "internalexecutionerror",
    "internaloperationerror",
    "internalservererror",
    "operationpreempted",
    "retryableerror",
    "serviceunavailable",
    "throttl",
    "timedout",
    "timeout",
    "toomanyrequests",
)
"""Codes of operations that failed through no fault of the request."""


def from_http(
    status: int, code: str, message: str, *, retry_after: float | None = None, request_id: str = ""
) -> ReconcileError:
    """Return the error for an HTTP answer of Azure Resource Manager, Kubernetes or GitHub.

    ``status`` is the HTTP status, ``code`` and ``message`` the service's own (secrets already removed),
    ``retry_after`` seconds. The one place where answers are mapped to classes.
    """
    flat = code.lower()
    context: dict[str, str] = {"code": code, "request_id": request_id}
    if status == 429:
        return Throttled(message, retry_after=retry_after, **context)
    if status >= 500 or status == 408:
        return Unavailable(message, retry_after=retry_after, **context)
    if any(word in flat for word in _QUOTA_CODES):
        return QuotaExceeded(message, **context)
    if any(word in flat for word in _LOCKED_CODES):
        return Locked(message, **context)
    if any(word in flat for word in _POLICY_CODES):
        return InvalidManifest(message, **context)
    if status in (409, 412) and flat not in _TERMINAL_CONFLICTS:
        return Conflict(message, retry_after=retry_after, **context)
    if "propertychangenotallowed" in flat:
        return Immutable(message, **context)
    return _BY_STATUS.get(status, InvalidManifest)(message, **context)


def from_operation(state: str, code: str, message: str, *, request_id: str = "") -> ReconcileError:
    """Return the error for an operation that Azure accepted and did not bring to its end.

    ``state`` is the provisioningState that it left, ``code`` and ``message`` are those of its error, and
    ``request_id`` is of the request that began it. The one place where such ends are mapped to classes.
    """
    flat = code.lower()
    if any(word in flat for word in _QUOTA_CODES):
        return QuotaExceeded(message, code=code, request_id=request_id)
    if "poddrain" in flat:
        return Blocked(message, code=code, request_id=request_id)
    if flat == "conflict" or any(word in flat for word in _PASSING_CODES):
        return Interrupted(message, code=code, request_id=request_id)
    if state == "Canceled" or "cancel" in flat:
        return Aborted(message, code=code, request_id=request_id)
    return from_http(400, code, message, request_id=request_id)


_BY_STATUS: Mapping[int, type[ReconcileError]] = {
    401: Unauthenticated,
    403: Unauthorized,
    404: Dependency,
}
