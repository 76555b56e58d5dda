"""Tokens that this process took in advance: few, for seconds, so that not every read asks the state."""

from __future__ import annotations

import threading
from datetime import datetime


class TokenCache:
    """Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[str, tuple[int, datetime]] = {}

    def put(self, key: str, tokens: int, until: datetime) -> None:
        """Hold tokens of a bucket until a time, in place of those that were held."""
        with self._lock:
            self._held[key] = (tokens, until)

    def take(self, key: str, now: datetime) -> bool:
        """Take a token; tell whether there was one."""
        with self._lock:
            tokens, until = self._held.get(key, (0, now))
            if not tokens or until <= now:
                return False
            self._held[key] = (tokens - 1, until)
            return True

    def drop(self, key: str) -> None:
        """Throw the tokens of a bucket away."""
        with self._lock:
            self._held.pop(key, None)
