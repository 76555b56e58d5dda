"""The host's log: one readable line for each record, exceptions with their full traceback.

Levels come from ``logging.logLevel`` of host.json, by category as in Azure: "Function.<name>" for the host's
messages about a function, "Function.<name>.User" for the function's own messages, "Host" for the rest.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import TextIO

from localcloud.functions.host_config import LOG_LEVELS

current_function: ContextVar[str] = ContextVar("current_function", default="")
"""The function whose invocation runs in this thread; empty outside of one."""

HOST = "roadstead.host"
"""The logger of the host itself; ``extra={"function": name}`` for messages about one function."""


def set_up_logging(
    stream: TextIO,
    levels: Mapping[str, str],
    *,
    debug: bool = False,
    running: Callable[[], str] = current_function.get,
) -> logging.Handler:
    """Send every record to the stream; ``debug`` as the worker's PYTHON_ENABLE_DEBUG_LOGGING.

    ``running`` names the function that runs in this thread, "" for none.
    """
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_Line())
    handler.addFilter(_Levels(levels, running))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.DEBUG if debug else logging.INFO)
    return handler


class _Levels(logging.Filter):
    """Names each record's function, and lets it pass when its category's level allows it."""

    def __init__(self, levels: Mapping[str, str], running: Callable[[], str]) -> None:
        super().__init__()
        self._running = running
        self._levels = {name.lower(): LOG_LEVELS[level.lower()] for name, level in levels.items()}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is to be written."""
        by_host = record.name == HOST
        function = getattr(record, "function", "") or self._running()
        record.function = function or "host"
        if not function and not by_host and record.name.startswith("azure."):
            return False  # the host's own Service Bus client: the host logs what happens there
        category = "Host" if not function else f"Function.{function}" + ("" if by_host else ".User")
        return record.levelno >= self._level(category.lower())

    def _level(self, category: str) -> int:
        while category:
            if category in self._levels:
                return self._levels[category]
            category = category.rpartition(".")[0]
        return self._levels.get("default", logging.INFO)


class _Line(logging.Formatter):
    """Writes "12:00:01.123 INFO  resend  message" (UTC)."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s.%(msecs)03d %(levelname)-7s %(function)s  %(message)s", "%H:%M:%S")
        self.converter = time.gmtime
