"""The metrics that no event changes: how many clusters there are, and how they are."""

from __future__ import annotations

from collections.abc import Iterator

from shared.jobs.reporting.measurements import Measurement, of_ends, of_fleet
from shared.pipeline.runs import ENDS
from shared.ports import Ports


def measure_fleet(ports: Ports) -> None:
    """Measure the clusters and the fleet; without a place for telemetry nothing is read."""
    ports.telemetry.record(_fleet(ports))


def _fleet(ports: Ports) -> Iterator[Measurement]:
    """Yield the measurements; the state is read when somebody takes the first."""
    yield from of_fleet(ports.state.summaries(details=True), ports.state.fleet().gaps)
    runs = ports.state.timer_runs()
    yield from of_ends({work: runs[end].at for work, end in ENDS.items() if end in runs}, ports.clock())
