"""The development host: runs the functions of function_app.py where the Functions host is not installed.

``python -m localcloud.functions.host --app . --settings local.settings.json --port 7071`` does for our
triggers (HTTP, timer, Service Bus queue) what ``func start`` does, with the real ``azure.functions`` library
and the real Service Bus client. On Ctrl-C or SIGTERM the host takes no more work, waits five seconds for
running invocations, releases its sessions, and exits with 0.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import TextIO

from localcloud.common.http_server import HttpServer
from localcloud.common.stop_with_parent import stop_with_parent
from localcloud.functions.easy_auth import ENABLED, AuthSettings, EasyAuth
from localcloud.functions.host_config import (
    ConfigError,
    HostConfig,
    apply_settings,
    read_host_json,
    read_settings,
)
from localcloud.functions.host_logs import HOST, set_up_logging
from localcloud.functions.triggers.http_triggers import HttpFunctions
from localcloud.functions.triggers.queue_triggers import QueueListener
from localcloud.functions.triggers.session_triggers import SessionListener
from localcloud.functions.triggers.timer_triggers import Timer
from localcloud.functions.worker.function_index import (
    Function,
    QueueTrigger,
    SessionTrigger,
    TimerTrigger,
)
from localcloud.functions.worker.in_process import functions_of, import_app
from localcloud.functions.worker.invocations import Invoker
from localcloud.functions.worker.worker_client import WorkerClient, forked, installed, started

log = logging.getLogger(HOST)

GRACE_SECONDS = 5.0
"""How long running invocations may continue when the host stops."""
DEFAULT_PORT = 7071
_HTTP_THREADS = 32


class Host:
    """Runs the functions from ``start`` to ``close``; ``port`` 0 takes a free one."""

    def __init__(
        self,
        functions: Sequence[Function],
        config: HostConfig,
        *,
        sign_in: AuthSettings | None = None,
        port: int = 0,
        threads: int = 8,
    ) -> None:
        self._invoker = Invoker(threads=threads, timeout=config.timeout_seconds)
        self._triggers: list[Timer | SessionListener | QueueListener] = []
        for function in functions:
            if isinstance(function.trigger, TimerTrigger):
                self._triggers.append(Timer(function, self._invoker))
            elif isinstance(function.trigger, SessionTrigger):
                self._triggers.append(SessionListener(function, self._invoker, config.service_bus))
            elif isinstance(function.trigger, QueueTrigger):
                self._triggers.append(QueueListener(function, self._invoker, config.service_bus))
        web = HttpFunctions(functions, self._invoker, prefix=config.route_prefix)
        self._http = HttpServer(EasyAuth(web, sign_in) if sign_in else web, port=port, threads=_HTTP_THREADS)
        self.url = self._http.url

    def start(self) -> None:
        """Start timers and queues; HTTP is served already."""
        for trigger in self._triggers:
            trigger.start()

    def run(self, stop: threading.Event) -> None:
        """Enforce the timeout of invocations until ``stop`` is set."""
        while not stop.wait(0.5):
            self._invoker.report_overdue()

    def close(self) -> bool:
        """Stop as ``func start`` does on Ctrl-C; return whether everything that ran has ended."""
        for trigger in self._triggers:
            trigger.stop()
        ended = self._invoker.close(GRACE_SECONDS)
        for trigger in self._triggers:
            trigger.join(1.0)
        self._http.close()
        return ended


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until a signal stops the process."""
    options = _parser().parse_args(arguments)
    stop = threading.Event()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGINT, on_signal)
    signal.signal(signal.SIGTERM, on_signal)
    if options.stop_with_parent:
        stop_with_parent()
    try:
        return _run(options, stop)
    except ConfigError as error:
        print(f"The functions cannot start: {error}", file=sys.stderr)
        return 1


def _run(options: argparse.Namespace, stop: threading.Event) -> int:
    folder: Path = options.app.resolve()
    config = read_host_json(folder / "host.json")
    values = read_settings(options.settings)
    inherited = apply_settings(values, os.environ)
    out = options.log_file.open("a", buffering=1) if options.log_file else sys.stderr
    set_up_logging(out, config.log_levels, debug=os.environ.get("PYTHON_ENABLE_DEBUG_LOGGING") == "1")
    for name in inherited:
        log.warning("%s: the environment's value is used, not the one of the settings file", name)
    sign_in = AuthSettings(options.sign_in, tuple(options.audience)) if options.sign_in else None
    os.environ[ENABLED] = str(sign_in is not None)
    functions = _functions(options.worker, folder, config, out)
    host = Host(functions, config, sign_in=sign_in, port=options.port, threads=_thread_count())
    for function in functions:
        log.info("%s", _line(function, host.url, config.route_prefix))
    host.start()
    log.info("Host started at %s", host.url)
    host.run(stop)
    log.info("Host is stopping")
    if not host.close():
        log.warning("some invocations did not end within %g s and are cut off", GRACE_SECONDS)
    log.info("Host stopped")
    out.flush()
    os._exit(0)  # a thread of a function that hangs must not hold the process


def _functions(python: str, folder: Path, config: HostConfig, log_file: TextIO) -> Sequence[Function]:
    """Return the functions of the app: of Microsoft's worker, or of this process where that is missing."""
    if python or installed():
        levels = config.log_levels
        worker = started(python, folder, levels, log_file) if python else forked(folder, levels, log_file)
        return WorkerClient(worker, folder).functions(os.environ)
    app = import_app(folder)
    os.chdir(folder)
    return functions_of(app, os.environ)


def _thread_count() -> int:
    given = os.environ.get("PYTHON_THREADPOOL_THREAD_COUNT", "8")
    if not given.isdecimal() or int(given) < 1:
        raise ConfigError(f"PYTHON_THREADPOOL_THREAD_COUNT must be a number from 1, not {given!r}")
    return int(given)


def _line(function: Function, url: str, prefix: str) -> str:
    match function.trigger:
        case TimerTrigger(schedule):
            return f"{function.name}: timer, {schedule}"
        case SessionTrigger(queue) | QueueTrigger(queue):
            return f"{function.name}: Service Bus queue {queue}"
        case trigger:
            methods = ",".join(trigger.methods) or "any method"
            return f"{function.name}: [{methods}] {url}/{prefix}/{trigger.route}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m localcloud.functions.host", description=__doc__.partition("\n")[0]
    )
    parser.add_argument(
        "--app", type=Path, default=Path(), help="the folder of function_app.py and host.json"
    )
    parser.add_argument("--settings", type=Path, default=Path("local.settings.json"))
    parser.add_argument("--port", type=int, default=DEFAULT_PORT)
    parser.add_argument("--sign-in", default="", metavar="URL", help="the issuer of the tokens of callers")
    parser.add_argument("--audience", action="append", default=[], help="whom these tokens must be for")
    parser.add_argument(
        "--worker",
        default="",
        metavar="PYTHON",
        help="the Python whose azure-functions-runtime runs the functions; this one, where it has that",
    )
    parser.add_argument("--log-file", type=Path, help="write the log here, not to the terminal")
    parser.add_argument("--stop-with-parent", action="store_true", help="stop when standard input closes")
    return parser


if __name__ == "__main__":
    sys.exit(main())
