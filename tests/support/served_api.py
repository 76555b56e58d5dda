"""The API that the command asks, served as the development host serves it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import azure.functions as func

from handlers import api
from localcloud.common.http_server import HttpServer
from localcloud.functions.function_index import functions_of
from localcloud.functions.http_triggers import HttpFunctions
from localcloud.functions.invocations import Invoker
from shared.ports import Ports

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


class Locked:
    """The functions, which refuse the key "wrong" as Azure does; the development host checks none."""

    def __init__(self, functions: HttpFunctions) -> None:
        self._functions = functions

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        if environ.get("HTTP_X_FUNCTIONS_KEY") == "wrong":
            start_response("401 Unauthorized", [])
            return []
        return self._functions(environ, start_response)


@contextmanager
def served(ports: Ports) -> Iterator[str]:
    """Serve the API on ports; yield its address."""
    app = func.FunctionApp()
    app.register_functions(api.blueprint(ports))
    invoker = Invoker(threads=2)
    functions = HttpFunctions(functions_of(app, {}), invoker, prefix="api")
    with HttpServer(Locked(functions)) as running:
        yield running.url
    invoker.close(5)
