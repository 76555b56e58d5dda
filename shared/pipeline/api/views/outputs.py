"""The outputs of a cluster: its facts, for programs that set up what is around it."""

from __future__ import annotations

from shared.jobs.findings.at_rest import shown_phase
from shared.pipeline.api import schema
from shared.ports import Ports


def outputs_view(name: str, ports: Ports) -> schema.Outputs | None:
    """Return the outputs of a cluster; None when the fleet has no such cluster."""
    record = ports.state.cluster(name)
    if record is None:
        return None
    return {
        "name": record.name,
        "phase": shown_phase(record).value,
        "generation": record.generation,
        "observedGeneration": record.observed_generation,
        "known": record.facts is not None,
        "outputs": dict(record.facts or {}),
    }
