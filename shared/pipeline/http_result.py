"""The result of an HTTP request, which a handler turns into a response."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MAX_NAME = 63


@dataclass(frozen=True)
class HttpResult:
    """An HTTP status and a JSON object."""

    status: int
    body: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether the request succeeded."""
        return self.status < 400


def rejected(status: int, error: str) -> HttpResult:
    """Return the result for a request that fails; ``error`` is a sentence for the caller."""
    return HttpResult(status, {"error": error})


def unknown_cluster(name: str, fleet: str) -> str:
    """Return the error for a cluster that the fleet does not have."""
    return f"there is no cluster {name[:MAX_NAME]} in the fleet {fleet}"
