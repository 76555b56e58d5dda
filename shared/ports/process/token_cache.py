"""Tokens that this process took in advance: few, for seconds, so that not every call reads the state."""

from __future__ import annotations

import threading
from datetime import datetime


class TokenCache:
    """The tokens of each bucket. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tokens: dict[str, tuple[int, datetime]] = {}

    def put(self, key: str, tokens: int, until: datetime) -> None:
        """Store tokens of a bucket until a time, in place of the stored ones."""
        with self._lock:
            self._tokens[key] = (tokens, until)

    def take(self, key: str, now: datetime) -> bool:
        """Take a token; return whether there was one."""
        with self._lock:
            tokens, until = self._tokens.get(key, (0, now))
            if not tokens or until <= now:
                return False
            self._tokens[key] = (tokens - 1, until)
            return True

    def drop(self, key: str) -> None:
        """Discard the tokens of a bucket."""
        with self._lock:
            self._tokens.pop(key, None)
