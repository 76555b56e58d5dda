"""Workspaces of Azure Monitor over their query APIs, with the app's own identity.

Two requests need no library: azure-monitor-query has only the one of Log Analytics. Sources:
learn.microsoft.com/azure/azure-monitor/metrics/prometheus-api-promql (a managed Prometheus: its audience,
``/api/v1/query_range``), prometheus.io/docs/prometheus/latest/querying/api, and learn.microsoft.com/rest/api/
logsquery/query/execute (Log Analytics: ``timespan``, ``tables``, and ``error`` in an answer that is partial).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from azure.core import PipelineClient
from azure.core.credentials import TokenCredential
from azure.core.exceptions import AzureError, ClientAuthenticationError
from azure.core.pipeline.policies import BearerTokenCredentialPolicy, RetryPolicy
from azure.core.rest import HttpRequest
from pydantic import BaseModel, ValidationError

from shared.adapters.transport import pooled_transport
from shared.cluster.failures.errors import (
    ReconcileError,
    TooLarge,
    Unauthenticated,
    Unauthorized,
    Unavailable,
    Unexpected,
    from_address,
)
from shared.cluster.failures.retry import retry_after
from shared.masking import cut
from shared.ports.services import not_a_workspace
from shared.rollouts.monitored import Sample, Series, step_of

_CONNECT_SECONDS, _READ_SECONDS = 5, 10
MAX_BYTES = 64 << 10
"""Limit on an answer."""
_EXCERPT = 100
_LOGS = re.compile(r"/v1/workspaces/[0-9a-fA-F-]{36}$")
_PROMETHEUS_AUDIENCE = "https://prometheus.monitor.azure.com/.default"
_LOGS_AUDIENCE = "https://api.loganalytics.io/.default"
_NUMBERS = ("real", "double", "decimal", "int", "long")
_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""Numbers that JSON lacks, as Log Analytics writes them."""


class MonitorWorkspaces:
    """The ``Monitor`` port; ``urls`` has the address of each workspace by its name, in lower case.

    No call retries or sleeps by itself. Safe to share between threads.
    """

    def __init__(self, urls: Mapping[str, str], credential: TokenCredential) -> None:
        self._urls, self._credential = urls, credential

    def series(self, workspace: str, query: str, since: datetime, until: datetime) -> Sequence[Series]:
        """Return what a query of a workspace answers for a time."""
        url = self._urls.get(workspace.lower())
        if url is None:
            raise not_a_workspace(workspace)
        if _LOGS.search(url):
            asked = {"query": query, "timespan": f"{since:%Y-%m-%dT%H:%M:%SZ}/{until:%Y-%m-%dT%H:%M:%SZ}"}
            request = HttpRequest("POST", f"{url}/query", json=asked)
            return _rows(self._answer(workspace, url, request, _LOGS_AUDIENCE))
        step = step_of(until - since)
        times = {"start": f"{since.timestamp():.3f}", "end": f"{until.timestamp():.3f}"}
        times["step"] = f"{step.total_seconds():g}"
        request = HttpRequest("GET", f"{url}/api/v1/query_range", params={"query": query, **times})
        return _matrix(self._answer(workspace, url, request, _PROMETHEUS_AUDIENCE), step)

    def _answer(self, workspace: str, url: str, request: HttpRequest, audience: str) -> bytes:
        """Return the body of an answer; raise what the service refuses."""
        with self._calling(workspace), self._client(url, audience) as client:
            response = client.send_request(request, stream=True)
            body = bytearray()
            for part in response.iter_bytes():
                body += part
                if len(body) > MAX_BYTES:
                    raise TooLarge(f"the answer is larger than {MAX_BYTES >> 10} KiB; aggregate in the query")
            if response.status_code != 200:
                raise _refused(workspace, response, bytes(body))
            return bytes(body)

    @contextmanager
    def _calling(self, workspace: str) -> Iterator[None]:
        try:
            yield
        except ClientAuthenticationError as error:
            text = str(error.message).partition("\n")[0]
            raise Unauthenticated(f"there is no credential for the workspace {workspace}: {text}") from None
        except AzureError as error:
            # Not chained: the library's text may have parts of an answer.
            text = f"the workspace {workspace} does not answer: {type(error).__name__}"
            raise Unavailable(text) from None

    def _client(self, url: str, audience: str) -> Any:
        transport = pooled_transport(url, connect_seconds=_CONNECT_SECONDS, read_seconds=_READ_SECONDS)
        policies = [BearerTokenCredentialPolicy(self._credential, audience), RetryPolicy.no_retries()]
        return PipelineClient[Any, Any](url, transport=transport, policies=policies)


class _PrometheusError(BaseModel):
    error: str


class _LogsInnerError(BaseModel):
    message: str = ""
    innererror: _LogsInnerError | None = None


class _LogsError(BaseModel):
    error: _LogsInnerError


def _refused(workspace: str, response: Any, body: bytes) -> ReconcileError:
    status = response.status_code
    if status == 403:
        return Unauthorized(
            f"the identity of the control app may not query the workspace {workspace}: give it the role "
            "Monitoring Data Reader (a managed Prometheus) or Log Analytics Reader there"
        )
    text = f"the workspace {workspace} answers with the status {status}{_excerpt(body)}"
    return from_address(status, text, retry_after=retry_after(dict(response.headers)))


def _excerpt(body: bytes) -> str:
    """Return what the service says is wrong with a query, cut short, "" for any other body."""
    found = ""
    for model in (_PrometheusError, _LogsError):
        try:
            answer = model.model_validate_json(body).error
        except (ValidationError, RecursionError):
            continue
        while isinstance(answer, _LogsInnerError) and answer.innererror is not None:
            answer = answer.innererror
        found = answer if isinstance(answer, str) else answer.message
        break
    text = "".join(character if character.isprintable() else " " for character in found)
    return f": {cut(text, _EXCERPT)}" if text else ""


class _Stream(BaseModel):
    values: tuple[tuple[float, float], ...]


class _Matrix(BaseModel):
    resultType: Literal["matrix"]
    result: tuple[_Stream, ...]


class _RangeAnswer(BaseModel):
    status: Literal["success"]
    data: _Matrix
    warnings: tuple[str, ...] = ()


def _matrix(body: bytes, step: timedelta) -> Sequence[Series]:
    try:
        answer = _RangeAnswer.model_validate_json(body)
        if answer.warnings:
            raise Unexpected("the workspace answers with warnings, so some data may be missing")
        return [
            Series(tuple(Sample(value, datetime.fromtimestamp(at, UTC)) for at, value in stream.values), step)
            for stream in answer.data.result
        ]
    except (ValueError, OverflowError, OSError, RecursionError):
        # Not chained: the library's text has parts of the answer.
        raise Unexpected("the answer is no range of numbers of a Prometheus") from None


class _Column(BaseModel):
    name: str
    type: str


class _Table(BaseModel):
    name: str
    columns: tuple[_Column, ...]
    rows: tuple[tuple[Any, ...], ...]


class _LogsAnswer(BaseModel):
    tables: tuple[_Table, ...]
    error: Any = None


def _rows(body: bytes) -> Sequence[Series]:
    """Return each record of the first table with its one number, and its time where it has one."""
    try:
        answer = _LogsAnswer.model_validate_json(body)
    except (ValidationError, RecursionError):
        raise Unexpected("the answer is no table of a Log Analytics workspace") from None
    if answer.error is not None:
        raise Unexpected("the workspace answers with a part of the data, and an error")
    table = next((table for table in answer.tables if table.name == "PrimaryResult"), None)
    if table is None:
        raise Unexpected("the answer has no table PrimaryResult")
    numbers = [place for place, column in enumerate(table.columns) if column.type in _NUMBERS]
    times = [place for place, column in enumerate(table.columns) if column.type == "datetime"]
    if len(numbers) != 1 or len(times) > 1:
        raise Unexpected(
            f"the query returns {len(numbers)} columns with numbers and {len(times)} with times; it has to "
            "return one number, and at most one time"
        )
    return [_row(row, numbers[0], times) for row in table.rows]


def _row(row: Sequence[Any], number: int, times: Sequence[int]) -> Series:
    try:
        value, at = row[number], row[times[0]] if times else ""
        if value is None or at is None:  # as max() and avg() of no records are
            return Series(())
        time = datetime.fromisoformat(at) if at else None
        if time is not None and time.tzinfo is None:
            time = time.replace(tzinfo=UTC)
        return Series((Sample(_WORDS[value] if value in _WORDS else float(value), time),))
    except (LookupError, TypeError, ValueError, OverflowError):
        raise Unexpected("a record of the answer has no number or no time in its columns") from None
