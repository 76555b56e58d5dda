"""What every HTTP service of the local cloud is: an application behind a front door, at a loopback port."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Self

from werkzeug.wrappers import Request, Response

from localcloud.common.certificates import Authority
from localcloud.common.clock import system_clock
from localcloud.common.front_door import FrontDoor
from localcloud.common.http_server import HttpServer


class LocalService:
    """Answers until it is closed; a context manager. Port 0 takes a free one.

    ``door`` has its requests and its faults; with an ``authority`` it speaks TLS.
    """

    def __init__(
        self,
        answer: Callable[[Request], Response],
        name: str,
        *,
        authority: Authority | None = None,
        port: int = 0,
        log_file: Path | None = None,
        clock: Callable[[], datetime] = system_clock,
    ) -> None:
        self.door = FrontDoor(Request.application(answer), name, log_file=log_file, clock=clock)
        tls = None if authority is None else authority.server_context()
        self._http = HttpServer(self.door, port=port, tls=tls)
        self.port, self.url = self._http.port, self._http.url

    def close(self) -> None:
        """Stop serving."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
