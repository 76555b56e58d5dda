"""Answers of an API server, and the errors that the refusals among them are."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from shared.cluster.failures.errors import ReconcileError, Unavailable
from shared.cluster.failures.kubernetes_status import LONGEST, ApiRefusal, error_of, is_denied
from shared.cluster.failures.retry import retry_after
from shared.frozen import dataclass
from shared.json_tree import Json, path_text
from shared.masking import cut

_LONGEST_TEXT = 2000
"""So many bytes of an answer that is no object are read."""


class _AnswerPart(BaseModel):
    """What is relied on of an answer; what a kind has beyond that is for whoever reads it."""

    model_config = ConfigDict(strict=True)


class _Metadata(_AnswerPart):
    """The names are those of Kubernetes: kubernetes/apimachinery ``pkg/apis/meta/v1/types.go``."""

    name: str
    uid: str = ""
    resourceVersion: str = ""
    namespace: str = ""
    creationTimestamp: str | None = None
    deletionTimestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    ownerReferences: list[dict[str, Any]] | None = None
    managedFields: list[dict[str, Any]] | None = None


class _Condition(_AnswerPart):
    type: str
    status: str
    reason: str | None = None
    message: str | None = None


class _Status(_AnswerPart):
    conditions: list[_Condition] | None = None


class Object(_AnswerPart):
    """An object of any kind."""

    metadata: _Metadata
    spec: dict[str, Any] | None = None
    data: dict[str, Any] | None = None
    status: _Status | None = None


class _ListMetadata(_AnswerPart):
    more: str = Field(default="", alias="continue")


class ObjectPage(_AnswerPart):
    """A page of a list."""

    metadata: _ListMetadata = _ListMetadata()
    items: list[Object] | None = None


class _Resource(_AnswerPart):
    name: str
    kind: str
    namespaced: bool


class Discovery(_AnswerPart):
    """The kinds of a version of the API."""

    resources: list[_Resource] | None = None


@dataclass(frozen=True)
class ApiAnswer:
    """The status, headers and JSON object of a response; {} for any other content, and then its ``text``."""

    status: int
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    text: str = ""

    @classmethod
    def of(cls, status: int, headers: Mapping[str, str], content: bytes) -> ApiAnswer:
        """Parse a response."""
        try:
            value = json.loads(content)
        except (ValueError, RecursionError):
            return cls(status, headers, {}, content[:_LONGEST_TEXT].decode(errors="replace"))
        return cls(status, headers, value if isinstance(value, dict) else {})

    @property
    def refusal(self) -> ApiRefusal:
        """What the answer says of a request that was refused."""
        headers = {name.lower(): value for name, value in self.headers.items()}
        return ApiRefusal.of(
            self.status,
            self.body,
            text=self.text,
            retry_after=retry_after(headers),
            request_id=headers.get("audit-id", ""),
        )

    def read_as(self, form: type[BaseModel], subject: str) -> Json:
        """Return the body; raise Unavailable, with the place and no value, where it has another form."""
        try:
            form.model_validate(self.body)
        except ValidationError as error:
            place = path_text(error.errors(include_input=False, include_url=False)[0]["loc"])
            raise Unavailable(
                f"{subject}: the answer of the API server has no {place}, or another form"
            ) from None
        return self.body

    @property
    def reason(self) -> str:
        """Why Kubernetes refuses the request, "" without a reason."""
        return str(self.body.get("reason") or "")


def refusal(answer: ApiAnswer, subject: str, *, secret: bool = False) -> ReconcileError:
    """Return the port's error for a rejected request; for a Secret it has nothing that others say."""
    return error_of(answer.refusal, subject, secret=secret)


def refused_eviction(answer: ApiAnswer) -> str:
    """Return why a budget, an admission policy or a webhook refused an eviction, "" when none did."""
    return _budget(answer.refusal) or _admission(answer.refusal)


def _budget(refused: ApiRefusal) -> str:
    """Return what a rejected eviction says about its disruption budget; "" when no budget rejected it.

    The API server rejects a pod with two budgets with a server error that only its message identifies.
    """
    budgets = [cause.message for cause in refused.causes if cause.reason == "DisruptionBudget"]
    if budgets or "more than one PodDisruptionBudget" in refused.message:
        return _short(" ".join([refused.message, *budgets]))
    return ""


def _admission(refused: ApiRefusal) -> str:
    """Return why an admission policy or webhook refused an eviction, "" when none did.

    An eviction has nothing that could be invalid, so only a policy answers 422 to it.
    """
    denied = refused.status == 422 or is_denied(refused)
    return (_short(refused.message) or refused.code) if denied and refused.status not in (401, 429) else ""


def _short(message: str) -> str:
    """Return what others say about an eviction, on one line and cut."""
    return cut(" ".join(message.split()), LONGEST, "...")


LONGEST_LINE, LONGEST_TEXT = 1 << 16, 1 << 28
"""Bytes of a line of ``/metrics``, and of all; a longer line is no sample of ours."""


def samples(chunks: Iterable[bytes], name: str) -> Iterator[str]:
    """Yield the lines of a metric in a text of metrics that comes in parts; no more than a line is stored."""
    rest, start, size = b"", f"{name}{{".encode(), 0
    for chunk in chunks:
        size += len(chunk)
        if size > LONGEST_TEXT:
            raise Unavailable("the metrics of the API server do not end")
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (line.decode(errors="replace") for line in lines if line.startswith(start))
        rest = rest[: LONGEST_LINE + 1]
    if rest.startswith(start):
        yield rest.decode(errors="replace")
