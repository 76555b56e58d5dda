"""TLS in front of the local GitHub: real Flux reads from ``https://`` addresses only, as Roadstead asks."""

from __future__ import annotations

from pathlib import Path

import httpx
from werkzeug.wrappers import Request, Response

from localcloud.common.certificates import Authority
from localcloud.common.http_server import HttpServer

_FORWARDED = ("Content-Type", "Content-Encoding", "Git-Protocol", "Authorization", "Accept", "User-Agent")
_RETURNED = ("Content-Type", "Cache-Control", "WWW-Authenticate", "Location")


class GitOverTls:
    """Passes requests at a port on to an address; ``close`` after use.

    While the file ``private`` exists, nobody reads without credentials. The address itself judges those.
    """

    def __init__(self, authority: Authority, target: str, *, port: int, private: Path) -> None:
        self._private = private
        self._client = httpx.Client(base_url=target, trust_env=False, timeout=30)
        self._server = HttpServer(
            Request.application(self._pass_on), port=port, tls=authority.server_context(), threads=4
        )

    def close(self) -> None:
        """Answer no more requests."""
        self._server.close()
        self._client.close()

    def _pass_on(self, request: Request) -> Response:
        if self._private.exists() and "Authorization" not in request.headers:
            return Response(status=401, headers={"WWW-Authenticate": 'Basic realm="git"'})
        headers = {name: request.headers[name] for name in _FORWARDED if name in request.headers}
        reply = self._client.request(
            request.method, request.full_path, headers=headers, content=request.get_data()
        )
        returned = {name: reply.headers[name] for name in _RETURNED if name in reply.headers}
        return Response(reply.content, reply.status_code, returned)
