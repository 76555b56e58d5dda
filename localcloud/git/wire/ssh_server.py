"""A git server over SSH, as a bare one is: OpenSSH's authorized key, and ``git upload-pack`` behind it.

asyncssh speaks the protocol, which production speaks with paramiko; git itself answers. The key is a deploy
key: it reads, and pushes nothing.
"""

from __future__ import annotations

import asyncio
import shlex
import threading
from asyncio.subprocess import DEVNULL, PIPE
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Self

import asyncssh

from localcloud.git.world.git_commands import git_environment

USER = "git"
_START_SECONDS = 10.0
_CHUNK = 1 << 16


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """Return the loop of all servers, in a thread that goes with the process."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    return loop


class GitOverSsh:
    """Serves the bare repositories at ``root/owner/name.git``; a context manager.

    ``host_key`` is the private key of the server, and ``authorized`` the public one that may read. An
    ``old`` server exchanges keys by SHA-1 alone.
    """

    def __init__(
        self, root: Path, host_key: str, authorized: str, *, port: int = 0, old: bool = False
    ) -> None:
        self._root, self._authorized, self._wanted = root.resolve(), authorized, port
        self._host_key = asyncssh.import_private_key(host_key)
        self._exchanges = ["diffie-hellman-group1-sha1"] if old else ()
        self._transports: list[asyncio.Transport | None] = []

    @property
    def known_hosts(self) -> str:
        """The line of known_hosts with the key of this server."""
        return known_hosts(self._host_key.export_private_key().decode(), self.port)

    def url(self, full_name: str) -> str:
        """Return the address of a repository."""
        return f"ssh://{USER}@127.0.0.1:{self.port}/{full_name}.git"

    def __enter__(self) -> Self:
        self._server = asyncio.run_coroutine_threadsafe(self._listen(), _loop()).result(_START_SECONDS)
        self.port = self._server.get_port()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), _loop()).result(_START_SECONDS)

    async def _listen(self) -> asyncssh.SSHAcceptor:
        return await asyncssh.listen(
            *("127.0.0.1", self._wanted),
            server_host_keys=[self._host_key],
            kex_algs=self._exchanges,
            authorized_client_keys=asyncssh.import_authorized_keys(self._authorized),
            server_factory=lambda: _OpenConnections(self._transports),
            process_factory=self._serve,
            encoding=None,
        )

    async def _end(self) -> None:
        self._server.close()
        await self._server.wait_closed()
        for transport in filter(None, self._transports):
            transport.abort()

    async def _serve(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        program, _, argument = (process.command or "").partition(" ")
        path = self._repository(" ".join(shlex.split(argument)))
        if program != "git-upload-pack":
            process.stderr.write(b"ERROR: this key may read, and nothing else.\n")
            process.exit(1)
        elif path is None:
            process.stderr.write(f"fatal: {argument} does not appear to be a git repository\n".encode())
            process.exit(128)
        else:
            await _run(process, path)

    def _repository(self, name: str) -> Path | None:
        path = (self._root / name.lstrip("/")).resolve()
        ending = path.parent / f"{path.name}.git"  # git tries it by itself: git-upload-pack(1), --strict
        own = (place.resolve() for place in (path, ending))
        return next((p for p in own if p.is_relative_to(self._root) and (p / "HEAD").is_file()), None)


class _OpenConnections(asyncssh.SSHServer):
    """Keeps the transport of each connection: asyncssh drops some that are open, as clients leave."""

    def __init__(self, transports: list[asyncio.Transport | None]) -> None:
        self._transports = transports

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._transports.append(conn._transport)


async def _run(process: asyncssh.SSHServerProcess[bytes], path: Path) -> None:
    environment = {**git_environment(), "GIT_PROTOCOL": process.env.get("GIT_PROTOCOL", "")}
    git = await asyncio.create_subprocess_exec(
        *("git", "upload-pack", str(path)), env=environment, stdin=PIPE, stdout=PIPE, stderr=DEVNULL
    )
    assert git.stdin is not None  # noqa: S101 - pipes
    assert git.stdout is not None  # noqa: S101
    asked = asyncio.create_task(_copied(process.stdin, git.stdin))
    await _copied(git.stdout, process.stdout)
    process.exit(await git.wait())
    asked.cancel()


async def _copied(source: Any, target: Any) -> None:
    """Copy what comes, until nothing does or nobody takes it."""
    with suppress(OSError, asyncssh.Error):
        while data := await source.read(_CHUNK):
            target.write(data)
            await target.drain()
        target.write_eof()


def new_key() -> str:
    """Return a new private key, as OpenSSH writes it."""
    return asyncssh.generate_private_key("ssh-ed25519").export_private_key().decode()


def public_key(private: str) -> str:
    """Return the public half of a private key, as a line of authorized_keys."""
    return asyncssh.import_private_key(private).export_public_key().decode().strip()


def known_hosts(host_key: str, port: int) -> str:
    """Return the line of known_hosts for a server of this machine with that private key."""
    return f"[127.0.0.1]:{port} {public_key(host_key)}"
