"""Access to the Kubernetes API of a cluster."""

from __future__ import annotations

from shared.jobs.outcomes import Done, Outcome
from shared.pipeline.worker.steps.context import StepContext


def ensure_access(context: StepContext) -> Outcome:
    """Connect to the Kubernetes API; its credentials are fetched for this purpose and live in memory only."""
    context.kubernetes().check()
    return Done()
