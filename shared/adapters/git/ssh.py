"""The git protocol over SSH, by paramiko: the server is known before anything is sent to it.

A key of a server that the settings do not have is refused, whether the server is new or its key has changed
(RFC 4251, 4.1: without the association of a name with a key, somebody in between is not noticed). Nothing of
this machine is used: no agent, no files of a user, no configuration. As over HTTPS, an answer ends in time,
and has a size. SSH states no time of the server, so what it says has that of this machine.
"""

from __future__ import annotations

import logging
import shlex
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import datetime
from io import StringIO
from typing import IO, Any, NoReturn, Self
from urllib.parse import unquote, urlsplit

import paramiko
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    load_ssh_private_key,
)
from dulwich.client import FetchPackResult, LsRemoteResult, TraditionalGitClient
from dulwich.protocol import Protocol
from paramiko.hostkeys import HostKeyEntry

from shared.adapters.git import transfer
from shared.adapters.git.transfer import TIMEOUT, GitServer, bounded
from shared.cluster.failures.errors import Dependency, Unauthenticated, Unavailable
from shared.configuration.setting_texts import KNOWN_HOSTS, READING, SSH_KEY, SSH_PORT
from shared.frozen import dataclass

_KINDS = (paramiko.Ed25519Key, paramiko.ECDSAKey, paramiko.RSAKey)
_HASHED = "|1|"
"""How a name begins that known_hosts has as a hash: sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT"."""
_OF_RSA = ("rsa-sha2-512", "rsa-sha2-256")
"""Signatures of a key that known_hosts calls ssh-rsa (RFC 8332)."""


@dataclass(frozen=True)
class _Place:
    """Where a repository is: the server with its port, the user there, and the path on it."""

    host: str
    port: int
    user: str
    path: str

    @classmethod
    def of(cls, url: str) -> _Place:
        parts = urlsplit(url)
        path = unquote(parts.path).removeprefix("/~/")
        return cls(parts.hostname or "", parts.port or SSH_PORT, parts.username or "", path)

    @property
    def known_as(self) -> str:
        """The server as known_hosts names it."""
        return self.host if self.port == SSH_PORT else f"[{self.host}]:{self.port}"


class SshGitServer(GitServer, TraditionalGitClient):
    """One repository of a git server over SSH; a command is a connection.

    ``key`` is the private key of a deploy key or a user, without a passphrase; ``known_hosts`` has the keys
    of the server in the format of OpenSSH. ``clock`` is the time of an answer. The code of an error is the
    setting that is wrong, or READING where the server refuses the key.
    """

    credential = SSH_KEY

    def __init__(self, url: str, key: str, known_hosts: str, *, clock: Callable[[], datetime]) -> None:
        super().__init__(quiet=True)
        self._place, self._secret, self._known, self._clock = _Place.of(url), key, known_hosts, clock
        self.path = self._place.path
        self._protocol: Protocol | None = None
        logging.getLogger("paramiko").setLevel(logging.CRITICAL)  # what goes wrong is an error of ours

    def at(self, url: str) -> Self:
        """Return the repository at another address of the server, with the same credential."""
        return type(self)(url, self._secret, self._known, clock=self._clock)

    def get_refs(self, *given: Any, **named: Any) -> LsRemoteResult:
        """Return the references; dulwich leaves the connection open where it does not understand."""
        with closing(self):
            return super().get_refs(*given, **named)

    def fetch_pack(self, *given: Any, **named: Any) -> FetchPackResult:
        """Bring a pack; dulwich leaves the connection open where it does not understand."""
        with closing(self):
            return super().fetch_pack(*given, **named)

    def close(self) -> None:
        """End the connection."""
        if self._protocol is not None:
            self._protocol.close()

    def _connect(
        self,
        cmd: bytes,
        path: str | bytes,
        protocol_version: int | None = None,  # noqa: ARG002 - the server says it
    ) -> tuple[Protocol, Callable[[], bool], IO[bytes] | None]:
        """Run a command of git on the server; raise what a refusal means."""
        until = time.monotonic() + transfer.MOST_SECONDS
        name = path.decode() if isinstance(path, bytes) else path
        client = paramiko.SSHClient()
        try:
            channel = self._opened(client, f"git-{cmd.decode()} {shlex.quote(name)}")
        except BaseException:
            client.close()
            raise
        self.said_at = self._clock()
        read = bounded(_answer(channel), until)
        self._protocol = Protocol(read, channel.sendall, client.close)
        return self._protocol, channel.recv_ready, None

    def _opened(self, client: paramiko.SSHClient, command: str) -> paramiko.Channel:
        try:
            channel = self._signed_in(client).open_session(timeout=TIMEOUT)
            channel.settimeout(TIMEOUT)
            channel.set_environment_variable("GIT_PROTOCOL", "version=2")  # fewer references, if it takes it
            channel.exec_command(command)
        except paramiko.AuthenticationException:
            raise Unauthenticated(
                f"{self._place.host} refuses the key of GIT_SSH_KEY for the user {self._place.user}: let its "
                "public half read the repository there, or set GIT_SSH_KEY, and deploy",
                code=READING,
            ) from None
        except (paramiko.SSHException, EOFError) as error:
            raise Unavailable(f"the git server does not speak SSH as we do: {type(error).__name__}") from None
        return channel

    def _signed_in(self, client: paramiko.SSHClient) -> paramiko.Transport:
        place, known = self._place, self._keys_of_server()
        client.set_missing_host_key_policy(_KnownHostsOnly(place.known_as, known))
        with transfer.git_errors():
            client.connect(
                *(place.host, place.port, place.user),
                pkey=_private_key(self._secret),
                allow_agent=False,
                look_for_keys=False,
                timeout=TIMEOUT,
                banner_timeout=TIMEOUT,
                auth_timeout=TIMEOUT,
                channel_timeout=TIMEOUT,
                transport_factory=_preferring([key.get_name() for key in known]),
            )
        transport = client.get_transport()
        if transport is None:
            raise paramiko.SSHException
        return transport

    def _keys_of_server(self) -> Sequence[paramiko.PKey]:
        """Return the keys that the settings have for the server."""
        found = []
        for number, line in enumerate(self._known.splitlines(), 1):
            try:
                entry = (
                    HostKeyEntry.from_line(line.strip(), number)
                    if line.strip()[:1] not in ("", "#")
                    else None
                )
            except (paramiko.SSHException, ValueError):
                what = f"GIT_KNOWN_HOSTS: line {number} has no key that can be read"
                raise Unauthenticated(what, code=KNOWN_HOSTS) from None
            if entry is not None and any(
                _names(name, self._place.known_as) for name in entry.hostnames or ()
            ):
                found.append(entry.key)
        return found


class _KnownHostsOnly(paramiko.MissingHostKeyPolicy):
    """Accepts a server whose key the settings have, and no other; paramiko asks it before it signs in."""

    def __init__(self, server: str, known: Sequence[paramiko.PKey]) -> None:
        self._server, self._known = server, known

    def missing_host_key(self, _client: paramiko.SSHClient, _hostname: str, key: paramiko.PKey) -> None:
        """Raise Unauthenticated for a key that is not known; the client knows none by itself."""
        if key not in self._known:
            self._refuse(f"{key.get_name()} {key.fingerprint}")

    def _refuse(self, shown: str) -> NoReturn:
        if not self._known:
            what = f"GIT_KNOWN_HOSTS has no key of {self._server}, which shows {shown}"
        else:
            what = (
                f"{self._server} shows another key than GIT_KNOWN_HOSTS has, {shown}: it has a new one, or "
            )
            what += "somebody is in between"
        raise Unauthenticated(
            f"{what}; nothing was sent to it. Compare the key with what the owner of the server publishes, "
            "then set GIT_KNOWN_HOSTS, and deploy",
            code=KNOWN_HOSTS,
        )


def _names(pattern: str, server: str) -> bool:
    if pattern.startswith(_HASHED):
        return paramiko.HostKeys.hash_host(server, pattern) == pattern
    return pattern.lower() == server


def _preferring(kinds: Sequence[str]) -> Any:
    """Return what makes a transport that asks a server for a key of a kind that is known, if it has one."""
    names = [name for kind in kinds for name in (_OF_RSA if kind == "ssh-rsa" else (kind,))]

    def transport(sock: socket.socket, **given: Any) -> paramiko.Transport:
        made = paramiko.Transport(sock, **given)
        options = made.get_security_options()
        usual = options.key_types
        known = [name for name in dict.fromkeys(names) if name in usual]
        options.key_types = [*known, *(name for name in usual if name not in known)]
        return made

    return transport


def _private_key(text: str) -> paramiko.PKey:
    """Return the key of a text; paramiko reads the form of OpenSSH alone, of which it knows three kinds."""
    load = load_ssh_private_key if "BEGIN OPENSSH" in text else load_pem_private_key
    try:
        written = load(text.encode(), None).private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    except TypeError:  # so cryptography says that a password is missing
        what = "GIT_SSH_KEY has a passphrase: it must have none"
        raise Unauthenticated(what, code=SSH_KEY) from None
    except (ValueError, UnsupportedAlgorithm):
        raise _no_key() from None
    for kind in _KINDS:
        try:
            return kind.from_private_key(StringIO(written.decode()))
        except paramiko.SSHException:
            continue
    raise _no_key()


def _no_key() -> Unauthenticated:
    what = "GIT_SSH_KEY is no private key of Ed25519, ECDSA or RSA that can be read"
    return Unauthenticated(what, code=SSH_KEY)


def _answer(channel: paramiko.Channel) -> Callable[[int], bytes]:
    """Return what reads the next bytes of a command; it raises Dependency where nothing was said."""
    answered = False

    def some(count: int) -> bytes:
        nonlocal answered
        data = channel.recv(count)
        if not data and not answered:
            channel.status_event.wait(TIMEOUT)
            if channel.exit_status > 0:
                raise Dependency(
                    "there is no such repository, or the key does not see it: git ended with the status "
                    f"{channel.exit_status} before it said anything",
                    code=READING,
                )
        answered = True
        return data

    return some
