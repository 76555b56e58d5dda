"""The promotions of the State port in memory."""

from __future__ import annotations

import itertools
import threading

from shared.cluster.failures.errors import Stale
from shared.cluster.forms import Listed
from shared.frozen import replace
from shared.ports.state import Promotion


class MemoryPromotions:
    """The part of the State port that is about promotions."""

    _lock: threading.Lock
    _versions: itertools.count[int]

    def __init__(self) -> None:
        self._promotions: dict[str, Promotion] = {}

    def promotions(self) -> Listed[Promotion]:
        """Return all promotions, by environment."""
        with self._lock:
            return Listed([self._promotions[name] for name in sorted(self._promotions)])

    def promotion(self, target: str) -> Promotion | None:
        """Return the promotion to an environment, or None."""
        with self._lock:
            return self._promotions.get(target)

    def save_promotion(self, promotion: Promotion) -> Promotion:
        """Write a promotion over its version, and return it as saved; raise Stale."""
        with self._lock:
            current = self._promotions.get(promotion.target)
            if promotion.etag != (current.etag if current else ""):
                raise Stale("another writer changed the promotion")
            saved = replace(promotion, etag=f"v{next(self._versions)}")
            self._promotions[promotion.target] = saved
            return saved
