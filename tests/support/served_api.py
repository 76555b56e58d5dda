"""The API that the command asks, served as the development host serves it."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from handlers.sign_in import SignIn
from localcloud.common.http_server import HttpServer
from localcloud.functions.easy_auth import AuthSettings, EasyAuth
from localcloud.functions.host_config import read_settings
from localcloud.functions.triggers.http_triggers import HttpFunctions
from localcloud.functions.worker.function_index import Function, HttpTrigger
from localcloud.functions.worker.in_process import functions_of
from localcloud.functions.worker.invocations import Invoker
from localcloud.runtime.options import EXAMPLE
from shared.app.console.github_setup import GitHubSetup
from shared.ports import Ports
from tests.support.function_calls import KEYS, function_app


@contextmanager
def served(
    ports: Ports,
    auth: AuthSettings | None = None,
    elapsed: Callable[[], float] = time.monotonic,
    *,
    setup: GitHubSetup | None = None,
    port: int = 0,
    tls: ssl.SSLContext | None = None,
) -> Iterator[str]:
    """Serve the API on ports; yield its address. ``auth`` turns the sign-in on, keys open it always.

    ``elapsed`` are the seconds by which a sign-in ends. ``setup`` is the set-up of a GitHub App, which needs
    to know the address before: a port, with TLS.
    """
    sign_in = SignIn("entra" if auth else "keys", platform_verifies=auth is not None, keys=KEYS)
    invoker = Invoker(threads=2)
    web = HttpFunctions(_http(ports, sign_in, setup), invoker, prefix="")
    with HttpServer(EasyAuth(web, auth, elapsed) if auth else web, port=port, tls=tls) as running:
        yield running.url
    invoker.close(5)


def _http(ports: Ports, sign_in: SignIn, setup: GitHubSetup | None) -> list[Function]:
    found = functions_of(function_app(ports, sign_in, setup), read_settings(EXAMPLE))
    return [function for function in found if isinstance(function.trigger, HttpTrigger)]
