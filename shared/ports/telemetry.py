"""Where metrics and spans go. What was measured decides nothing, and a failure to record it stops nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from shared.cluster.reporting.measurements import Measurement, Span


class Telemetry(Protocol):
    """Takes what was measured; never raises, and never waits for a network."""

    def record(self, observed: Iterable[Measurement | Span]) -> None:
        """Take measurements and spans."""


class NoTelemetry:
    """Takes nothing: an app without a place for telemetry."""

    def record(self, observed: Iterable[Measurement | Span]) -> None:
        """Drop what was measured."""
