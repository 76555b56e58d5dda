"""Accept and Content-Type: what a request may ask for and send.

Rules and texts: ``apiserver/pkg/endpoints/handlers/negotiation``. Built-in kinds are also served as protobuf
by the real API server; here a client that accepts nothing else is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml
from werkzeug.wrappers import Request, Response

from localcloud.kubernetes.world.api_errors import StatusError, bad_request

JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
_SERVED = (JSON, YAML)
_TYPES = ", ".join((*_SERVED, PROTOBUF))
_CONVERSIONS = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")


@dataclass(frozen=True)
class AnswerForm:
    """The form of an answer: a media type, and what objects are converted to ("" or "Table")."""

    media_type: str = JSON
    shown_as: str = ""


@dataclass(frozen=True)
class _Clause:
    media_type: str
    quality: float
    parameters: dict[str, str] = field(default_factory=dict)


def accepted(request: Request, *, custom: bool, streamed: bool = False) -> AnswerForm:
    """Return the first form in Accept that is served; raise ApiError (406).

    ``streamed``: the answer may be a watch.
    """
    header = request.headers.get("Accept", "").strip()
    if not header:
        return AnswerForm()
    for clause in sorted(_clauses(header), key=lambda clause: -clause.quality):
        shown_as = clause.parameters.get("as", "")
        if shown_as and (
            shown_as not in _CONVERSIONS
            or clause.parameters.get("g") != "meta.k8s.io"
            or clause.parameters.get("v") not in ("v1", "v1beta1")
        ):
            continue
        if clause.media_type in ("*/*", "application/*", JSON):
            return AnswerForm(JSON, shown_as)
        if clause.media_type == YAML:
            return AnswerForm(YAML, shown_as)
    if custom or any(clause.media_type in _SERVED for clause in _clauses(header)):
        raise StatusError(406, "NotAcceptable", f"only the following media types are accepted: {_TYPES}")
    streams = f", {JSON};stream=watch, {PROTOBUF};stream=watch" if streamed else ""
    text = f"406: Not Acceptable\n\nAvailable representations: {_TYPES}{streams}"
    raise StatusError(406, "NotAcceptable", text)


def _clauses(header: str) -> Iterator[_Clause]:
    for text in header.split(","):
        media_type, *rest = (part.strip() for part in text.split(";"))
        pairs = dict(part.partition("=")[::2] for part in rest)
        quality = pairs.pop("q", "1")
        yield _Clause(
            media_type.lower(), float(quality) if quality.replace(".", "", 1).isdigit() else 1.0, pairs
        )


def reply(status: int, body: Any, form: AnswerForm) -> Response:
    """Return an answer in the form that was asked for."""
    if form.media_type == YAML:
        return Response(yaml.safe_dump(body, sort_keys=False), status=status, content_type=YAML)
    text = json.dumps(body, separators=(",", ":"))
    return Response(text, status=status, content_type=JSON)


def received(request: Request, *, what: str) -> Any:
    """Return the body of a request; raise ApiError (415, 400). ``what`` is the kind that it should be."""
    media_type = request.mimetype or JSON
    if media_type not in _SERVED:
        message = f"the body of the request was in an unknown format - accepted media types include: {_TYPES}"
        raise StatusError(415, "UnsupportedMediaType", message)
    found = parsed(request.get_data(), is_yaml=media_type == YAML, what=what)
    if not isinstance(found, dict):
        text = "cannot unmarshal into Go value of type struct { APIVersion string; Kind string }"
        raise bad_request(f"couldn't get version/kind; json parse error: json: {text}")
    return found


def parsed(content: bytes, *, is_yaml: bool, what: str) -> Any:
    """Return parsed content; raise ApiError (400)."""
    try:
        return yaml.load(content, Loader=yaml.CSafeLoader) if is_yaml else json.loads(content)
    except (ValueError, yaml.YAMLError) as error:
        problem = str(error).splitlines()[0]
        message = f"the object provided is unrecognized (must be of type {what}): {problem}"
        raise bad_request(message) from error
