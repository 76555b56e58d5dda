"""Which error an answer of Azure Resource Manager is, and which a failed operation: by the catalogue."""

from __future__ import annotations

from http import HTTPStatus

from shared.cluster.failures.causes import entry_for
from shared.cluster.failures.entry import Entry
from shared.cluster.failures.errors import (
    Aborted,
    Blocked,
    Conflict,
    Dependency,
    Interrupted,
    InvalidManifest,
    ReconcileError,
    Retryable,
    RoleNotEffective,
    Throttled,
    TooLarge,
    Unauthenticated,
    Unauthorized,
    Unavailable,
    Unexplained,
)
from shared.json_tree import Json

_BY_STATUS: dict[int, type[ReconcileError]] = {
    HTTPStatus.UNAUTHORIZED: Unauthenticated,
    HTTPStatus.FORBIDDEN: Unauthorized,
    HTTPStatus.NOT_FOUND: Dependency,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: TooLarge,
}
_CONFLICTS = (HTTPStatus.CONFLICT, HTTPStatus.PRECONDITION_FAILED)


def refusal(
    status: int, error: Json, message: str, *, retry_after: float | None = None, request_id: str = ""
) -> ReconcileError:
    """Return the error for a response of Azure Resource Manager.

    ``status`` is the HTTP status, ``error`` Azure's own document with ``code`` and ``message``, ``message``
    what people are shown, ``retry_after`` seconds.
    """
    entry = entry_for(error)
    return _error(_refused(status, entry), entry, error, message, request_id, retry_after)


def operation_failure(state: str, error: Json, message: str, *, request_id: str = "") -> ReconcileError:
    """Return the error for an operation that Azure accepted and did not complete.

    ``state`` is the final provisioningState, ``error`` Azure's own document, ``message`` what people are
    shown, ``request_id`` that of the request that started the operation. An error that may pass is one after
    which the write is repeated.
    """
    entry = entry_for(error)
    return _error(_failed(state, entry), entry, error, message, request_id)


def _refused(status: int, entry: Entry | None) -> type[ReconcileError]:
    kind = entry.kind if entry is not None else Unexplained
    if status == HTTPStatus.TOO_MANY_REQUESTS:  # with 429, networks ask for another attempt, too
        return kind if kind is Interrupted else Throttled
    if kind in (Unexplained, InvalidManifest):
        kind = _BY_STATUS.get(status, kind)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.REQUEST_TIMEOUT:
        passing = kind in (Interrupted, Unexplained, Conflict, InvalidManifest)
        return Unavailable if passing else kind
    if status in _CONFLICTS and entry is not None and kind in (Interrupted, Unexplained):
        return Conflict
    return kind


def _failed(state: str, entry: Entry | None) -> type[ReconcileError]:
    if state == "Canceled" and (entry is None or entry.kind is Unexplained):
        return Aborted
    kind = entry.kind if entry is not None else Unexplained
    if kind is Unauthorized:
        return RoleNotEffective
    passing = issubclass(kind, Retryable) and kind is not Blocked
    return Interrupted if passing and not kind.rewrites else kind


def _error(
    kind: type[ReconcileError],
    entry: Entry | None,
    error: Json,
    message: str,
    request_id: str,
    retry_after: float | None = None,
) -> ReconcileError:
    found = kind(message, code=str(error.get("code") or ""), request_id=request_id)
    if isinstance(found, Retryable):
        found.retry_after = retry_after
    found.entry = entry.key if entry is not None else ""
    return found
