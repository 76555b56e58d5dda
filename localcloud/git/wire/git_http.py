"""Git over HTTP: ``git http-backend`` speaks the protocol, this file passes the bytes.

No credential is needed here, also to push, so that a plain ``git clone`` works; a wrong one is refused.
Bodies go through temporary files, so a large push or clone takes no memory.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from shutil import copyfileobj
from typing import IO, Protocol

from werkzeug.datastructures import Headers
from werkzeug.wrappers import Request, Response
from werkzeug.wsgi import wrap_file

from localcloud.git.wire.repository_folder import RepositoryStore
from localcloud.git.world import repository_history as history
from localcloud.git.world.git_commands import TIMEOUT, git_environment
from localcloud.git.world.git_repository import GitRepository
from localcloud.git.world.ref_changes import Refs
from shared.ports import Clock


class GitRefused(Exception):
    """An answer that is not a success."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, dict(headers or {})


class GitSignIn(Protocol):
    """Decides who may speak git."""

    def check_basic(self, authorization: str) -> None:
        """Let a call with this header pass, or raise GitRefused."""
        ...


class OneToken:
    """Admits git without a password, and with one token, which may have an end."""

    def __init__(self, token: str, clock: Clock) -> None:
        self._token, self._clock = token, clock
        self.token_expires: datetime | None = None
        """When the token ends, None for never."""

    def check_basic(self, authorization: str) -> None:
        """Let a git call pass: with no password at all, or with a valid token."""
        scheme, _, encoded = authorization.partition(" ")
        if not authorization:
            return
        try:
            password = base64.b64decode(encoded).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            password = ""
        if scheme.lower() != "basic" or not self.accepts(password):
            raise GitRefused(401, "Invalid username or token.", {"WWW-Authenticate": 'Basic realm="Git"'})

    def is_token(self, secret: str) -> bool:
        """Return whether a token is the configured one, expired or not."""
        return hmac.compare_digest(secret.encode(), self._token.encode())

    def accepts(self, secret: str) -> bool:
        """Return whether a token is the configured one, and has not expired."""
        return self.is_token(secret) and (self.token_expires is None or self._clock() < self.token_expires)


@dataclass(frozen=True)
class ReceivedPush:
    """A push: the repository, its name, the address of the server, and its refs before and after."""

    repository: GitRepository
    full_name: str
    base: str
    before: Refs
    after: Refs


Pushed = Callable[[ReceivedPush], None]


class SmartHttp:
    """Serves clone, fetch and push, and calls ``pushed`` for every push that changed a ref."""

    def __init__(self, store: RepositoryStore, credentials: GitSignIn, pushed: Pushed) -> None:
        self._store, self._credentials, self._pushed = store, credentials, pushed

    def answer(self, request: Request, full_name: str, rest: str) -> Response:
        """Answer one request below "owner/name.git/"."""
        self._credentials.check_basic(request.headers.get("Authorization", ""))
        repository = self._store.find(full_name)
        if repository is None:
            raise GitRefused(404, "Not Found")
        if rest != "git-receive-pack":
            return self._run(request, full_name, rest)
        with self._store.push_lock(full_name):
            before = history.refs(repository.path)
            reply = self._run(request, full_name, rest)
            after = history.refs(repository.path)
        if before != after:
            self._pushed(ReceivedPush(repository, full_name, request.host_url.rstrip("/"), before, after))
        return reply

    def _run(self, request: Request, full_name: str, rest: str) -> Response:
        """Run the CGI program and return its answer."""
        with tempfile.TemporaryFile() as body, ExitStack() as stack:
            copyfileobj(request.environ["wsgi.input"], body, 1 << 16)
            length = body.tell()
            body.seek(0)
            output = stack.enter_context(tempfile.TemporaryFile())
            try:
                subprocess.run(
                    ["git", "http-backend"],
                    stdin=body,
                    stdout=output,
                    stderr=subprocess.DEVNULL,
                    env=self._environment(request, f"/{full_name}.git/{rest}", length),
                    timeout=TIMEOUT,
                    check=True,
                )
            except (subprocess.SubprocessError, OSError) as error:
                raise GitRefused(500, "git http-backend failed") from error
            output.seek(0)
            status, headers = _cgi_head(output)
            stack.pop_all()  # the reply closes the file
        content = wrap_file(request.environ, output, 1 << 16)
        return Response(content, status, headers, direct_passthrough=True)

    def _environment(self, request: Request, path: str, length: int) -> dict[str, str]:
        """Return the CGI variables (RFC 3875) and those of ``git http-backend``."""
        return {
            **git_environment(),
            "GIT_PROJECT_ROOT": str(self._store.root.resolve()),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_PROTOCOL": request.headers.get("Git-Protocol", ""),
            "PATH_INFO": path,
            "QUERY_STRING": request.query_string.decode(),
            "REQUEST_METHOD": request.method,
            "REMOTE_ADDR": "127.0.0.1",
            "REMOTE_USER": "operator",
            "CONTENT_TYPE": request.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(length),
            "HTTP_CONTENT_ENCODING": request.headers.get("Content-Encoding", ""),
        }


def _cgi_head(output: IO[bytes]) -> tuple[str, Headers]:
    """Read the head of a CGI answer; what follows in the file is the body."""
    status, headers = "200 OK", Headers()
    while line := output.readline().strip().decode("latin-1"):
        name, _, value = line.partition(":")
        if name.lower() == "status":
            status = value.strip()
        else:
            headers.add(name, value.strip())
    return status, headers
