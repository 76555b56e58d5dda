"""The refusals of a Kubernetes API: an exception that is a ``Status`` object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from localcloud.kubernetes.world.kinds import Kind


class ApiError(Exception):
    """A refusal: HTTP status, reason ("NotFound") and message, as in a ``Status`` object."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code, self.reason, self.message = code, reason, message
        self.details = details or {}

    def status(self) -> dict[str, Any]:
        """Return the ``Status`` object."""
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "details": self.details,
            "code": self.code,
        }


def _about(kind: Kind, name: str, causes: Sequence[dict[str, str]] = ()) -> dict[str, Any]:
    details: dict[str, Any] = {"name": name, "group": kind.group, "kind": kind.plural}
    return {**details, "causes": list(causes)} if causes else details


def not_found(kind: Kind, name: str) -> ApiError:
    """No such object."""
    return ApiError(404, "NotFound", f'{kind.resource} "{name}" not found', details=_about(kind, name))


def no_such_path() -> ApiError:
    """No such kind or URL."""
    return ApiError(404, "NotFound", "the server could not find the requested resource")


def exists(kind: Kind, name: str) -> ApiError:
    """A create of an object that exists."""
    message = f'{kind.resource} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, details=_about(kind, name))


def stale(kind: Kind, name: str) -> ApiError:
    """A write over another version than the writer read."""
    message = (
        f'Operation cannot be fulfilled on {kind.resource} "{name}": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    return ApiError(409, "Conflict", message, details=_about(kind, name))


def precondition(kind: Kind, name: str, message: str) -> ApiError:
    """A precondition (uid, resourceVersion) that does not hold."""
    text = f'Operation cannot be fulfilled on {kind.resource} "{name}": {message}'
    return ApiError(409, "Conflict", text, details=_about(kind, name))


def invalid(kind: Kind, name: str, field: str, problem: str) -> ApiError:
    """An object that fails validation at one field."""
    cause = {"reason": "FieldValueInvalid", "message": problem, "field": field}
    where = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    message = f'{where} "{name}" is invalid: {field}: {problem}'
    return ApiError(422, "Invalid", message, details=_about(kind, name, [cause]))


def bad_request(message: str) -> ApiError:
    """An invalid request."""
    return ApiError(400, "BadRequest", message)


def terminating(kind: Kind, name: str, namespace: str) -> ApiError:
    """A create in a namespace that is being deleted."""
    because = f"unable to create new content in namespace {namespace} because it is being terminated"
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    message = f'{kind.resource} "{name}" is forbidden: {because}'
    return ApiError(403, "Forbidden", message, details=_about(kind, name, [cause]))


def field_conflict(message: str, causes: Sequence[dict[str, str]]) -> ApiError:
    """A server-side apply that meets fields of other managers."""
    return ApiError(409, "Conflict", message, details={"causes": list(causes)})
