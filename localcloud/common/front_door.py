"""Fault injection and the request log of every local HTTP service.

``GET /_local/requests`` lists the requests seen; ``PUT /_local/faults`` takes a list of rules, as
``[{"match": "^PUT .*/managedClusters/", "status": 429, "headers": {"Retry-After": "2"}, "times": 3}]``. A
rule with ``"after": true`` lets the request take effect and loses the answer. ``times`` null: indefinitely;
``share`` (0 to 1): only that share of the requests, evenly spread. Other paths below ``/_local/`` belong to
the application; they are neither logged nor subject to faults.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from re import compile as compile_pattern
from typing import TYPE_CHECKING, Any

from werkzeug.wrappers import Request, Response

from localcloud.common.clock import system_clock
from localcloud.common.http_server import json_response

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


@dataclass
class ScriptedFault:
    """One rule of the fault script; ``match`` is a pattern searched in "METHOD /path?query"."""

    match: str
    status: int = 500
    body: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    times: int | None = 1
    share: float = 1.0
    after: bool = False
    _debt: float = 0.0

    def applies(self, line: str) -> bool:
        """Return whether the rule applies to this request, and count it."""
        if self.times == 0 or not compile_pattern(self.match).search(line):
            return False
        self._debt += self.share
        if self._debt < 1:
            return False
        self._debt -= 1
        if self.times is not None:
            self.times -= 1
        return True


class FrontDoor:
    """WSGI middleware around a service; ``log`` (JSON lines) also goes to a file when given.

    A logged request is ``{"at", "service", "method", "path", "query", "status"}`` plus what the
    application put into ``environ["roadstead.note"]`` (a dict), as {"accepted": "create"}.
    """

    def __init__(
        self,
        app: WSGIApplication,
        service: str,
        *,
        log_file: Path | None = None,
        clock: Callable[[], datetime] = system_clock,
    ) -> None:
        self._app, self._service, self._log_file, self._clock = app, service, log_file, clock
        self._lock = threading.Lock()
        self.faults: list[ScriptedFault] = []
        self.requests: list[dict[str, Any]] = []

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer from the fault script or the application, and log."""
        request = Request(environ, populate_request=False)
        if request.path.startswith("/_local/"):
            control = self._control(request)
            return (control or self._app)(environ, start_response)
        line = f"{request.method} {request.full_path.rstrip('?')}"
        note: dict[str, Any] = environ.setdefault("roadstead.note", {})
        with self._lock:
            fault = next((f for f in self.faults if f.applies(line)), None)
        if fault is not None and not fault.after:
            reply = json_response(fault.status, fault.body, fault.headers)
            note["fault"] = True
        else:
            reply = Response.from_app(self._app, environ)
            if fault is not None:
                reply = json_response(fault.status, fault.body, fault.headers)
                note["fault"] = "after"
        self._record(request, reply.status_code, note)
        return reply(environ, start_response)

    def _control(self, request: Request) -> Response | None:
        """Answer a control request; None: it belongs to the application."""
        if request.path == "/_local/requests":
            with self._lock:
                return json_response(200, self.requests)
        if request.path == "/_local/faults" and request.method == "PUT":
            rules = [ScriptedFault(**rule) for rule in json.loads(request.get_data())]
            with self._lock:
                self.faults = rules
            return json_response(200, {"rules": len(rules)})
        return None

    def _record(self, request: Request, status: int, note: dict[str, Any]) -> None:
        entry = {
            "at": self._clock().isoformat(),
            "service": self._service,
            "method": request.method,
            "path": request.path,
            "query": request.query_string.decode(),
            "status": status,
            **note,
        }
        with self._lock:
            self.requests.append(entry)
            if self._log_file is not None:
                with self._log_file.open("a") as out:
                    out.write(json.dumps(entry) + "\n")
