"""The history of a repository: its refs, its commits, and the files that each commit changed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path

from localcloud.git.world.branches import ChangedFile
from localcloud.git.world.git_commands import GitError, GitObject, run_git

_PERSON = re.compile(r"^(.*?) ?<(.*?)> (\d+) ([+-])(\d\d)(\d\d)$")


@dataclass(frozen=True)
class Signature:
    """An author or committer, and when (with the person's own offset from UTC)."""

    name: str
    email: str
    when: datetime


@dataclass(frozen=True)
class CommitInfo:
    """A commit as it is stored."""

    sha: str
    tree: str
    parents: tuple[str, ...]
    author: Signature
    committer: Signature
    message: str


@dataclass(frozen=True)
class CommitPaths:
    """The paths that a commit added, removed and modified, against its first parent."""

    added: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    modified: list[str] = field(default_factory=list)


def refs(path: Path) -> Mapping[str, str]:
    """Return every branch and tag by its full name, with the id of what it points to."""
    lines = run_git(path, "for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/tags")
    pairs = (line.split(" ", 1) for line in lines.decode().splitlines())
    return {name: sha for sha, name in pairs}


def parse_commit(stored: GitObject) -> CommitInfo:
    """Return the content of a commit object."""
    head, _, message = stored.data.decode(errors="replace").partition("\n\n")
    lines = [line.partition(" ") for line in head.splitlines() if not line.startswith(" ")]
    first = {key: value for key, _, value in reversed(lines)}
    return CommitInfo(
        stored.sha,
        first["tree"],
        tuple(value for key, _, value in lines if key == "parent"),
        _person(first["author"]),
        _person(first["committer"]),
        message.rstrip("\n"),
    )


def _person(line: str) -> Signature:
    found = _PERSON.match(line)
    if found is None:
        raise GitError(f"not an author or committer: {line!r}")
    name, email, seconds, sign, hours, minutes = found.groups()
    offset = timedelta(hours=int(hours), minutes=int(minutes)) * (-1 if sign == "-" else 1)
    return Signature(name, email, datetime.fromtimestamp(int(seconds), timezone(offset)))


def log(path: Path, *revisions: str, limit: int) -> Mapping[str, CommitPaths]:
    """Return the newest ``limit`` commits of a range, oldest first, with the files that each touched."""
    output = run_git(
        path,
        "log",
        "-z",
        "--name-status",
        "--no-renames",
        "--diff-merges=first-parent",
        "--format=%x01%H",
        f"--max-count={limit}",
        *revisions,
        "--",
    )
    commits: dict[str, CommitPaths] = {}
    for record in output.split(b"\1"):
        sha, _, files = record.partition(b"\0")
        if sha:
            commits[sha.decode()] = _touched(files)
    return dict(reversed(commits.items()))


def diff(path: Path, base: str, head: str) -> CommitPaths:
    """Return the paths that differ between two commits."""
    return _touched(run_git(path, "diff", "-z", "--name-status", "--no-renames", base, head, "--"))


def pull_files(path: Path, base: str, head: str) -> Sequence[ChangedFile]:
    """Return what changed from the newest common ancestor to a head, with renames, as GitHub shows it."""
    fields = iter(run_git(path, "diff", "-z", "--name-status", "-M", f"{base}...{head}", "--").split(b"\0"))
    kinds = {"A": "added", "D": "removed", "R": "renamed"}
    found = []
    for status in fields:
        if status:
            names = [next(fields).decode(errors="replace") for _ in range(1 + status.startswith(b"R"))]
            kind = kinds.get(status[:1].decode(), "modified")
            found.append(ChangedFile(names[-1], kind, names[0] if kind == "renamed" else ""))
    return found


def _touched(output: bytes) -> CommitPaths:
    """Sort the NUL-separated pairs of ``--name-status`` by what happened to the path."""
    touched = CommitPaths()
    kinds = {b"A": touched.added, b"D": touched.removed}
    fields = iter(output.split(b"\0"))
    for entry in fields:
        status = entry.lstrip(b"\n")  # git writes a line end between a commit's id and its files
        if status:
            kinds.get(status, touched.modified).append(next(fields).decode(errors="replace"))
    return touched


def count(path: Path, *revisions: str) -> int:
    """Return the number of commits in a range."""
    return int(run_git(path, "rev-list", "--count", *revisions, "--"))


def rev_list(path: Path, *revisions: str, limit: int, paths: Sequence[str] = ()) -> Sequence[str]:
    """Return the newest ``limit`` commits of a range that changed ``paths``, if given, newest first."""
    found = run_git(path, "rev-list", f"--max-count={limit}", *revisions, "--", *paths)
    return found.decode().split()


def merge_base(path: Path, commit: str, other: str) -> str | None:
    """Return the newest common ancestor of two commits, or None when they have none."""
    try:
        return run_git(path, "merge-base", commit, other).decode().strip()
    except GitError:
        return None
