"""Errors of a job, each named for what the engine does next.

::

    ReconcileError
    ├── Retryable                the engine retries by itself
    │   ├── Throttled            the service asked us to slow down; wait for its Retry-After
    │   ├── Conflict             another operation is in progress, or somebody wrote first; read again
    │   │   ├── Stale            our own record changed since we read it; read it again
    │   │   └── NamespaceTerminating   a namespace is being deleted; nothing can be created in it
    │   ├── Unavailable          the service did not answer, or answered 5xx
    │   │   ├── VaultUnavailable a vault did not answer, or answered 5xx
    │   │   └── PrivateUnreachable  no answer from the API server of a private cluster
    │   ├── Dependency           a resource that this step needs does not exist yet
    │   │   └── SecretMissing    a secret of Azure Key Vault does not exist, is deleted or is disabled
    │   ├── NotYetVisible        Azure does not show a resource that may exist; read once more
    │   ├── Interrupted          Azure abandoned an operation for a transient reason; write again
    │   │   ├── OutOfCapacity    Azure has no room in the region or zone now; write again after a long wait
    │   │   ├── Obstructed       what is outside of git is in the way until somebody removes it (outside)
    │   │   │   └── Refused      the same, by a decision such as a policy: counts as failed at once
    │   │   │       ├── QuotaExceeded, OutOfAddresses
    │   │   └── Unexplained      a code that the catalogue does not have; a few attempts, slowly
    │   ├── Blocked              a PodDisruptionBudget or an admission policy does not allow an eviction now
    │   ├── PolicyDenied         an admission policy of the cluster refuses an object (outside)
    │   ├── WebhookDown          a webhook that the API server has to ask does not answer
    │   ├── Unreadable           a record of our own cannot be read; wait until somebody has put it right
    │   ├── Unexpected           an unforeseen error; a few attempts
    │   ├── Unauthenticated      we have no valid credential; a few attempts, because an identity may be late
    │   └── Unauthorized         our identity lacks a role; a few attempts, because a new role takes minutes
    │       ├── RoleNotEffective  a role may exist and not be effective for an hour (outside)
    │       └── VaultForbidden   a vault does not let our identity, or our address, read its secrets
    └── Terminal                 waits for a new commit, or for an operator's replay
        ├── InvalidManifest, TooLarge, Immutable, Aborted, OtherRepository, NotOwned, Withheld,
        │   DeadLettered
        └── NoLongerReady        ClusterMissing, ClusterStopped, ClusterFailed, ClusterContested: from a sweep
            └── Unhealthy        FluxUnhealthy, PlatformUnhealthy, SecretsUnhealthy: from a check inside
                                 the cluster

Adapters raise these and nothing else; ``str(error)`` is safe to show: it never holds a secret.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from shared.azure.drift.activity import FieldAuthor


class ReconcileError(Exception):
    """An error of a step; the class says what happens next."""

    waits: ClassVar[bool] = False
    """Whether nothing has failed: the engine reads again, and people see a wait."""
    rewrites: ClassVar[bool] = False
    """Whether the same write is repeated after an operation of Azure has ended so."""
    outside: ClassVar[bool] = False
    """Whether a person outside of git has to act: the attempts never end, and after those of its policy the
    job counts as failed until one succeeds."""

    def __init__(self, message: str, *, code: str = "", request_id: str = "") -> None:
        super().__init__(message)
        self.code = code
        """The service's own code, such as "OperationNotAllowed"; "" for none."""
        self.request_id = request_id
        """The service's correlation id for support; "" for none."""
        self.entry = ""
        """The key of the catalogue's entry for it; "" for none."""

    @property
    def kind(self) -> str:
        """The name of the class, as stored and shown."""
        return type(self).__name__


class Retryable(ReconcileError):
    """The engine retries; ``retry_after`` is the service's own wait in seconds, None for none."""

    def __init__(
        self, message: str, *, retry_after: float | None = None, code: str = "", request_id: str = ""
    ) -> None:
        super().__init__(message, code=code, request_id=request_id)
        self.retry_after = retry_after


class Terminal(ReconcileError):
    """Another attempt would fail in the same way."""


class Throttled(Retryable):
    """The service asked us to slow down."""


class Conflict(Retryable):
    """Another operation is in progress, or the resource changed since we read it."""


class Stale(Conflict):
    """A record of the state changed since it was read."""


class NamespaceTerminating(Conflict):
    """A namespace is being deleted; nothing can be created in it until it no longer exists."""

    namespace = ""
    """The name of the namespace, "" where the API server does not say it."""


class Unavailable(Retryable):
    """The service did not answer, or answered 5xx."""


class VaultUnavailable(Unavailable):
    """A vault did not answer, or answered 5xx."""


class PrivateUnreachable(Unavailable):
    """The API server of a private cluster did not answer: maybe no way leads to it from the app."""


class Dependency(Retryable):
    """A resource that this step needs does not exist yet."""


class SecretMissing(Dependency):
    """A secret of Azure Key Vault does not exist, is deleted or is disabled."""


class InvalidKubeconfig(Dependency):
    """The kubeconfig of an attached cluster is refused; a new version of the secret may be accepted."""


class AnotherCluster(Retryable):
    """The kubeconfig of an attached cluster leads to another cluster than before."""


class NotYetVisible(Retryable):
    """Azure does not show a resource that may exist; one more read, some seconds later, decides."""

    waits = True


class Interrupted(Retryable):
    """Azure started an operation and abandoned it for a transient reason; the same write is repeated."""

    rewrites = True


class OutOfCapacity(Interrupted):
    """Azure has no room for this in the region or zone now; others may free some within hours."""


class Obstructed(Interrupted):
    """Something outside of git is in the way, such as a firewall; somebody may remove it at any time."""

    outside = True


class Refused(Obstructed):
    """The service refuses this until somebody acts outside of git; it counts as failed meanwhile."""


class QuotaExceeded(Refused):
    """The subscription's quota does not allow this."""


class OutOfAddresses(Refused):
    """The subnet of the nodes has too few free addresses."""


class Unexplained(Interrupted):
    """The service refused with a code that the catalogue does not have."""


class Blocked(Retryable):
    """A PodDisruptionBudget or an admission policy does not allow the eviction now."""


class PolicyDenied(Retryable):
    """An admission policy of the cluster refuses an object; its owner may change or exempt it at any time."""

    outside = True


class WebhookDown(Retryable):
    """A webhook that the API server has to ask before a write, or for a read, does not answer."""


class Unreadable(Retryable):
    """A record of the tables cannot be read; what needs it waits until somebody has put the record right."""


class Unexpected(Retryable):
    """An unforeseen error: a defect in Roadstead or in a library."""


class Unauthenticated(Retryable):
    """No valid credential."""


class Unauthorized(Retryable):
    """The identity lacks a role."""


class RoleNotEffective(Unauthorized):
    """A role is missing, or was assigned less than an hour ago and is not effective yet.

    After that hour it counts as failed, until somebody assigns the role.
    """

    rewrites, outside = True, True


class VaultForbidden(Unauthorized):
    """A vault does not let the identity, or the address, of this app read its secrets."""


class InvalidManifest(Terminal):
    """The service refused what the manifest asks for."""


class TooLarge(Terminal):
    """A record, or a message, exceeds what the service stores."""


class Immutable(Terminal):
    """The field of an existing resource cannot be changed."""


class Aborted(Terminal):
    """Somebody cancelled the operation in Azure, or undid it."""


class OtherRepository(Terminal):
    """The repository, or the branch, is not the one that the fleet was planned from."""


class NotOwned(Terminal):
    """The resource exists, but it is not this fleet's."""


class Withheld(Terminal):
    """The git host does not serve the repository under this name: it moved, or is blocked."""


class DeadLettered(Terminal):
    """The queue delivered the job's message too often without a result, or the message expired."""


class NoLongerReady(Terminal):
    """What a sweep found at a cluster that was verified Ready; a later sweep may find it as it was."""

    def __init__(
        self, message: str, *, act: FieldAuthor | None = None, code: str = "", request_id: str = ""
    ) -> None:
        super().__init__(message, code=code, request_id=request_id)
        self.act = act
        """Who did it, and when, by Azure's activity log; None where that is not known."""


class ClusterMissing(NoLongerReady):
    """The cluster no longer exists, or is being deleted, and no commit asks for that; a job says so too."""


class ClusterStopped(NoLongerReady):
    """Somebody stopped the cluster."""


class ClusterFailed(NoLongerReady):
    """The last operation on the cluster, or on a node pool, failed in Azure, and no job started it."""


class Unhealthy(NoLongerReady):
    """What a check inside a cluster has found for longer than ``UNHEALTHY_MINUTES``."""


class FluxUnhealthy(Unhealthy):
    """Flux on the cluster has failed, or is not as Roadstead applied it."""


class PlatformUnhealthy(Unhealthy):
    """Nodes of the cluster are not ready."""


class SecretsUnhealthy(Unhealthy):
    """A bootstrap secret is missing in the vault or in the cluster, or somebody changed it there."""


class ClusterContested(NoLongerReady):
    """The tags of the cluster name another installation, another life or another owner."""


def classes(kind: type[ReconcileError] = ReconcileError) -> Iterator[type[ReconcileError]]:
    """Yield every class of error of a kind that a job can meet, in the order of this file."""
    for subclass in kind.__subclasses__():
        if subclass not in (Retryable, Terminal, NoLongerReady, Unhealthy):
            yield subclass
        yield from classes(subclass)


OUTSIDE = frozenset(kind.__name__ for kind in classes() if kind.outside)
"""The names of the classes whose cause a person outside of git has to remove."""


def is_wait(kind: str) -> bool:
    """Return whether nothing has failed where an error of this class, by its name, is stored."""
    return any(error_class.waits for error_class in classes() if error_class.__name__ == kind)


NOT_FOUND = ("ResourceNotFound", "ResourceGroupNotFound")
"""ARM's codes for a resource, or a group, that does not exist
(learn.microsoft.com/azure/azure-resource-manager/troubleshooting/error-not-found)."""
_SIZE_CODES = ("entitytoolarge", "propertyvaluetoolarge", "requestbodytoolarge")
"""learn.microsoft.com/rest/api/storageservices/table-service-error-codes."""


def from_http(
    status: int, code: str, message: str, *, retry_after: float | None = None, request_id: str = ""
) -> ReconcileError:
    """Return the error for an HTTP response of Kubernetes, Table Storage, a vault or a git host.

    ``status`` is the HTTP status, ``code`` and ``message`` the service's own (secrets already removed),
    ``retry_after`` seconds. ``azure_failures`` does it for Azure Resource Manager.
    """
    context: dict[str, str] = {"code": code, "request_id": request_id}
    if status == 413 or any(part in code.lower() for part in _SIZE_CODES):
        return TooLarge(message, **context)
    if status == 429:
        return Throttled(message, retry_after=retry_after, **context)
    if status >= 500 or status == 408:
        return Unavailable(message, retry_after=retry_after, **context)
    if status in (409, 412):
        return Conflict(message, retry_after=retry_after, **context)
    return _BY_STATUS.get(status, InvalidManifest)(message, **context)


_BY_STATUS: Mapping[int, type[ReconcileError]] = {
    401: Unauthenticated,
    403: Unauthorized,
    404: Dependency,
}


def from_address(status: int, message: str, *, retry_after: float | None = None) -> ReconcileError:
    """Return the error for what an address of a route or of a check answers, which people configure."""
    if status == 429:
        return Throttled(message, retry_after=retry_after)
    if status >= 500 or status == 408:
        return Unavailable(message, retry_after=retry_after)
    return _OF_ADDRESSES.get(status, Unexpected)(message)


_OF_ADDRESSES: Mapping[int, type[ReconcileError]] = {
    **dict.fromkeys((401, 403), Unauthenticated),
    **dict.fromkeys((404, 410), Dependency),
    413: TooLarge,
}
