"""Git plumbing on a bare repository: short commands, and one long-lived reader of objects.

No command reads the user's or the system's git configuration, asks a question, or runs without a time limit.
"""

from __future__ import annotations

import os
import re
import select
import subprocess
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TIMEOUT = 60.0
"""Seconds that one git command or one answer of the reader may take."""

_HEADER = re.compile(rb"^([0-9a-f]{40}) (\w+) (\d+)$")
_SAFE_NAME = re.compile(r"^[\w./+@-]+$")


class GitError(Exception):
    """A git command failed or timed out; the message is git's."""


@dataclass(frozen=True)
class GitObject:
    """An object of the store: its id, its kind (blob, tree, commit, tag) and its bytes."""

    sha: str
    kind: str
    data: bytes


@dataclass(frozen=True)
class GitEntry:
    """A line of ``git ls-tree``: ``kind`` is blob, tree or commit (a submodule); only blobs have a size."""

    mode: str
    kind: str
    sha: str
    size: int | None
    path: str


def git_environment() -> dict[str, str]:
    """Return the environment of every git process: no foreign configuration, no prompt, one identity."""
    person = {"NAME": "Fleet Operator", "EMAIL": "operator@example.invalid"}
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": os.devnull,
        "LC_ALL": "C",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        **{f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in person.items()},
    }


def run_git(
    path: Path, *arguments: str, stdin: bytes = b"", environment: Mapping[str, str] | None = None
) -> bytes:
    """Run a git command in a repository and return its output; raise GitError."""
    try:
        done = subprocess.run(
            ["git", "-C", str(path), *arguments],
            input=stdin,
            capture_output=True,
            env={**git_environment(), **(environment or {})},
            timeout=TIMEOUT,
            check=True,
        )
    except subprocess.CalledProcessError as error:
        reason = error.stderr.decode(errors="replace").strip()
        raise GitError(f"git {arguments[0]}: {reason}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GitError(f"git {arguments[0]}: {error}") from error
    return done.stdout


def is_safe_name(name: str) -> bool:
    """Return whether a revision's name is only a name: no option, range, path or operator of git."""
    plain = _SAFE_NAME.match(name) is not None and not name.startswith("-")
    return plain and ".." not in name and "@{" not in name


def list_tree(path: Path, tree: str, *, recursive: bool = True) -> Sequence[GitEntry]:
    """Return the entries of a tree, folders included, in git's order."""
    options = ["-r", "-t"] if recursive else []
    lines = run_git(path, "ls-tree", *options, "-l", "-z", "--full-tree", tree).split(b"\0")
    return [_entry(line) for line in lines if line]


def _entry(line: bytes) -> GitEntry:
    meta, _, name = line.partition(b"\t")
    mode, kind, sha, size = meta.decode().split()
    return GitEntry(mode, kind, sha, None if size == "-" else int(size), name.decode(errors="replace"))


class ObjectReader:
    """Reads objects through one ``git cat-file --batch``: a tenth of a millisecond each, not a process each.

    Sees objects and refs that are written while it runs; starts its process when first used, and again
    when that has died.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._buffer = bytearray()
        self._finalizer: weakref.finalize[[subprocess.Popen[bytes]], ObjectReader] | None = None

    def read(self, name: str) -> GitObject | None:
        """Return the object that a name ("refs/heads/main^{commit}", an id) stands for, or None."""
        if "\n" in name:
            return None
        with self._lock:
            try:
                return self._ask(self._started(), name)
            except (OSError, GitError) as error:
                self._stop()
                raise GitError(f"git cat-file: {error}") from error

    def close(self) -> None:
        """End the process; a later read starts another."""
        with self._lock:
            self._stop()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._stop()
            self._process = subprocess.Popen(
                ["git", "-C", str(self._path), "cat-file", "--batch"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=git_environment(),
                bufsize=0,
            )
            self._finalizer = weakref.finalize(self, _end, self._process)
        return self._process

    def _stop(self) -> None:
        if self._finalizer is not None:
            self._finalizer()
        self._process = self._finalizer = None
        self._buffer.clear()

    def _ask(self, process: subprocess.Popen[bytes], name: str) -> GitObject | None:
        deadline = time.monotonic() + TIMEOUT
        if process.stdin is None or process.stdout is None:
            raise GitError("no pipes")
        process.stdin.write(name.encode() + b"\n")
        output = process.stdout.fileno()
        while (end := self._buffer.find(b"\n")) < 0:
            self._fill(output, deadline)
        header = _HEADER.match(bytes(self._buffer[:end]))
        del self._buffer[: end + 1]
        if header is None:
            return None
        size = int(header[3])
        while len(self._buffer) <= size:
            self._fill(output, deadline)
        data = bytes(self._buffer[:size])
        del self._buffer[: size + 1]
        return GitObject(header[1].decode(), header[2].decode(), data)

    def _fill(self, output: int, deadline: float) -> None:
        ready, _, _ = select.select([output], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise GitError("no answer in time")
        chunk = os.read(output, 1 << 18)
        if not chunk:
            raise GitError("the process ended")
        self._buffer += chunk


def _end(process: subprocess.Popen[bytes]) -> None:
    """Stop a reader's process and free its pipes."""
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
