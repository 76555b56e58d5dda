"""The rollouts of the State port in memory."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence

from shared.cluster.failures.errors import Stale
from shared.cluster.forms import Listed
from shared.frozen import replace
from shared.rollouts.rollout import Rollout, State


class MemoryRollouts:
    """The part of the State port that is about rollouts."""

    _lock: threading.Lock
    _versions: itertools.count[int]

    def __init__(self) -> None:
        self._rollouts: dict[str, Rollout] = {}

    def rollout(self, commit: str) -> Rollout | None:
        """Return the rollout of a commit, or None."""
        with self._lock:
            return self._rollouts.get(commit)

    def rollouts(self) -> Listed[Rollout]:
        """Return the rollouts that are stored, newest first."""
        with self._lock:
            return Listed(self._newest_first())

    def save_rollout(self, rollout: Rollout) -> Rollout:
        """Write a rollout over its version, and return it as saved; raise Stale."""
        with self._lock:
            current = self._rollouts.get(rollout.commit)
            if rollout.etag != (current.etag if current else ""):
                raise Stale("another writer changed the rollout")
            saved = replace(rollout, etag=f"v{next(self._versions)}")
            self._rollouts[rollout.commit] = saved
            return saved

    def prune_rollouts(self, keep: int) -> int:
        """Remove all but the newest rollouts and those that are active."""
        with self._lock:
            old = [each for each in self._newest_first()[keep:] if each.state is not State.ACTIVE]
            for each in old:
                del self._rollouts[each.commit]
            return len(old)

    def _newest_first(self) -> Sequence[Rollout]:
        return sorted(self._rollouts.values(), key=lambda each: each.began, reverse=True)
