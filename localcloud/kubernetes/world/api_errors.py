"""The refusals of a Kubernetes API: an exception that is a ``Status`` object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from localcloud.kubernetes.schema.definitions import FieldProblem, as_json
from localcloud.kubernetes.world.kinds import ResourceKind


class StatusError(Exception):
    """A refusal: HTTP status, reason ("NotFound") and message, as in a ``Status`` object.

    A ``plain`` one comes before there is such an object: its body is the message. ``retry_after`` is in
    seconds, 0 for none.
    """

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: dict[str, Any] | None = None,
        metadata: Mapping[str, str] | None = None,
        plain: bool = False,
        retry_after: int = 0,
    ) -> None:
        super().__init__(message)
        self.plain, self.retry_after = plain, retry_after
        self.code, self.reason, self.message = code, reason, message
        self.details, self.metadata = details or {}, metadata or {}

    def status(self) -> dict[str, Any]:
        """Return the ``Status`` object."""
        optional = {"reason": self.reason, "details": self.details}
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": dict(self.metadata),
            "status": "Failure",
            "message": self.message,
            **{name: value for name, value in optional.items() if value},
            "code": self.code,
        }


def _about(kind: ResourceKind, name: str, causes: Sequence[dict[str, str]] = ()) -> dict[str, Any]:
    details: dict[str, Any] = {"name": name, "group": kind.group, "kind": kind.plural}
    return {**details, "causes": list(causes)} if causes else details


def not_found(kind: ResourceKind, name: str) -> StatusError:
    """No such object."""
    return StatusError(404, "NotFound", f'{kind.resource} "{name}" not found', details=_about(kind, name))


def no_such_path() -> StatusError:
    """No such kind or URL."""
    return StatusError(404, "NotFound", "the server could not find the requested resource")


def exists(kind: ResourceKind, name: str, *, ending: bool = False) -> StatusError:
    """A create of an object that exists, or waits for its end."""
    message = f'{"object is being deleted: " if ending else ""}{kind.resource} "{name}" already exists'
    return StatusError(409, "AlreadyExists", message, details=_about(kind, name))


def stale(kind: ResourceKind, name: str) -> StatusError:
    """A write over another version than the writer read."""
    text = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(kind, name, text)


def conflict(kind: ResourceKind, name: str, message: str) -> StatusError:
    """A write that another one was faster than."""
    text = f'Operation cannot be fulfilled on {kind.resource} "{name}": {message}'
    return StatusError(409, "Conflict", text, details=_about(kind, name))


def precondition(kind: ResourceKind, name: str, message: str) -> StatusError:
    """A precondition (uid, resourceVersion) of a delete that does not hold; it names the kind."""
    where = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    text = f'Operation cannot be fulfilled on {where} "{name}": {message}'
    return StatusError(409, "Conflict", text, details={**_about(kind, name), "kind": kind.kind})


def invalid_fields(kind: ResourceKind, name: str, problems: Sequence[FieldProblem]) -> StatusError:
    """An object that fails validation."""
    where = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    causes = [
        {"reason": problem.reason, "message": problem.message, "field": problem.field} for problem in problems
    ]
    details = {**_about(kind, name, causes), "kind": kind.kind}
    return StatusError(422, "Invalid", f'{where} "{name}" is invalid: {_joined(problems)}', details=details)


def invalid_options(kind: str, problems: Sequence[FieldProblem]) -> StatusError:
    """Options of a request that fail validation; ``kind`` as "CreateOptions"."""
    causes = [
        {"reason": problem.reason, "message": problem.message, "field": problem.field} for problem in problems
    ]
    details = {"group": "meta.k8s.io", "kind": kind, "causes": causes}
    return StatusError(
        422, "Invalid", f'{kind}.meta.k8s.io "" is invalid: {_joined(problems)}', details=details
    )


def invalid_patch(result: Mapping[str, Any], problem: str) -> StatusError:
    """A patch whose result cannot be decoded."""
    message = f"Invalid value: {as_json(as_json(result))}: {problem}"
    cause = {"reason": "FieldValueInvalid", "message": message, "field": "patch"}
    return StatusError(422, "Invalid", f' "" is invalid: patch: {message}', details={"causes": [cause]})


def _joined(problems: Sequence[FieldProblem]) -> str:
    texts = list(dict.fromkeys(f"{problem.field}: {problem.message}" for problem in problems))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def cannot_decode(kind: ResourceKind, problem: str) -> StatusError:
    """A body that is no object of its kind."""
    return bad_request(
        f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {problem}'
    )


def bad_request(message: str) -> StatusError:
    """An invalid request."""
    return StatusError(400, "BadRequest", message)


def terminating(kind: ResourceKind, name: str, namespace: str) -> StatusError:
    """A create in a namespace that is being deleted."""
    because = f"unable to create new content in namespace {namespace} because it is being terminated"
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    message = f'{kind.resource} "{name}" is forbidden: {because}'
    return StatusError(403, "Forbidden", message, details=_about(kind, name, [cause]))


def field_conflict(message: str, causes: Sequence[dict[str, str]]) -> StatusError:
    """A server-side apply that meets fields of other managers."""
    return StatusError(409, "Conflict", message, details={"causes": list(causes)})


def no_match(api_version: str, kind: str) -> StatusError:
    """A kind that the cluster does not serve, as a client with discovery reports it."""
    return StatusError(0, "", f'no matches for kind "{kind}" in version "{api_version}"')
