"""The result of an HTTP request, which a handler turns into a response."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from shared.frozen import dataclass, field
from shared.language.resolve.problems import nearest
from shared.masking import cut
from shared.ports import Ports

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


def meant(name: str, names: Iterable[str]) -> str:
    """Return which of the names was probably meant, as the end of a sentence; "" when none is similar."""
    near = nearest(name[:MAX_NAME], names)
    return f"; did you mean {near}?" if near else ""


def unknown_cluster(name: str, ports: Ports) -> str:
    """Return the error for a cluster that the fleet does not have."""
    hint = meant(name, (summary.name for summary in ports.state.summaries()))
    return f"there is no cluster {cut(name, MAX_NAME)} in the fleet {ports.config.fleet}{hint}"
