"""A git server over SSH: it is known before anything is sent, and what is wrong says who acts."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread

import asyncssh
import paramiko
import pytest

from localcloud.git.wire.ssh_server import GitOverSsh, new_key, public_key
from localcloud.git.world.git_repository import GitRepository
from localcloud.memory.memory_cloud import MemoryCloud
from shared.adapters.git import GitServerHost, transfer
from shared.adapters.git.ssh import SshGitServer
from shared.app.examination import examine
from shared.cluster.failures.errors import Dependency, ReconcileError, Unauthenticated, Unavailable

pytestmark = pytest.mark.lives

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY, HOST_KEY, OTHER = new_key(), new_key(), new_key()


@dataclass
class Served:
    """A repository on a server, and what reads it with a key and known hosts."""

    server: GitOverSsh
    git: GitRepository

    @contextmanager
    def read(
        self, *, key: str = KEY, known: str | None = None, name: str = "acme/fleet"
    ) -> Iterator[GitServerHost]:
        lines = self.server.known_hosts if known is None else known
        url = self.server.url(name)
        host = GitServerHost(url, server=SshGitServer(url, key, lines, clock=lambda: NOW))
        yield host
        host.close()

    def refused(self, kind: type[ReconcileError], **given: str) -> str:
        """Return the message of a read that fails so."""
        with self.read(**given) as host, pytest.raises(kind) as error:
            host.read_head("main")
        assert type(error.value) is kind
        return str(error.value)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with (
        GitOverSsh(tmp_path, HOST_KEY, public_key(KEY)) as server,
        GitRepository.create(tmp_path / "acme" / "fleet.git") as git,
    ):
        yield Served(server, git)


def test_a_head_has_the_time_of_this_machine_since_ssh_states_none(served: Served) -> None:
    commit = served.git.commit({"a.yaml": b"1"})
    with served.read() as host:
        head = host.read_head("main")
    assert (head.commit, head.at) == (commit, NOW)


def test_a_server_that_nobody_knows_is_not_asked_and_a_person_compares_its_key(served: Served) -> None:
    served.git.commit({"a.yaml": b"1"})
    for known in ("", f"git.example.com {public_key(HOST_KEY)}", f"127.0.0.1 {public_key(HOST_KEY)}"):
        message = served.refused(Unauthenticated, known=known)
        assert f"no key of [127.0.0.1]:{served.server.port}, which shows ssh-ed25519 SHA256:" in message
        assert message.endswith("then set GIT_KNOWN_HOSTS, and deploy")


def test_a_server_whose_key_has_changed_is_not_asked(served: Served) -> None:
    served.git.commit({"a.yaml": b"1"})
    other = served.server.known_hosts.replace(public_key(HOST_KEY), public_key(OTHER))
    assert "somebody is in between; nothing was sent" in served.refused(Unauthenticated, known=other)
    with served.read(known=f"{other}\n# both, while it is replaced\n{served.server.known_hosts}") as host:
        host.read_head("main")


def test_a_name_may_be_hashed_and_one_of_several(served: Served) -> None:
    served.git.commit({"a.yaml": b"1"})
    name, _, key = served.server.known_hosts.partition(" ")
    for names in (paramiko.HostKeys.hash_host(name), f"git.example.com,{name}"):
        with served.read(known=f"{names} {key}") as host:
            host.read_head("main")


@pytest.mark.parametrize("kind", ["ssh-rsa", "ecdsa-sha2-nistp256"])
def test_keys_of_other_kinds_are_read_and_the_known_kind_of_a_server_is_asked_for(
    tmp_path: Path, kind: str
) -> None:
    key = asyncssh.generate_private_key(kind).export_private_key("pkcs8-pem").decode()
    with (
        GitOverSsh(tmp_path, key, public_key(key)) as server,
        GitRepository.create(tmp_path / "acme" / "fleet.git") as git,
    ):
        git.commit({"a.yaml": b"1"})
        with Served(server, git).read(key=key) as host:
            host.read_head("main")


def test_a_key_that_may_not_read_or_is_none_says_so_and_is_never_shown(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    served.git.commit({"a.yaml": b"1"})
    locked = asyncssh.import_private_key(KEY).export_private_key(passphrase="a passphrase").decode()
    with caplog.at_level(logging.DEBUG):
        messages = [served.refused(Unauthenticated, key=key) for key in (OTHER, locked, "no key")]
    assert "127.0.0.1 refuses the key of GIT_SSH_KEY for the user git" in messages[0]
    assert "has a passphrase" in messages[1]
    assert "no private key" in messages[2]
    secret = [line for key in (OTHER, locked) for line in key.splitlines() if not line.startswith("-----")]
    said = caplog.text + "".join(messages)
    assert not [line for line in secret if line in said]


def test_an_app_that_examines_itself_says_what_of_ssh_is_wrong_and_what_mends_it(served: Served) -> None:
    served.git.commit({"a.yaml": b"1"})
    wrong: list[tuple[dict[str, str], str, str]] = [
        ({"key": "no key"}, "GIT_SSH_KEY", "without a passphrase into the secret git-ssh-key"),
        ({"known": ""}, "GIT_KNOWN_HOSTS", "the parameter gitKnownHosts"),
        ({"known": served.server.known_hosts.split()[0]}, "GIT_KNOWN_HOSTS", "the parameter gitKnownHosts"),
        ({"key": OTHER}, "right to read over SSH", "ssh-keygen -y"),
        ({"name": "acme/other"}, "right to read over SSH", "ssh-keygen -y"),
        ({}, "", ""),
    ]
    for given, what, remedy in wrong:
        with served.read(**given) as host:
            ports = replace(MemoryCloud().ports, git_host=host)
            examine("deleter", ports)
        findings = next(iter(ports.state.examinations())).findings
        assert [finding.what for finding in findings] == [what] * bool(what)
        assert all(remedy in finding.remedy for finding in findings)


def test_a_repository_that_is_not_there_is_a_dependency(served: Served) -> None:
    assert "there is no such repository" in served.refused(Dependency, name="acme/other")
    assert "no branch main" in served.refused(Dependency)


def test_another_repository_of_the_server_is_read_with_the_same_key(served: Served, tmp_path: Path) -> None:
    served.git.commit({"a.yaml": b"1"})
    with GitRepository.create(tmp_path / "acme" / "other.git") as other, served.read() as host:
        commit = other.commit({"b.yaml": b"2"})
        assert host.other("acme/other").read_head("main").commit == commit


def test_a_server_that_is_away_or_says_nothing_of_ssh_is_unavailable(served: Served) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:

        def answer() -> None:
            with silent.accept()[0] as connection:
                connection.sendall(b"HTTP/1.1 200 OK\r\n" * 200)

        thread = Thread(target=answer)
        thread.start()
        url = f"ssh://git@127.0.0.1:{silent.getsockname()[1]}/acme/fleet.git"
        reader = SshGitServer(url, KEY, served.server.known_hosts, clock=lambda: NOW)
        with pytest.raises(Unavailable):
            reader.references()
        thread.join()
    gone = SshGitServer("ssh://git@127.0.0.1:9/acme/fleet.git", KEY, "", clock=lambda: NOW)
    with pytest.raises(Unavailable, match="does not answer"):
        gone.references()


def test_what_is_too_long_or_takes_too_long_is_not_read(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.git.commit({"a.yaml": bytes(range(256)) * 40})
    monkeypatch.setattr(transfer, "MOST_SENT", 1000)
    assert "larger than" in served.refused(Unavailable)
    monkeypatch.undo()
    monkeypatch.setattr(transfer, "MOST_SECONDS", -1.0)
    began = time.monotonic()
    assert "takes longer" in served.refused(Unavailable)
    assert time.monotonic() - began < 10
