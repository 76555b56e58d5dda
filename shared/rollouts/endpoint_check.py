"""A check of a gate that asks an address: what is asked, and which answer is a success."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

INTERVAL = timedelta(minutes=1)


@dataclass(frozen=True)
class EndpointCheck:
    """What a gate asks of an address: with a ``query`` it is a Prometheus, without one an HTTP endpoint.

    An endpoint answers with the ``status``. A Prometheus answers with values from ``least`` to ``most``;
    without both, with at least one. The check is asked once in an ``interval``. It has passed after
    so many consecutive ``successes``, and after more than so many ``failures`` it is not asked again.
    """

    name: str
    url: str
    query: str = ""
    status: int = 200
    least: float | None = None
    most: float | None = None
    interval: timedelta = INTERVAL
    successes: int = 1
    failures: int = 3

    def meets(self, values: Sequence[float]) -> bool | None:
        """Return whether the values of a query are a success, None if there is none to compare.

        What is no number is in no range.
        """
        if self.least is None and self.most is None:
            return bool(values)
        least = -math.inf if self.least is None else self.least
        most = math.inf if self.most is None else self.most
        return all(least <= each <= most for each in values) if values else None

    @property
    def expected(self) -> str:
        """What a success is, in a few words."""
        if not self.query:
            return f"status {self.status}"
        least = "" if self.least is None else f"at least {self.least:g}"
        most = "" if self.most is None else f"at most {self.most:g}"
        return " and ".join(filter(None, (least, most))) or "at least one value"
