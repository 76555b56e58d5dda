"""The proposals of the State port in memory."""

from __future__ import annotations

import itertools
import threading

from shared.cluster.failures.errors import Stale
from shared.cluster.forms import Listed
from shared.frozen import replace
from shared.ports.state import Proposal


class MemoryProposals:
    """The part of the State port that is about proposals."""

    _lock: threading.Lock
    _versions: itertools.count[int]

    def __init__(self) -> None:
        self._proposals: dict[str, Proposal] = {}

    def proposals(self) -> Listed[Proposal]:
        """Return all proposals, by cluster."""
        with self._lock:
            return Listed([self._proposals[name] for name in sorted(self._proposals)])

    def proposal(self, cluster: str) -> Proposal | None:
        """Return the proposal of a cluster, or None."""
        with self._lock:
            return self._proposals.get(cluster)

    def save_proposal(self, proposal: Proposal) -> Proposal:
        """Write a proposal over its version, and return it as saved; raise Stale."""
        with self._lock:
            self._require(proposal)
            saved = replace(proposal, etag=f"v{next(self._versions)}")
            self._proposals[proposal.cluster] = saved
            return saved

    def remove_proposal(self, proposal: Proposal) -> None:
        """Remove a proposal if it is still this version; raise Stale."""
        with self._lock:
            self._require(proposal)
            del self._proposals[proposal.cluster]

    def _require(self, proposal: Proposal) -> None:
        current = self._proposals.get(proposal.cluster)
        if proposal.etag != (current.etag if current else ""):
            raise Stale("another writer changed the proposal")
