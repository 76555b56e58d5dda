"""Sources of Flux over SSH, right and wrong, and what the real source-controller says of each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import asyncssh

from localcloud.git.wire.ssh_server import GitOverSsh, new_key, public_key

RECORDED = "flux_over_ssh.json"
KEY, HOST_KEY, OTHER = new_key(), new_key(), new_key()


def secrets(known: str) -> Mapping[str, Mapping[str, str]]:
    """Return the Secrets by the name of their source: "good" is right."""
    key = asyncssh.import_private_key(KEY)
    locked = key.export_private_key(passphrase="a passphrase").decode()
    rsa = asyncssh.generate_private_key("ssh-rsa").export_private_key().decode()
    right = {"identity": KEY, "known_hosts": known}
    return {
        "good": right,
        "another-host-key": {**right, "known_hosts": known.replace(public_key(HOST_KEY), public_key(OTHER))},
        "another-host": {**right, "known_hosts": f"git.example.com {public_key(HOST_KEY)}"},
        "no-known-hosts": {"identity": KEY},
        "empty-known-hosts": {**right, "known_hosts": ""},
        "broken-known-hosts": {**right, "known_hosts": "git.example.com"},
        "another-key": {**right, "identity": OTHER},
        "another-rsa-key": {**right, "identity": rsa},
        "passphrase": {**right, "identity": locked},
        "with-its-passphrase": {**right, "identity": locked, "password": "a passphrase"},
        "no-key": {**right, "identity": "no key"},
        "no-identity": {"known_hosts": known},
        "password": {"username": "git", "password": "a-token"},
    }


def other_sources(url: str) -> Mapping[str, Mapping[str, object]]:
    """Return what differs from the right source, by its name."""
    return {
        "no-repository": {"url": url.replace("acme/fleet", "acme/other")},
        "no-branch": {"ref": {"branch": "gone"}},
        "no-user": {"url": url.replace("git@", "")},
        "no-secret": {"secretRef": None},
        "no-server": {"url": "ssh://git@127.0.0.1:9/acme/fleet.git"},
    }


@contextmanager
def served(folder: Path, host_key: str = HOST_KEY, port: int = 0) -> Iterator[GitOverSsh]:
    with GitOverSsh(folder, host_key, public_key(KEY), port=port) as server:
        yield server


def plain(text: str) -> str:
    """Return a message without what differs from run to run."""
    text = re.sub(r"ssh://git@127\.0\.0\.1:\d+", "ssh://git@git.example.com", text)
    text = re.sub(r"127\.0\.0\.1:\d+", "192.0.2.1:22", text)
    return re.sub(r"[0-9a-f]{40}", "COMMIT", text)
