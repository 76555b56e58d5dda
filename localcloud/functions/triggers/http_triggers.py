"""HTTP triggers, as a WSGI application.

As in Azure: an exception is an empty 500, and query parameters or headers that repeat are joined by
commas. Keys are not checked, as with ``func start``, which also has the same addresses below /admin.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any

from azure.functions.meta import Datum
from werkzeug.urls import iri_to_uri
from werkzeug.wrappers import Request, Response

from localcloud.common.http_server import json_response
from localcloud.functions.triggers.route_templates import RouteTemplates
from localcloud.functions.triggers.timer_triggers import tick
from localcloud.functions.worker.function_index import Function, HttpReply, Input, TimerTrigger
from localcloud.functions.worker.invocations import Closed, Invoker

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


HOMEPAGE = "<!doctype html><title>Functions</title><h1>Your Functions app is up and running</h1>"
"""What the host answers at "/" unless AzureWebJobsDisableHomepage is set: see the app settings reference."""


class HttpFunctions:
    """Routes requests to functions; ``/admin/host/status`` answers 200 as soon as the host runs."""

    def __init__(self, functions: Sequence[Function], invoker: Invoker, *, prefix: str) -> None:
        self._invoker = invoker
        self._routes = RouteTemplates(functions, prefix=prefix)
        self._timers = {f.name.lower(): f for f in functions if isinstance(f.trigger, TimerTrigger)}

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        request = Request(environ)
        try:
            reply = self._answer(request)
        except (Closed, CancelledError):
            reply = Response(status=503)
        return reply(environ, start_response)

    def _answer(self, request: Request) -> Response:
        if request.path.lower().startswith("/admin/"):
            return self._admin(request.method, request.path.lower())
        found = self._routes.match(request.method, request.path)
        if found is None and request.path == "/":
            return Response(HOMEPAGE, mimetype="text/html")
        if found is None:
            return Response(status=404)
        function, parameters = found
        outcome = self._invoker.submit(function, _input(request, parameters)).result()
        return _response(outcome.reply) if outcome.reply else Response(status=500)

    def _admin(self, method: str, path: str) -> Response:
        if path == "/admin/host/status":
            return json_response(200, {"state": "Running"})
        timer = self._timers.get(path.removeprefix("/admin/functions/"))
        if timer is None or method != "POST":
            return Response(status=404)
        self._invoker.submit(timer, tick(past_due=False))
        return Response(status=202)


def _input(request: Request, parameters: Mapping[str, str]) -> Input:
    """Return what the host passes on of a request; the body is the raw bytes."""
    query = {name: ",".join(values) for name, values in request.args.lists()}
    value = {
        "method": Datum(request.method, "string"),
        "url": Datum(iri_to_uri(request.url), "string"),
        "headers": _data(request.headers),
        "query": _data(query),
        "params": _data(parameters),
        "body": Datum(request.get_data(), "bytes"),
    }
    return Input(Datum(value, "http"))


def _response(reply: HttpReply) -> Response:
    response = Response(reply.body, status=reply.status)
    for name, value in reply.headers.items():
        response.headers[name] = value
    for cookie in reply.cookies:
        response.headers.add("Set-Cookie", cookie)
    return response


def _data(values: Mapping[str, str] | Any) -> dict[str, Datum]:
    return {name: Datum(value, "string") for name, value in values.items()}
