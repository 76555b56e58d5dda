"""The repositories of a host: bare repositories at ``root/owner/name.git``."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path

from localcloud.git.world.git_repository import GitRepository
from shared.ports import Clock

NAME = re.compile(r"^(?!\.{1,2}$)[\w.-]+$")


class RepositoryStore:
    """Opens each repository once, so that its statuses are retained, with one lock for its pushes."""

    def __init__(self, root: Path, clock: Clock, kind: type[GitRepository] = GitRepository) -> None:
        self.root, self._kind = root, kind
        self._clock = clock
        self._lock = threading.Lock()
        self._open: dict[str, GitRepository] = {}
        self._pushes: dict[str, threading.Lock] = {}

    def find(self, full_name: str) -> GitRepository | None:
        """Return the repository "owner/name", or None."""
        path = self._path(full_name)
        with self._lock:
            if full_name not in self._open and path is not None and (path / "HEAD").is_file():
                self._open[full_name] = self._kind(path, clock=self._clock)
            return self._open.get(full_name)

    def names(self) -> Iterator[str]:
        """Yield every repository's "owner/name"."""
        for path in sorted(self.root.glob("*/*.git")):
            yield f"{path.parent.name}/{path.stem}"

    def create(self, full_name: str, branch: str) -> GitRepository:
        """Make an empty repository, or return the one that is there."""
        path = self._path(full_name)
        if path is None:
            raise ValueError(f"{full_name!r} is not owner/name")
        found = self.find(full_name)
        if found is not None:
            return found
        with self._lock:
            self._open[full_name] = self._kind.create(path, branch, clock=self._clock)
            return self._open[full_name]

    def push_lock(self, full_name: str) -> threading.Lock:
        """Return the lock that makes a push and the comparison of its refs one step."""
        with self._lock:
            return self._pushes.setdefault(full_name, threading.Lock())

    def close(self) -> None:
        """Close every repository."""
        with self._lock:
            for repository in self._open.values():
                repository.close()

    def _path(self, full_name: str) -> Path | None:
        parts = full_name.split("/")
        if len(parts) != 2 or not all(NAME.match(part) for part in parts):
            return None
        return self.root / parts[0] / f"{parts[1]}.git"
