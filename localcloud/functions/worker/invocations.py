"""Runs invocations: on one pool of threads, several at once, as many as the Python worker has.

Each is logged when it ends, as "Executed 'Functions.name' (Succeeded, 12 ms)", a failure with its traceback.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from localcloud.common.thread_names import name_thread
from localcloud.functions.host_logs import HOST, current_function
from localcloud.functions.worker.function_index import Function, HttpReply, Input

log = logging.getLogger(HOST)


class Closed(Exception):
    """The host is stopping and takes no more work."""


class FailedElsewhere(Exception):
    """A function failed in another process; the text is its traceback there."""


@dataclass(frozen=True)
class Outcome:
    """How an invocation ended; ``reply`` is what an HTTP function returned, None when it failed."""

    succeeded: bool
    reply: HttpReply | None = None


@dataclass(eq=False)
class _Invocation:
    """One run of a function."""

    function: Function
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    started: float | None = None
    warned: bool = False


class Invoker:
    """The pool; ``timeout`` in seconds, None for none. Close it with ``close``."""

    def __init__(self, *, threads: int, timeout: float | None = None) -> None:
        self._pool = ThreadPoolExecutor(
            threads, thread_name_prefix="function", initializer=name_thread, initargs=("function",)
        )
        self._timeout = timeout
        self._lock = threading.Lock()
        self._closed = False
        self._running: dict[Future[Outcome], _Invocation] = {}

    def submit(self, function: Function, given: Input) -> Future[Outcome]:
        """Start an invocation; its end is already logged when the future is done.

        Raise Closed when the host is stopping; the future is cancelled when that happens before the function
        started.
        """
        invocation = _Invocation(function)
        with self._lock:
            if self._closed:
                raise Closed
            future = self._pool.submit(self._run, invocation, given)
            self._running[future] = invocation
        future.add_done_callback(self._forget)
        return future

    def report_overdue(self) -> None:
        """Log an error, once, for each invocation that runs longer than the host's functionTimeout."""
        if self._timeout is None:
            return
        with self._lock:
            invocations = list(self._running.values())
        for invocation in invocations:
            if (
                invocation.started is None
                or invocation.warned
                or time.monotonic() - invocation.started < self._timeout
            ):
                continue
            invocation.warned = True
            log.error(
                "Timeout value of %g s exceeded by 'Functions.%s' (id %s); Azure would end the worker here",
                self._timeout,
                invocation.function.name,
                invocation.id,
                extra={"function": invocation.function.name},
            )

    def close(self, seconds: float) -> bool:
        """Take no more work and wait for what runs; return whether all of it ended in time."""
        with self._lock:
            self._closed = True
            running = list(self._running)
        self._pool.shutdown(wait=False, cancel_futures=True)
        return not wait(running, timeout=seconds).not_done

    def _forget(self, future: Future[Outcome]) -> None:
        with self._lock:
            self._running.pop(future, None)

    def _run(self, invocation: _Invocation, given: Input) -> Outcome:
        function = invocation.function
        invocation.started = started_at = time.monotonic()
        token = current_function.set(function.name)
        try:
            outcome = Outcome(True, function.run(given, invocation.id))
        except FailedElsewhere as error:
            elapsed = (time.monotonic() - started_at) * 1000
            log.error("Executed 'Functions.%s' (Failed, %d ms)\n%s", function.name, elapsed, error)  # noqa: TRY400
            return Outcome(False)
        except Exception:
            elapsed = (time.monotonic() - started_at) * 1000
            log.exception("Executed 'Functions.%s' (Failed, %d ms)", function.name, elapsed)
            return Outcome(False)
        else:
            elapsed = (time.monotonic() - started_at) * 1000
            log.info("Executed 'Functions.%s' (Succeeded, %d ms)", function.name, elapsed)
            return outcome
        finally:
            current_function.reset(token)
