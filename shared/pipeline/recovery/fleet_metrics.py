"""The metrics that no event changes: how many clusters there are."""

from __future__ import annotations

from collections.abc import Iterator

from shared.jobs.reporting.measurements import Measurement, of_phases
from shared.ports import Ports


def measure_fleet(ports: Ports) -> None:
    """Measure how many clusters are in each phase; without a place for telemetry nothing is read."""
    ports.telemetry.record(_phases(ports))


def _phases(ports: Ports) -> Iterator[Measurement]:
    """Yield the measurements; the state is read when somebody takes the first."""
    yield from of_phases(summary.phase for summary in ports.state.summaries())
