"""Says once that a service is away, once that it is back, and how long to wait between two tries."""

from __future__ import annotations

import logging
import threading

from localcloud.functions.host_logs import HOST

log = logging.getLogger(HOST)

_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 5.0


class Outage:
    """Shared by the threads that use the service for one function."""

    def __init__(self, function: str, service: str) -> None:
        self._extra = {"function": function}
        self._service = service
        self._lock = threading.Lock()
        self._pause = 0.0

    def begin(self, error: Exception) -> float:
        """Note a failure; return the seconds to wait before the next try."""
        with self._lock:
            if not self._pause:
                said = " ".join(str(error).split())[:200]
                log.warning("%s does not answer (%s); trying again", self._service, said, extra=self._extra)
            self._pause = min(_LONGEST_PAUSE, max(_FIRST_PAUSE, self._pause * 2))
            return self._pause

    def over(self) -> None:
        """Note that the service answers."""
        with self._lock:
            if self._pause:
                log.info("%s answers again", self._service, extra=self._extra)
            self._pause = 0.0
