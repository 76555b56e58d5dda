"""What a process keeps for its invocations, and how it does several things at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from datetime import datetime
from typing import Any

from shared.frozen import dataclass, field
from shared.ports.tally import Tally

# Waits inside an invocation: few at a time, so that other sessions of the process are served meanwhile.

MOST = 8
"""Half of ``maxConcurrentSessions`` in host.json."""


class Stays:
    """The steps of this process that wait in their message. Safe to share between threads."""

    def __init__(self, most: int = MOST) -> None:
        self._free = threading.Semaphore(most)

    @contextmanager
    def place(self) -> Iterator[bool]:
        """Take a place while the context lasts; yield whether there was one."""
        taken = self._free.acquire(blocking=False)
        try:
            yield taken
        finally:
            if taken:
                self._free.release()


# Several calls to a port at a time.

THREADS = 8
"""How many calls at a time, as many as the reads of the state."""


Together = Callable[[Callable[[Any], Any], Sequence[Any]], Sequence[Any]]
"""Does the same work for several values, and returns the results in the order of the values.

Raises the error of the first value that has one. No work goes on when it has returned or raised. It reaches
no outside system by itself: the work calls ports, and their errors are masked there.
"""


def in_threads(work: Callable[[Any], Any], values: Sequence[Any]) -> Sequence[Any]:
    """Do the work in a few threads; after an error none of it begins any more."""
    if len(values) < 2:
        return [work(value) for value in values]
    with ThreadPoolExecutor(THREADS) as pool:
        # Each with what its log lines are about.
        futures = [pool.submit(copy_context().run, work, value) for value in values]
        try:
            return [future.result() for future in futures]
        finally:
            pool.shutdown(cancel_futures=True)


def in_turn(work: Callable[[Any], Any], values: Sequence[Any]) -> Sequence[Any]:
    """Do the work for one value after the other, as a run on a virtual clock needs it."""
    return [work(value) for value in values]


# Tokens that this process took in advance: few, for seconds, so that not every call reads the state.


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


class KnownAnswers:
    """Answers that a process stores for a time, by their calls. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: dict[Hashable, tuple[Any, datetime]] = {}

    def put(self, call: Hashable, answer: Any, now: datetime, until: datetime) -> None:
        """Store an answer until a time, and drop those whose time is over."""
        with self._lock:
            self._answers = {known: stored for known, stored in self._answers.items() if stored[1] > now}
            self._answers[call] = (answer, until)

    def get(self, call: Hashable, now: datetime) -> Any:
        """Return the answer to a call, None for none that still counts."""
        with self._lock:
            answer, until = self._answers.get(call, (None, now))
        return answer if until > now else None


# What an instance compares with its surroundings, as this process read it last.


@dataclass(frozen=True)
class KnownTime:
    """The bounds of the Unix time at which ``elapsed`` was 0, read at ``at`` of ``elapsed``."""

    at: float
    first: float
    last: float

    @classmethod
    def of(cls, read: datetime, began: float, ended: float) -> KnownTime:
        """Return what a read in whole seconds says between two moments of ``elapsed``."""
        seconds = read.timestamp()
        return cls(ended, seconds - ended, seconds + 1 - began)

    def ahead(self, now: datetime, elapsed: float) -> float:
        """Return by how many seconds a clock that shows ``now`` is ahead at least, below 0 for behind."""
        zero = now.timestamp() - elapsed
        return zero - min(max(zero, self.first), self.last)


class Comparisons:
    """What a process knows of its surroundings: the last time, when the tables were found to be current, and
    when no pause was found.

    Each is None before the first read; ``tables_at`` and ``unpaused_at`` are moments of ``elapsed``.
    """

    time: KnownTime | None = None
    tables_at: float | None = None
    unpaused_at: float | None = None


@dataclass(frozen=True)
class Process:
    """What a process keeps for its invocations.

    ``tokens`` are what it took from Azure's token buckets in advance, ``answers`` what Azure said a moment
    ago, ``compared`` what it read of its surroundings. ``tally`` counts what it uses of Azure's services.
    ``functions`` returns the names of the functions that Azure's worker has indexed in this app.
    """

    tokens: TokenCache = field(default_factory=TokenCache)
    answers: KnownAnswers = field(default_factory=KnownAnswers)
    stays: Stays = field(default_factory=Stays)
    compared: Comparisons = field(default_factory=Comparisons)
    tally: Tally = field(default_factory=Tally)
    functions: Callable[[], Collection[str]] = tuple
