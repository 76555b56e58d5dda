"""Lists: at which version, from which object on, and in pages (``limit`` and ``continue``).

Every page is of the version of the first one, as long as that is stored. Rules and texts:
``ValidateListOptions`` in ``apimachinery/pkg/apis/meta/internalversion/validation``, and ``continue.go`` and
``etcd3/errors.go`` in ``apiserver/pkg/storage``.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from werkzeug.wrappers import Request

from localcloud.kubernetes.schema.definitions import FieldProblem, forbidden, unsupported
from localcloud.kubernetes.wire.request_options import number
from localcloud.kubernetes.wire.watch_streams import too_new, version_of
from localcloud.kubernetes.world.api_errors import StatusError, bad_request, invalid_options
from localcloud.kubernetes.world.object_store import Object

_MATCHES = ("Exact", "NotOlderThan", "")
_FIELD = "resourceVersionMatch"
_FORM = "meta.k8s.io/v1"
_NOW = -1
_LOST = "The resourceVersion for the provided list is too old."
_LOST_PAGE = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new "
    "list without the continue parameter, or use the continue token in this response to retrieve the "
    "remainder of the results. Continuing with the provided token results in an inconsistent list - objects "
    "that were created, modified, or deleted between the time the first chunk was returned and now may show "
    "up in the list."
)


@dataclass(frozen=True)
class ListWindow:
    """What a list shows: ``size`` objects (0: all) after a key, of a version (0: the present one)."""

    size: int
    version: int = 0
    after: tuple[str, str] | None = None


def listing(request: Request, newest: int, keeps: Callable[[int], bool]) -> ListWindow:
    """Return what a request lists.

    Raise ApiError: 400 or 422 for wrong options, 410 for a version that is lost, 504 for one to come.
    """
    token, match = request.args.get("continue", ""), request.args.get(_FIELD, "")
    text, size = request.args.get("resourceVersion", ""), number(request, "limit") or 0
    found = list(_problems(match, text, token))
    if found:
        raise invalid_options("ListOptions", found)
    wanted = version_of(text, listed=True)
    if token:
        if wanted:
            raise bad_request("specifying resource version is not allowed when using continue")
        asked = replace(_decoded(token), size=size)
        if asked.version and not keeps(asked.version):
            raise StatusError(410, "Expired", _LOST_PAGE, metadata={"continue": _token(asked.after, _NOW)})
        return asked
    if wanted > newest:
        raise too_new(wanted, newest)
    exact = match == "Exact" or (wanted and size and not match)
    if exact and not keeps(wanted):
        raise StatusError(410, "Expired", _LOST)
    return ListWindow(size, wanted if exact else 0)


def page(
    objects: Sequence[Object], everything: Sequence[Object], asked: ListWindow, version: int
) -> tuple[Sequence[Object], str]:
    """Return a page, and the token of the next one: "" when no object of the kind comes after the page.

    ``objects`` are those that the selectors match, ``everything`` those of the kind; both are in order.
    """
    if asked.after:
        objects = [value for value in objects if _key(value) > asked.after]
    if asked.size <= 0 or len(objects) < asked.size:
        return objects, ""
    last = _key(objects[asked.size - 1])
    return objects[: asked.size], _token(last, version) if _key(everything[-1]) > last else ""


def _problems(match: str, text: str, token: str) -> Iterator[FieldProblem]:
    if not match:
        return
    if not text:
        yield forbidden(_FIELD, f"{_FIELD} is forbidden unless resourceVersion is provided")
    if token:
        yield forbidden(_FIELD, f"{_FIELD} is forbidden when continue is provided")
    if match not in _MATCHES:
        yield unsupported(_FIELD, match, _MATCHES)
    if match == "Exact" and text == "0":
        yield forbidden(_FIELD, f'{_FIELD} "exact" is forbidden for resourceVersion "0"')


def _key(value: Object) -> tuple[str, str]:
    return value["metadata"].get("namespace", ""), value["metadata"]["name"]


def _token(after: tuple[str, str] | None, version: int) -> str:
    content = {"v": _FORM, "rv": version, "start": "/".join(after or ("", ""))}
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")


def _decoded(token: str) -> ListWindow:
    problem = "invalid continue token: continue key is not valid"
    try:
        content = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise bad_request(f"{problem}: {error}") from error
    try:
        fields = json.loads(content)
        namespace, _, name = str(fields["start"]).partition("/")
        version = int(fields["rv"])
    except (KeyError, TypeError, ValueError) as error:
        shown = chr(content[0]) if content else ""
        shown = shown if shown.isprintable() else f"\\u{ord(shown):04x}"
        raise bad_request(f"{problem}: invalid character '{shown}' looking for beginning of value") from error
    return ListWindow(0, 0 if version == _NOW else version, (namespace, name))
