"""Git repositories over SSH, whose server is known before anything is sent to it.

Messages are those of the real ``fluxcd/source-controller`` v1.7.3, which tests/localcloud/recorded has.
What was fetched stays here, and is read only after the server has let the key of a source in again.
"""

from __future__ import annotations

import shlex
import stat
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from io import StringIO
from typing import Any, NoReturn
from urllib.parse import SplitResult, urlsplit

import paramiko
from dulwich.client import TraditionalGitClient
from dulwich.errors import GitProtocolError, HangupException, NotGitRepository
from dulwich.graph import can_fast_forward
from dulwich.object_store import iter_tree_contents, peel_sha
from dulwich.objects import valid_hexsha
from dulwich.protocol import Protocol
from dulwich.repo import Repo
from paramiko.hostkeys import HostKeyEntry, InvalidHostKey

from localcloud.flux.flux_conditions import ObjectNotReady

_SECONDS = 15.0
_KINDS = (paramiko.Ed25519Key, paramiko.ECDSAKey, paramiko.RSAKey)
_lock = threading.Lock()


class SshRefusal(Exception):
    """What the controller says of a clone that failed."""


class SshRepository:
    """The repository at an address, read with the data of a Secret; raises what that lacks."""

    def __init__(self, url: str, secret: Mapping[str, str]) -> None:
        for name in ("identity", "known_hosts"):
            if not secret.get(name):
                why = f"invalid 'ssh' auth option: '{name}' is required"
                raise ObjectNotReady(
                    "AuthenticationFailed", f"failed to configure authentication options: {why}"
                )
        self._place, self._key = _place(url), _private_key(secret["identity"], secret.get("password"))
        self._known = _known_hosts(secret["known_hosts"])
        self._refs: Mapping[str, str] = {}
        self._repo = _folder(url)

    def fetch(self) -> None:
        """Bring what is new of all references; raise SshRefusal, NotGitRepository where there is none."""
        client = _Client(self._place, self._key, self._known)
        with _said(f"{self._place.hostname}:{self._place.port or 22}"), _lock:
            try:
                refs = client.fetch(self._place.path, self._repo).refs
            finally:
                if client.opened:
                    client.opened.close()
        store = self._repo.object_store
        self._refs = {
            ref.decode(): peel_sha(store, found)[1].id.decode() for ref, found in refs.items() if found
        }

    def target(self, ref: str) -> str:
        """Return the commit that a reference points to, "" when there is none."""
        return self._refs.get(ref, "")

    def heads(self) -> Mapping[str, str]:
        """Return every branch with its commit."""
        return {ref: commit for ref, commit in self._refs.items() if ref.startswith("refs/heads/")}

    def is_descendant(self, commit: str, earlier: str) -> bool:
        """Return whether a commit comes after another, or is it."""
        first: Any = earlier.encode()
        last: Any = commit.encode()
        is_known = valid_hexsha(first) and first in self._repo.object_store
        return is_known and can_fast_forward(self._repo, first, last)

    def files(self, commit: str) -> Mapping[str, bytes]:
        """Return the plain files of a commit."""
        store: Any = self._repo.object_store
        entries = iter_tree_contents(store, store[commit.encode()].tree)
        plain = (entry for entry in entries if stat.S_ISREG(entry.mode or 0))
        return {(entry.path or b"").decode(errors="replace"): store[entry.sha].data for entry in plain}


class _Client(TraditionalGitClient):
    """Runs the commands of git on a server that known_hosts names; ``opened`` is to be closed."""

    opened: Protocol | None = None

    def __init__(self, place: SplitResult, key: paramiko.PKey, known: paramiko.HostKeys) -> None:
        super().__init__(quiet=True)
        self._place, self._key, self._known = place, key, known

    def _connect(self, cmd: bytes, path: Any, protocol_version: int | None = None) -> Any:  # noqa: ARG002
        client, place = paramiko.SSHClient(), self._place
        client.get_host_keys().update(self._known)
        client.set_missing_host_key_policy(_UnknownHosts())
        client.connect(
            *(place.hostname or "", place.port or 22, place.username or "git"),
            pkey=self._key,
            allow_agent=False,
            look_for_keys=False,
            timeout=_SECONDS,
        )
        channel = client.get_transport().open_session(timeout=_SECONDS)  # type: ignore[union-attr]
        channel.settimeout(_SECONDS)
        channel.exec_command(f"git-{cmd.decode()} {shlex.quote(path)}")

        def read(count: int) -> bytes:
            found = bytearray()
            while len(found) < count and (data := channel.recv(count - len(found))):
                found += data
            return bytes(found)

        self.opened = Protocol(read, channel.sendall, client.close)
        return self.opened, channel.recv_ready, None


class _UnknownHosts(paramiko.MissingHostKeyPolicy):
    def missing_host_key(self, *_: object) -> NoReturn:
        raise SshRefusal("ssh: handshake failed: knownhosts: key is unknown")


@contextmanager
def _said(address: str) -> Iterator[None]:
    """Raise SshRefusal with what the controller says."""
    try:
        yield
    except paramiko.BadHostKeyException:
        raise SshRefusal("ssh: handshake failed: knownhosts: key mismatch") from None
    except paramiko.AuthenticationException:
        methods = "attempted methods [none publickey], no supported methods remain"
        raise SshRefusal(f"ssh: handshake failed: ssh: unable to authenticate, {methods}") from None
    except HangupException:
        raise NotGitRepository from None
    except GitProtocolError as error:
        raise SshRefusal(str(error)) from None
    except paramiko.ssh_exception.NoValidConnectionsError:
        raise SshRefusal(f"dial tcp {address}: connect: connection refused") from None
    except (paramiko.SSHException, OSError) as error:
        raise SshRefusal(f"ssh: handshake failed: {error}") from None


@cache
def _folder(_url: str) -> Repo:
    """Return the folder of an address, for the life of this process."""
    return Repo.init_bare(tempfile.mkdtemp(prefix="local-flux-"))


def _place(url: str) -> SplitResult:
    try:
        place = urlsplit(url)
        _ = place.port
    except ValueError as error:
        raise ObjectNotReady("URLInvalid", f"failed to parse url '{url}': {error}") from None
    return place


def _private_key(text: str, password: str | None) -> paramiko.PKey:
    for kind in _KINDS:
        try:
            return kind.from_private_key(StringIO(text), password)
        except paramiko.PasswordRequiredException:
            raise _unusable("bcrypt_pbkdf: empty password") from None
        except (paramiko.SSHException, ValueError):
            continue
    raise _unusable("ssh: no key found")


def _known_hosts(text: str) -> paramiko.HostKeys:
    known = paramiko.HostKeys()
    for line in filter(None, map(str.strip, text.splitlines())):
        try:
            entry = None if line.startswith("#") else HostKeyEntry.from_line(line)
        except (InvalidHostKey, paramiko.SSHException):
            raise _unusable("knownhosts: a key of it cannot be read") from None
        if entry is None and not line.startswith("#"):
            raise _unusable("knownhosts: knownhosts: missing host pattern")
        for name in (entry.hostnames or ()) if entry else ():
            known.add(name, entry.key.get_name(), entry.key)  # type: ignore[union-attr]
    return known


def _unusable(why: str) -> ObjectNotReady:
    text = f"failed to checkout and determine revision: unable to construct auth method with options: {why}"
    return ObjectNotReady("GitOperationFailed", text)
