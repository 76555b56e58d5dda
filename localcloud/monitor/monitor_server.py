"""Serves workspaces of Azure Monitor, and AKS' vulnerability data, over TLS. The README has the sources.

``PUT /_local/queries`` {"query", "value"} gives a query one series that has the value all the time, and
{"query", "answer"} the body of its answer; {"query"} alone takes both away.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from werkzeug.wrappers import Request, Response

from localcloud.common.certificates import Authority
from localcloud.common.http_server import json_response
from localcloud.common.local_service import LocalService
from localcloud.monitor.vulnerability_data import MemoryVulnerabilities, report

METRICS, LOGS = "https://prometheus.monitor.azure.com", "https://api.loganalytics.io"
"""The audiences of the two services."""
READ_METRICS = "microsoft.monitor/accounts/data/metrics/read"
"""The data action of the role Monitoring Data Reader."""
READ_LOGS = "Microsoft.OperationalInsights/workspaces/query/read"
WORKSPACE = "63613592-b6f7-4c3d-a390-22ba13102111"
"""The id of the Log Analytics workspace: that of the examples of its API."""
_REPORT = re.compile(r"/api/v1/(?P<release>(?:vhd-releases/[^/]+|aks-k8s-releases)/[^/]+)/scan-reports")
_QUERY = re.compile(r"/v1/workspaces/(?P<workspace>[^/]+)/query")
_MOST_POINTS = 11_000


class MonitorServer(LocalService):
    """Serves both workspaces at a loopback port until closed; a context manager.

    ``accepts`` decides whether a token is valid for an audience, and ``granted`` which actions its holder
    has, None for all.
    """

    def __init__(
        self,
        authority: Authority,
        *,
        accepts: Callable[[str, str], bool],
        granted: Callable[[str], Collection[str] | None] = lambda _token: None,
        port: int = 0,
        log_file: Path | None = None,
    ) -> None:
        self._accepts, self._granted = accepts, granted
        self._values: dict[str, float] = {}
        self._answers: dict[str, Any] = {}
        self.vulnerabilities = MemoryVulnerabilities()
        super().__init__(self._application, "monitor", authority=authority, port=port, log_file=log_file)

    def _application(self, request: Request) -> Response:
        match, published = _QUERY.fullmatch(request.path), _REPORT.fullmatch(request.path)
        if request.path == "/_local/queries" and request.method == "PUT":
            return self._set(json.loads(request.get_data()))
        if published is not None and request.method == "GET":
            return self._report(published["release"])
        if request.path == "/api/v1/query_range" and request.method in ("GET", "POST"):
            return self._range(request)
        if match is not None and request.method == "POST":
            return self._logs(request, match["workspace"])
        return _logs_error(404, "PathNotFoundError", "The requested path does not exist")

    def _report(self, release: str) -> Response:
        active = self.vulnerabilities.active(release)
        return Response(status=404) if active is None else json_response(200, report(release, active))

    def _set(self, wanted: dict[str, Any]) -> Response:
        query = wanted["query"]
        self._values.pop(query, None)
        self._answers.pop(query, None)
        if "value" in wanted:
            self._values[query] = float(wanted["value"])
        if "answer" in wanted:
            self._answers[query] = wanted["answer"]
        return Response(status=204)

    def _refused(self, request: Request, audience: str, action: str) -> tuple[int, str] | None:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme != "Bearer" or not self._accepts(token, audience):
            return 401, "the token is missing, expired or for another audience"
        granted = self._granted(token)
        if granted is not None and action not in granted:
            return 403, f"User does not have access to perform any of the following actions '{action}'"
        return None

    def _range(self, request: Request) -> Response:
        refused = self._refused(request, METRICS, READ_METRICS)
        if refused is not None:
            return _prometheus_error(refused[0], "Forbidden", f"{refused[1]}. RequestId: {uuid4().hex}")
        given = request.values
        try:
            query, start, end = given["query"], _time(given["start"]), _time(given["end"])
            step = float(given["step"].removesuffix("s"))
            count = int((end - start) / step) + 1
        except (KeyError, ValueError, ZeroDivisionError):
            return _prometheus_error(400, "bad_data", "invalid parameter")
        if not 0 < count <= _MOST_POINTS:
            text = "exceeded maximum resolution of 11,000 points per timeseries"
            return _prometheus_error(400, "bad_data", text)
        if query in self._answers:
            return json_response(200, self._answers[query])
        result = []
        if query in self._values:
            values = [[start + number * step, f"{self._values[query]:g}"] for number in range(count)]
            result = [{"metric": {}, "values": values}]
        return json_response(200, {"status": "success", "data": {"resultType": "matrix", "result": result}})

    def _logs(self, request: Request, workspace: str) -> Response:
        refused = self._refused(request, LOGS, READ_LOGS)
        if refused is not None:
            code = "InsufficientAccessError" if refused[0] == 403 else "InvalidTokenError"
            return _logs_error(refused[0], code, "The provided credentials have insufficient access")
        if workspace != WORKSPACE:
            return _logs_error(404, "WorkspaceNotFoundError", "The workspace could not be found")
        query = str(json.loads(request.get_data()).get("query") or "")
        if not query:
            return _logs_error(400, "BadArgumentError", "The request had some invalid properties")
        if query in self._answers:
            return json_response(200, self._answers[query])
        rows = [[self._values[query]]] if query in self._values else []
        table = {"name": "PrimaryResult", "columns": [{"name": "value", "type": "real"}], "rows": rows}
        return json_response(200, {"tables": [table]})


def _time(text: str) -> float:
    """Return seconds of the epoch: Prometheus takes these, and times of RFC 3339."""
    try:
        return float(text)
    except ValueError:
        return datetime.fromisoformat(text).timestamp()


def _prometheus_error(status: int, kind: str, text: str) -> Response:
    return json_response(status, {"status": "error", "errorType": kind, "error": text})


def _logs_error(status: int, code: str, text: str) -> Response:
    return json_response(status, {"error": {"message": text, "code": code}})
