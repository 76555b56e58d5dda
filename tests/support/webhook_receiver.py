"""A receiver of webhooks on a socket."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from werkzeug.wrappers import Request, Response

from tests.support.waiting import until

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


@dataclass
class Receiver:
    """Remembers what the webhook sends, and answers with ``status``."""

    status: int = 202
    seen: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    def app(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        request = Request(environ)
        self.seen.append(({k.lower(): v for k, v in request.headers.items()}, request.get_data()))
        return Response("taken", self.status)(environ, start_response)

    def events(self, number: int) -> Sequence[dict[str, Any]]:
        until(lambda: len(self.seen) >= number)
        return [json.loads(body) for _, body in self.seen]
