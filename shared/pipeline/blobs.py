"""Manifests are kept by their hash: what was read from GitHub once is not read again, by any process.

A blob's content never changes, so nothing kept is ever stale. A process that starts cold reads what is
kept in a few pages, and asks GitHub for the rest; a first plan of thousands of clusters that is cut off
goes on where it was.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence

from shared.ports import CommitStatus, Repository, State, TreeEntry

MAX_KEPT_BYTES = 60_000
"""Larger files (Flux's components) stay with the repository's own cache."""


class KeptBlobs:
    """A Repository whose small blobs are kept in the state; safe to share between threads."""

    def __init__(self, inner: Repository, state: State) -> None:
        self._inner, self._state = inner, state
        self._lock = threading.Lock()
        self._known: dict[str, bytes] | None = None

    def head(self, branch: str) -> str:
        """Return the commit that the branch points to."""
        return self._inner.head(branch)

    def tree(self, commit: str) -> Sequence[TreeEntry]:
        """Return every file at a commit."""
        return self._inner.tree(commit)

    def archive(self, commit: str, paths: Collection[str]) -> Mapping[str, bytes]:
        """Return many files of a commit."""
        return self._inner.archive(commit, paths)

    def set_status(self, commit: str, status: CommitStatus) -> None:
        """Write the commit status."""
        self._inner.set_status(commit, status)

    def blob(self, sha: str) -> bytes:
        """Return a file's content, from what is kept if it was read before."""
        with self._lock:
            if self._known is None:
                self._known = dict(self._state.blobs())
            found = self._known.get(sha)
        if found is not None:
            return found
        content = self._inner.blob(sha)
        if len(content) <= MAX_KEPT_BYTES:
            self._state.keep_blob(sha, content)
            with self._lock:
                self._known[sha] = content
        return content
