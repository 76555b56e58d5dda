"""A fleet repository on disk, read as if it were committed, or as a commit has it; without a network.

Symlinks, submodules and special files are recognised and never followed. Of a manifest that is far too large
only a part is read: enough to reject it. Only a commit is read with git.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

from cli.errors import CommandError, UsageError
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.language.resolve.layers import Layers
from shared.language.resolve.repository_layout import FLEET_FILE, Files, manifest_paths, shared_paths
from shared.language.resolve.resolver import resolve
from shared.language.resolve.shared_files import read_layers
from shared.language.yaml.parser import MAX_BYTES, YamlError, parse
from shared.prices.price_file import PRICE_FILE, Prices
from shared.prices.quota_prices import QuotaPrices, prices_from

T = TypeVar("T")
Read = Callable[[str], bytes]
"""Gives the content of a plain file by its path."""
_CHUNK = 1 << 20
_MOST = 256 * MAX_BYTES


class ReadOnce(Mapping[str, T]):
    """A value for each of these paths, which is read when somebody asks for it first."""

    def __init__(self, paths: Collection[str], read: Callable[[str], T]) -> None:
        self._paths, self._read = paths, cache(read)

    def __getitem__(self, path: str) -> T:
        if path not in self._paths:
            raise KeyError(path)
        return self._read(path)

    def __contains__(self, path: object) -> bool:
        return path in self._paths

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)


@dataclass(frozen=True)
class Worktree:
    """A fleet repository on disk; ``fleet`` is the name in its fleet.yaml, "" where there is none.

    ``commit`` is the id of the commit that it is read from, "" for the files themselves.
    """

    root: Path
    fleet: str
    files: Files
    read: Read
    commit: str = ""

    def resolve(self) -> DesiredFleet:
        """Resolve the files."""
        contents = self.contents(manifest_paths(self.files))
        return resolve(self.fleet, self.files, contents, prices=lambda: QuotaPrices(self.prices()))

    def prices(self) -> Prices | str:
        """Return the prices that the repository has, or why there are none."""
        return prices_from(self.read(PRICE_FILE) if PRICE_FILE in self.files.blobs else None)

    def layers(self) -> Layers:
        """Return the shared files alone."""
        return read_layers(self.fleet, self.files, self.contents(shared_paths(self.files)))

    def contents(self, paths: Iterable[str]) -> Mapping[str, bytes]:
        """Return the contents of files."""
        return {path: self.read(path) for path in paths}

    def shown(self, file: str) -> str:
        """Return a file's path as seen from the current folder, where the repository is inside that."""
        below = os.path.relpath(self.root)
        return file if below == "." or below.startswith("..") else f"{Path(below).as_posix()}/{file}"


def open_worktree(path: Path) -> Worktree:
    """Return the fleet repository in a folder; raise UsageError when there is none."""
    if not path.is_dir():
        raise UsageError(f"there is no folder {path}; give the folder of a fleet repository")
    root = path.resolve()
    if not os.path.lexists(root / FLEET_FILE):
        raise UsageError(f"there is no {FLEET_FILE} in {path}; {_instead(root)}")
    plain, other = _entries(root)
    read = _reader(root)
    blobs = ReadOnce(plain, lambda name: blob_id(root / name))
    return Worktree(root, _name(plain, read), Files(blobs, other), read)


def open_commit(path: Path, commit: str) -> Worktree:
    """Return the fleet repository in a folder as a commit has it, which any name of git's may name.

    Raise UsageError where there is no such commit, CommandError where git does not answer.
    """
    root, name = path.resolve(), f"{commit}^{{commit}}"
    named = commit and not commit.startswith("-") and commit.isprintable()
    found = _git(root, "rev-parse", "--verify", "--quiet", name, fails=True).decode().strip() if named else ""
    if not found:
        raise UsageError(f"there is no commit {commit[:80]!r} in the git repository of {path}")
    prefix = _git(root, "rev-parse", "--show-prefix").strip(b"\n")
    plain: dict[str, str] = {}
    other: set[str] = set()
    listed = _git(root, "ls-tree", "-r", "-z", "--full-tree", found, *([prefix] if prefix else []))
    for entry in filter(None, listed.split(b"\0")):
        facts, _, whole = entry.partition(b"\t")
        mode, _, blob = facts.decode().split(" ")
        file = whole.removeprefix(prefix).decode("utf-8", "replace")
        if mode.startswith("100"):
            plain[file] = blob
        else:
            other.add(file)
    if FLEET_FILE not in plain:
        raise UsageError(f"the commit {found[:8]} has no {FLEET_FILE} in {path}")
    files = Files(plain, frozenset(other))
    read = _reader_of_commit(root, files)
    return Worktree(root, _name(frozenset(plain), read), files, read, found)


def _reader_of_commit(root: Path, files: Files) -> Read:
    """Return a reader of blobs; the manifests are read at once, because each call of git takes a while."""
    wanted = [FLEET_FILE, *manifest_paths(files)]
    names = "".join(f"{files.blobs[path]}\n" for path in wanted).encode()
    answer, known, place = _git(root, "cat-file", "--batch", given=names), dict[str, bytes](), 0
    for path in wanted:
        end = answer.index(b"\n", place)
        facts = answer[place:end].split(b" ")
        if len(facts) < 3:
            raise CommandError(f"git does not have the content of {path}; fetch it first")
        size = int(facts[2])
        known[path] = answer[end + 1 : end + 1 + size]
        place = end + 2 + size

    def read(path: str) -> bytes:
        return known[path] if path in known else _git(root, "cat-file", "blob", files.blobs[path])

    return read


def _git(root: Path, *arguments: str | bytes, given: bytes = b"", fails: bool = False) -> bytes:
    """Return what git writes; "" where it fails and may. Raise CommandError for any other failure."""
    try:
        done = subprocess.run(["git", *arguments], cwd=root, input=given, capture_output=True, check=False)
    except OSError as error:
        raise CommandError(f"a commit is read with git, which cannot be run: {error.strerror}") from error
    if done.returncode and not fails:
        raise CommandError(f"git: {done.stderr.decode(errors='replace').strip() or 'no answer'}")
    return b"" if done.returncode else done.stdout


def _instead(root: Path) -> str:
    above = next((folder for folder in root.parents if (folder / FLEET_FILE).is_file()), None)
    if above is not None:
        return f"it is in {above}: give that folder"
    return "give the folder of a fleet repository, or create one with roadstead init"


def _entries(root: Path) -> tuple[frozenset[str], frozenset[str]]:
    """Return the paths of all plain files, and of everything else that is not a folder."""
    plain: set[str] = set()
    other: set[str] = set()
    folders = [""]
    while folders:
        prefix = folders.pop()
        for entry in _listed(root / prefix):
            path = f"{prefix}{entry.name}".encode("utf-8", "replace").decode()
            if entry.name == ".git":
                continue
            if entry.is_file(follow_symlinks=False):
                plain.add(path)
            elif entry.is_dir(follow_symlinks=False) and not os.path.lexists(f"{entry.path}/.git"):
                folders.append(f"{prefix}{entry.name}/")
            else:
                other.add(path)
    return frozenset(plain), frozenset(other)


def _listed(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError as error:
        raise CommandError(f"{folder} cannot be read: {error.strerror}") from error


def _reader(root: Path) -> Read:
    def read(path: str) -> bytes:
        try:
            with (root / path).open("rb") as file:
                return file.read(min(_MOST, os.fstat(file.fileno()).st_size + 1))
        except OSError as error:
            raise CommandError(f"{path} cannot be read: {error.strerror}") from error

    return read


def blob_id(path: Path) -> str:
    """Return git's id of a file's content; raise CommandError when it cannot be read."""
    try:
        with path.open("rb") as file:
            digest = hashlib.sha1(b"blob %d\0" % os.fstat(file.fileno()).st_size, usedforsecurity=False)
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}") from error
    return digest.hexdigest()


def _name(plain: frozenset[str], read: Read) -> str:
    """Return the fleet's name from fleet.yaml, "" if it has no valid one; resolving reports why."""
    if FLEET_FILE not in plain:
        return ""
    try:
        name = parse(read(FLEET_FILE), FLEET_FILE).find(("metadata", "name")).value
    except YamlError:
        return ""
    return name if isinstance(name, str) else ""
