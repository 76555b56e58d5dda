"""The addresses that checks of gates ask, in memory: what each answers, and what was asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import urlsplit

from shared.cluster.failures.errors import Dependency, ReconcileError, Unavailable

T = TypeVar("T")
_NOBODY = "nobody listens there"


@dataclass
class MemoryEndpoints:
    """Answers from what a test has set, on the ``hosts`` that are allowed; nobody else answers.

    ``asked`` has every address with what it answered, None for no answer.
    """

    hosts: set[str] = field(default_factory=set)
    statuses: dict[str, int | ReconcileError] = field(default_factory=dict)
    values: dict[str, Sequence[float] | ReconcileError] = field(default_factory=dict)
    asked: list[tuple[str, object]] = field(default_factory=list)

    def status(self, url: str) -> int:
        """Return the status of an address."""
        return self._answered(url, self.statuses.get(url, Unavailable(_NOBODY)))

    def query(self, url: str, query: str) -> Sequence[float]:
        """Return the values of a query, whatever the address of the Prometheus."""
        return self._answered(url, self.values.get(query, Unavailable(_NOBODY)))

    def _answered(self, url: str, found: T | ReconcileError) -> T:
        host = urlsplit(url).netloc
        if host not in self.hosts:
            raise Dependency(f"nobody has allowed {host} in ROLLOUT_CHECK_HOSTS")
        self.asked.append((url, None if isinstance(found, ReconcileError) else found))
        if isinstance(found, ReconcileError):
            raise found
        return found
