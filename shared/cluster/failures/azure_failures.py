"""Which error an answer of Azure Resource Manager is, and which a failed operation: by the catalogue."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

from shared.cluster.failures.catalogue import ANY, AZURE, KUBERNETES, CatalogueEntry
from shared.cluster.failures.errors import (
    Aborted,
    Blocked,
    Conflict,
    Dependency,
    Interrupted,
    InvalidManifest,
    Obstructed,
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
from shared.frozen import dataclass
from shared.json_tree import Json

# The cause inside an error of Azure: AKS wraps the errors of the services that it calls.
#
# The cause is in a subcode, in details, in JSON inside a text, or in the text alone. Sources: -
# learn.microsoft.com/troubleshoot/azure/azure-kubernetes, the bodies of its pages on error codes -
# github.com/microsoft/api-guidelines, azure/Guidelines.md ("details" and "innererror" of an error)


DEPTH = 12
"""So many errors within each other are opened."""
ERRORS = 60
"""So many errors are read, in all."""
_TEXT = 20_000
_OBJECTS = 10
"""So many places of a text are tried as the beginning of JSON."""
_CODE = re.compile(
    r"""(?<![A-Za-z])(?:Sub|InternalError|VmssInstanceError|Error)?\s?Code\\*["']?\s*[=:]\s*\\*["']?(?P<code>[A-Za-z]\w+)""",
    re.IGNORECASE,
)
_OF_CLUSTER = re.compile("webhook|admission|podsecurity", re.IGNORECASE)
"""What a text has that repeats a refusal by admission."""
_LEADING = re.compile(r"\s*\((?P<code>[A-Za-z]\w+)\)")
_NAMED = re.compile(
    r"\b(?P<code>VMExtensionError_\w+|\w+VMExtensionError|WINDOWS_CSE_ERROR_\w+|ERR_[A-Z0-9_]+)\b"
)


@dataclass(frozen=True)
class _Error:
    """An error within another; ``text`` is its own, ``subcode`` may be ""."""

    code: str
    subcode: str
    text: str


def entry_for(error: Json) -> CatalogueEntry | None:
    """Return the entry of the catalogue for the cause of an error, None where no entry documents it.

    ``error`` has ``code`` and ``message``, and may have a ``subcode``, ``details`` and more of any form. The
    outermost error that does not merely wrap another one is the cause, by its code, or by its text where no
    entry has the code; if there is none, what the API server of the cluster refused, by its wording in a
    text; else the innermost wrapper, or what the texts say where it names only what failed.
    """
    errors = list(_errors(error))
    texts = [inner.text for inner in errors]
    wrapper: CatalogueEntry | None = None
    for place, inner in enumerate(errors):
        below = "\n".join([*texts[place:], ""])
        found = AZURE.find(inner.code, subcode=inner.subcode, text=below) or AZURE.find_by_text(below)
        if found is not None and not found.wraps:
            return found
        if inner.code or wrapper is None:  # without a code it says no more than what it is in
            wrapper = found or wrapper
    said = "\n".join(texts)
    refused = KUBERNETES.find(ANY, text=said) if _OF_CLUSTER.search(said) else None
    vague = wrapper is not None and wrapper.kind in (Obstructed, Unexplained)
    return refused or (AZURE.find_by_text(said) if vague else None) or wrapper


def _errors(error: Any) -> Iterator[_Error]:
    """Yield an error and those inside, the outer ones first."""
    left, level = ERRORS, [error]
    for _ in range(DEPTH):
        inside: list[Any] = []
        for document in level:
            if isinstance(document, Mapping) and left > 0:
                left -= 1
                yield from _own(document)
                inside += _inside(document)
        if not inside:
            return
        level = inside


def _own(document: Mapping[str, Any]) -> Iterator[_Error]:
    """Yield the error that a document is, its subcode as one, and the codes that its text names."""
    code, text = str(document.get("code") or ""), str(document.get("message") or "")[:_TEXT]
    subcode = str(document.get("subcode") or document.get("subCode") or "")
    yield _Error(code, subcode, text)
    if subcode:
        yield _Error(subcode, "", text)
    for pattern in (_LEADING, _CODE, _NAMED):
        found = pattern.match(text) if pattern is _LEADING else None
        for match in [found] if found else pattern.finditer(text) if pattern is not _LEADING else []:
            yield _Error(match["code"], "", text)


def _inside(document: Mapping[str, Any]) -> list[Any]:
    """Return the documents in a document, and in its texts."""
    found: list[Any] = []
    for value in document.values():
        if isinstance(value, list):
            found += value
        elif isinstance(value, Mapping):
            found.append(value)
        elif isinstance(value, str):
            found += _in_text(value[:_TEXT])
    return found


def _in_text(text: str) -> list[Any]:
    """Return the JSON objects in a text, also where their quotes are escaped."""
    found: list[Any] = []
    for form in (text, text.replace('\\"', '"')):
        decoder, start = json.JSONDecoder(), -1
        for _ in range(_OBJECTS):
            start = form.find("{", start + 1)
            if start < 0:
                break
            try:
                value, end = decoder.raw_decode(form, start)
            except (ValueError, RecursionError):
                continue
            found.append(value)
            start = end - 1
        if found:
            break
    return found


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
    kind = _refused(status, entry)
    if kind is Throttled and entry is not None and entry.kind is Unexplained:
        entry = None  # the status explains it
    return _error(kind, entry, error, message, request_id, retry_after)


def operation_failure(state: str, error: Json, message: str, *, request_id: str = "") -> ReconcileError:
    """Return the error for an operation that Azure accepted and did not complete.

    ``state`` is the final provisioningState, ``error`` Azure's own document, ``message`` what people are
    shown, ``request_id`` that of the request that started the operation. An error that may pass is one after
    which the write is repeated.
    """
    entry = entry_for(error)
    if entry is AZURE.find("BadRequest"):  # the manifest had been accepted: it says no more than "Failed"
        entry = AZURE.find("Failed")
    return _error(_failed(state, entry), entry, error, message, request_id)


def _refused(status: int, entry: CatalogueEntry | None) -> type[ReconcileError]:
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


def _failed(state: str, entry: CatalogueEntry | None) -> type[ReconcileError]:
    if state == "Canceled" and (entry is None or entry.kind is Unexplained):
        return Aborted
    kind = entry.kind if entry is not None else Unexplained
    if kind is Unauthorized:
        return RoleNotEffective
    passing = issubclass(kind, Retryable) and kind is not Blocked
    return Interrupted if passing and not kind.rewrites else kind


def _error(
    kind: type[ReconcileError],
    entry: CatalogueEntry | None,
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
