"""The folder for everything that a local cloud writes; emptied at every start.

A marker file shows that a local cloud created the folder, so that no other folder is ever emptied. The
running cloud holds a lock on it; the operating system releases the lock when that cloud ends.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

MARKER = ".roadstead-local-cloud"
USUAL = Path(".localcloud")


def nearest_state() -> Path:
    """Return the state folder of the current folder, or of the nearest one above it that has one."""
    here = Path.cwd()
    found = (folder / USUAL for folder in (here, *here.parents) if (folder / USUAL / MARKER).is_file())
    return next(found, USUAL)


class StateFolderError(Exception):
    """The folder is not usable; the message has the reason and the remedy."""


class StateFolder:
    """Locks the folder for this process and empties it; ``close`` releases it and leaves its content."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        _check_ours(self.path)
        self.path.mkdir(parents=True, exist_ok=True)
        self._marker = (self.path / MARKER).open("a+")
        try:
            fcntl.flock(self._marker, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._marker.seek(0)
            owner = self._marker.read().strip() or "unknown"
            self._marker.close()
            raise StateFolderError(
                f"a local cloud (process {owner}) is running in {self.path}; stop it, or use another --state"
            ) from None
        self._marker.truncate(0)
        self._marker.write(f"{os.getpid()}\n")
        self._marker.flush()
        for entry in self.path.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            elif entry.name != MARKER:
                entry.unlink()

    def close(self) -> None:
        """Let another cloud use the folder."""
        self._marker.close()


def _check_ours(path: Path) -> None:
    if path.exists() and not path.is_dir():
        raise StateFolderError(f"{path} is not a folder; choose another --state")
    if path.is_dir() and any(path.iterdir()) and not (path / MARKER).is_file():
        raise StateFolderError(f"{path} is not empty and no local cloud created it. Choose another --state")
