"""The Flux to install: the components that the repository pins, locked down where a cluster has systems."""

from __future__ import annotations

from collections.abc import Sequence

from shared.fleet.json_tree import Json
from shared.fleet.kubernetes.flux.flux_objects import components
from shared.fleet.kubernetes.flux.lockdown import is_locked_down, locked_down
from shared.pipeline.worker.steps.context import StepContext


def pinned_components(context: StepContext) -> Sequence[Json]:
    """Return the components of a cluster; raise ComponentsError for a file that has none."""
    pinned = components(context.ports.repository.blob(context.desired.components))
    return locked_down(pinned) if is_locked_down(context.desired) else pinned
