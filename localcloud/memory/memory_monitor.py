"""The workspaces of Azure Monitor in memory: what each query of a gate answers, and what was asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from shared.cluster.failures.errors import ReconcileError
from shared.ports.services import not_a_workspace
from shared.rollouts.monitored import Sample, Series, step_of


@dataclass
class MemoryMonitor:
    """Answers queries of the ``workspaces`` that are allowed from what a test has set; others have no data.

    ``values`` has for a query the value that its one series has all the time, and ``answers`` a whole answer
    or an error. ``asked`` has what each query answered, None for an error.
    """

    workspaces: set[str] = field(default_factory=set)
    values: dict[str, float] = field(default_factory=dict)
    answers: dict[str, Sequence[Series] | ReconcileError] = field(default_factory=dict)
    asked: list[tuple[str, str, Sequence[Series] | None]] = field(default_factory=list)

    def series(self, workspace: str, query: str, since: datetime, until: datetime) -> Sequence[Series]:
        """Return what a query of a workspace answers for a time."""
        if workspace not in self.workspaces:
            raise not_a_workspace(workspace)
        found = self.answers.get(query, ())
        if query in self.values:
            found = [constant(self.values[query], since, until)]
        self.asked.append((workspace, query, None if isinstance(found, ReconcileError) else found))
        if isinstance(found, ReconcileError):
            raise found
        return found


def constant(value: float, since: datetime, until: datetime) -> Series:
    """Return a series that has one value all the time."""
    step = step_of(until - since)
    steps = int((until - since) / step)
    return Series(tuple(Sample(value, since + number * step) for number in range(steps + 1)), step)
